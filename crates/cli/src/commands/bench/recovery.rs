//! How soon the tasks of a worker that has died run again, with the defaults.

use std::time::{Duration, Instant};

use anyhow::ensure;
use duly_client::Client;
use duly_client::wire::{ClaimRequest, HeartbeatRequest, RegisterRequest, Registration};
use duly_store::limit::PAYLOAD;

use super::figures::{Figure, Target};
use super::http::post;
use super::rest::Server;
use super::run::Run;
use super::world::NO_OP;

/// Tasks that the dead worker held.
const TASKS: usize = 100;
/// The longest wait for the recovery.
const PATIENCE: Duration = Duration::from_secs(60);
pub(super) const STEPS: usize = 1;

pub(super) async fn measure(run: &mut Run) -> anyhow::Result<()> {
    run.step(&format!("recovery: a worker dies with {TASKS} tasks"));
    let site = run.new_site("recovery").await?;
    let mut server = Server::start(&site, false).await?;
    let item = format!(r#"{{"type":"{NO_OP}","payload":{PAYLOAD}}}"#);
    let body = format!("[{}]", vec![item; TASKS].join(","));
    server.load(1, 1, post("/tasks/batch", &body)).await?;
    let client = Client::new(&server.url(), None)?;
    let first = register(&client).await?;
    ensure!(claim(&client, &first, 1).await? == TASKS, "the first worker did not get all tasks");
    let last_heartbeat = HeartbeatRequest { received: vec![1], ..HeartbeatRequest::default() };
    client.heartbeat(first.session_id, &last_heartbeat).await?;
    let died = Instant::now();
    let second = register(&client).await?;
    let (mut again, mut received) = (0, Vec::new());
    while again < TASKS {
        ensure!(died.elapsed() < PATIENCE, "{again} of {TASKS} run again");
        let seq = received.len() as u64 + 1;
        let leases = claim(&client, &second, seq).await?;
        // The number grows only after leases.
        received.extend((leases > 0).then_some(seq));
        again += leases;
        let heartbeat =
            HeartbeatRequest { received: received.clone(), ..HeartbeatRequest::default() };
        client.heartbeat(second.session_id, &heartbeat).await?;
    }
    let figure = Figure::new("recovery: all run again after", died.elapsed().as_secs_f64(), "s");
    run.add(figure.must(Target::AtMost(15.0)).stretch(Target::AtMost(5.0)));
    server.stop().await?;
    site.remove().await
}

async fn register(client: &Client) -> anyhow::Result<Registration> {
    let types = vec![NO_OP.to_owned()];
    Ok(client.register(&RegisterRequest { types, ..Default::default() }).await?)
}

/// Claims leases, with a short wait; returns how many it got.
async fn claim(client: &Client, worker: &Registration, seq: u64) -> anyhow::Result<usize> {
    let session_id = worker.session_id;
    let claim =
        ClaimRequest { wait_seconds: Some(1.0), ..ClaimRequest::new(session_id, seq, TASKS) };
    Ok(client.claim(&claim).await?.leases.len())
}
