//! The other end of `http` tasks, which the nodes run themselves: it writes down what it is asked to
//! do, as the workers of the harness do.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use duly_core::id::TaskId;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::effects::{Effect, Ev, NODES};
use crate::journal::Journal;
use crate::wait::observe_for;

/// It runs until it is dropped.
pub(super) struct Callee {
    url: String,
    _serving: JoinSet<()>,
}

struct Shared {
    journal: Journal,
    /// They go on when their caller has gone: what was begun has its end written down.
    executions: Mutex<JoinSet<()>>,
}

impl Callee {
    pub(super) async fn start(effects: &Path) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let (journal, executions) = (Journal::open(effects)?, Mutex::default());
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, Arc::new(Shared { journal, executions })));
        Ok(Self { url, _serving: serving })
    }

    /// Where it is.
    pub(super) fn url(&self) -> String {
        self.url.clone()
    }
}

/// The payload of a task that takes so long and fails so often.
pub(super) fn payload(url: &str, ms: u64, failures: u32) -> serde_json::Value {
    serde_json::json!({"url": format!("{url}/{ms}/{failures}")})
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            let service = service_fn(|request| answer(Arc::clone(&shared), request));
            // A caller that is killed breaks its connections; that is what the run is for.
            drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn answer(
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut response = Response::new(Full::new(Bytes::new()));
    let Some((ms, failures, effect)) = asked(&request) else {
        *response.status_mut() = StatusCode::BAD_REQUEST;
        return Ok(response);
    };
    if effect.attempt <= failures {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    let (ended, end) = tokio::sync::oneshot::channel();
    let writer = Arc::clone(&shared);
    let execution = async move {
        let write = |ev| writer.journal.write(Effect { ev, ..effect.clone() });
        write(Ev::Start).expect("the journal can be written");
        observe_for(Duration::from_millis(ms)).await;
        write(Ev::End).expect("the journal can be written");
        // Whoever does not listen any more need not know.
        ended.send(()).ok();
    };
    {
        let mut executions = shared.executions.lock();
        executions.spawn(execution);
        while executions.try_join_next().is_some() {}
    }
    if end.await.is_err() {
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    }
    Ok(response)
}

/// How long it is to take, how often it is to fail, and whose execution it is.
fn asked(request: &Request<Incoming>) -> Option<(u64, u32, Effect)> {
    let (ms, failures) = request.uri().path().trim_start_matches('/').split_once('/')?;
    let effect = effect(request.headers()).ok()?;
    Some((ms.parse().ok()?, failures.parse().ok()?, effect))
}

fn effect(headers: &HeaderMap) -> anyhow::Result<Effect> {
    let text = |name: &str| -> anyhow::Result<&str> {
        Ok(headers.get(name).with_context(|| format!("no {name}"))?.to_str()?)
    };
    let (_, run) = text("idempotency-key")?.rsplit_once('-').context("no run")?;
    Ok(Effect {
        worker: NODES.to_owned(),
        pid: std::process::id(),
        task: text("duly-task-id")?.parse::<TaskId>()?,
        epoch: text("duly-epoch")?.parse()?,
        run: run.parse()?,
        attempt: text("duly-attempt")?.parse()?,
        ev: Ev::Start,
        outcome: None,
    })
}
