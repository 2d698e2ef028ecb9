//! The other end of `http` tasks: a small server in the test's process that writes down every
//! execution it sees. What it saw is an effect outside the scheduler, so it cannot be talked out
//! of it.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use bytes::Bytes;
use duly_client::wire::SubmitRequest;
use duly_core::id::TaskId;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// One call of the target for one task.
#[derive(Clone, Debug)]
pub struct Execution {
    /// Whose.
    pub task: TaskId,
    /// The fencing token it came with.
    pub epoch: u32,
    /// Which try it claims to be.
    pub attempt: u32,
    /// The key that is the same for every execution of a run.
    pub idempotency_key: String,
    /// When it arrived.
    pub started: Instant,
    /// When it was answered or its caller went away.
    pub ended: Option<Instant>,
}

/// Everything the target has seen.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// In the order of their start.
    pub executions: Vec<Execution>,
    /// Executions that have not ended.
    pub in_flight: usize,
    /// Calls that did not carry the headers of an execution.
    pub strangers: usize,
}

/// The running target; dropping it ends it.
#[derive(Debug)]
pub struct Target {
    address: SocketAddr,
    shared: Arc<Shared>,
    _serving: JoinSet<()>,
}

#[derive(Debug)]
struct Shared {
    log: watch::Sender<Log>,
    delay: Duration,
    released: watch::Sender<bool>,
}

impl Target {
    /// Starts a target that takes this long for each execution.
    pub async fn start(delay: Duration) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (log, released) = (watch::channel(Log::default()).0, watch::channel(false).0);
        let shared = Arc::new(Shared { log, delay, released });
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, _serving: serving })
    }

    /// A task that calls it and is answered after the delay.
    pub fn task(&self) -> SubmitRequest {
        self.task_at("/")
    }

    /// A task that is answered when [`Target::release`] is called.
    pub fn held_task(&self) -> SubmitRequest {
        self.task_at("/hold")
    }

    /// Lets all held executions end, now and in future.
    pub fn release(&self) {
        self.shared.released.send_replace(true);
    }

    /// What it has seen so far.
    pub fn log(&self) -> Log {
        self.shared.log.borrow().clone()
    }

    /// How many executions have not ended.
    pub fn in_flight(&self) -> usize {
        self.shared.log.borrow().in_flight
    }

    /// Waits until what it has seen satisfies the condition.
    pub async fn wait_for(&self, condition: impl FnMut(&Log) -> bool) -> anyhow::Result<()> {
        let mut log = self.shared.log.subscribe();
        log.wait_for(condition).await.context("the target is alive")?;
        Ok(())
    }

    fn task_at(&self, path: &str) -> SubmitRequest {
        let payload = serde_json::json!({"url": format!("http://{}{path}", self.address)});
        let payload = serde_json::value::to_raw_value(&payload).expect("a URL is JSON");
        SubmitRequest { payload: Some(payload), ..SubmitRequest::new("http") }
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            let service = service_fn(|request| answer(Arc::clone(&shared), request));
            // A caller that is killed breaks its connections; that is what the tests are for.
            drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn answer(
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut response = Response::new(Full::new(Bytes::from_static(b"done")));
    let Some(execution) = execution(&request) else {
        shared.log.send_modify(|log| log.strangers += 1);
        *response.status_mut() = StatusCode::BAD_REQUEST;
        return Ok(response);
    };
    let _running = Running::begin(&shared, execution);
    if request.uri().path() == "/hold" {
        let mut released = shared.released.subscribe();
        drop(released.wait_for(|released| *released).await);
    } else {
        tokio::time::sleep(shared.delay).await;
    }
    Ok(response)
}

fn execution(request: &Request<Incoming>) -> Option<Execution> {
    let text = |name: &str| request.headers().get(name)?.to_str().ok();
    Some(Execution {
        task: text("duly-task-id")?.parse().ok()?,
        epoch: text("duly-epoch")?.parse().ok()?,
        attempt: text("duly-attempt")?.parse().ok()?,
        idempotency_key: text("idempotency-key")?.to_owned(),
        started: Instant::now(),
        ended: None,
    })
}

/// An execution between its start and its end, however it ends.
struct Running<'a> {
    shared: &'a Shared,
    place: usize,
}

impl<'a> Running<'a> {
    fn begin(shared: &'a Shared, execution: Execution) -> Self {
        let mut place = 0;
        shared.log.send_modify(|log| {
            place = log.executions.len();
            log.executions.push(execution);
            log.in_flight += 1;
        });
        Self { shared, place }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.shared.log.send_modify(|log| {
            log.executions[self.place].ended = Some(Instant::now());
            log.in_flight -= 1;
        });
    }
}
