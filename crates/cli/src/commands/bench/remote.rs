//! A remote worker: drains the same backlog in process and over HTTP from a server in its own process,
//! alternating.

use std::sync::Arc;
use std::time::{Duration, Instant};

use duly_client::wire::RegisterRequest;
use duly_client::{Client, RemoteSource};
use duly_engine::random::OsRandom;
use duly_store::limit::PAYLOAD;

use super::auth::Access;
use super::figures::{Figure, Target};
use super::http::post_as;
use super::rest::{BATCH_CONNECTIONS, Server};
use super::run::Run;
use super::store_site::StoreSite;
use super::world::{self, Counter, NO_OP, worker};
use super::{BATCH, ROUNDS, engine};

pub(super) const STEPS: usize = ROUNDS;

pub(super) async fn measure(run: &mut Run) -> anyhow::Result<()> {
    let tasks = run.tasks;
    let (mut local, mut remote) = (Duration::MAX, Duration::MAX);
    for round in 1..=ROUNDS {
        run.step(&format!("remote worker: {tasks} tasks drained, {round} of {ROUNDS}"));
        local = local.min(engine::backlog(run.new_site("local").await?, tasks).await?.1);
        remote = remote.min(backlog(run.new_site("remote").await?, tasks, Access::Usual).await?);
    }
    let figure = Figure::rate("remote worker: drain over HTTP", tasks, remote);
    run.add(figure.compare_rate(tasks, local).must(Target::Ratio(0.5)).stretch(Target::Ratio(0.7)));
    Ok(())
}

/// Stores a backlog over HTTP without a worker, then drains it.
pub(super) async fn backlog(
    site: StoreSite,
    tasks: usize,
    access: Access<'_>,
) -> anyhow::Result<Duration> {
    let mut server = Server::start_with(&site, false, access).await?;
    let token = access.token();
    let item = format!(r#"{{"type":"{NO_OP}","payload":{PAYLOAD}}}"#);
    let body = format!("[{}]", vec![item; BATCH].join(","));
    let request = post_as(token.as_deref(), "/tasks/batch", &body);
    server.load(BATCH_CONNECTIONS, tasks / BATCH, request).await?;
    let counter = Counter::new(tasks);
    let (registry, config) = worker(counter.clone());
    let request = RegisterRequest {
        name: Some("bench".to_owned()),
        types: registry.types().into_iter().map(String::from).collect(),
        queues: Vec::new(),
        capacity: None,
    };
    let client = Client::new(&server.url(), token.as_deref())?;
    let start = Instant::now();
    let source = RemoteSource::connect(client, request, Arc::new(OsRandom::new())).await?;
    let working = world::run(registry, config, Arc::clone(&source) as _);
    counter.done().await;
    working.stop(tasks).await?;
    let drain = start.elapsed();
    source.close().await;
    server.stop().await?;
    site.remove().await?;
    Ok(drain)
}
