//! The stores on which a task waits for a thousand others; also for `make soak`.

use std::sync::Arc;
use std::time::Duration;

use duly_client::Client;
use duly_store::clock::SystemClock;
use duly_store::postgres::scratch::{self, Scratch};
use duly_testkit::{Node, Server, Target, fan_in, report};

use super::DULY;

/// A TTL that no process exceeds on a busy machine: a worker that is declared dead loses its tasks,
/// and the child may be granted again.
const TTL: &str = "60s";

pub(crate) async fn on_sqlite(runs: usize) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let server = Server::start(DULY.as_ref(), folder.path(), &["--session-ttl", TTL]).await?;
    check("SQLite", &[server.client().clone()], runs).await?;
    server.interrupt().await?;
    Ok(())
}

/// Does nothing if there is no server to test on.
pub(crate) async fn on_three_nodes(runs: usize) -> anyhow::Result<()> {
    let Some(server) = scratch::server() else { return Ok(()) };
    let scratch = Scratch::new(&server, Arc::new(SystemClock::default())).await;
    let mut nodes = Vec::new();
    for name in ["node-0", "node-1", "node-2"] {
        let flags = ["--session-ttl", TTL];
        nodes.push(Node::start(DULY.as_ref(), name, &scratch.url(), &flags).await?);
    }
    let clients: Vec<_> = nodes.iter().map(|node| node.client.clone()).collect();
    check("three nodes", &clients, runs).await
}

async fn check(stores: &str, clients: &[Client], runs: usize) -> anyhow::Result<()> {
    let target = Target::start(Duration::ZERO).await?;
    fan_in::check(clients, &target, runs).await?;
    let parents = fan_in::PARENTS;
    report::say(&format!("{stores}: the child of {parents} tasks was released once, {runs} times"));
    Ok(())
}
