//! What a node does periodically: it polls the store, creates the next days and counts listeners.

use std::time::{Duration, Instant};

use super::error::Result;
use super::listener;
use super::node::Node;

/// The least and the most time between polls. An application that submits in its own transaction
/// notifies no node, and its tasks lie before where claims look if others have committed meanwhile.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(120));
/// Polling uses at most one part in this many of the time. A poll takes milliseconds, or seconds while a
/// transaction has been open for long: it then reads over all rows that were claimed since.
const SHARE: u32 = 50;
/// How often a node does the rest.
const UPKEEP: Duration = Duration::from_secs(10);

/// Runs for ever.
pub(super) async fn run(node: &Node) {
    let (mut pause, mut last) = (PAUSE.0, Instant::now());
    loop {
        tokio::time::sleep(pause).await;
        let began = Instant::now();
        log_fault(node.poll().await);
        pause = (began.elapsed() * SHARE).clamp(PAUSE.0, PAUSE.1);
        if last.elapsed() >= UPKEEP {
            log_fault(upkeep(node).await);
            last = Instant::now();
        }
    }
}

fn log_fault(done: Result<()>) {
    if let Err(fault) = done {
        tracing::debug!(%fault, "the store cannot be polled");
    }
}

/// Creates the next days, and counts the nodes that listen.
async fn upkeep(node: &Node) -> Result<()> {
    node.make_next_days().await?;
    count_nodes(node).await
}

/// Whether another node listens to this one.
async fn count_nodes(node: &Node) -> Result<()> {
    let client = node.pool.get().await?;
    let select = "/* node.count */ SELECT count(*) FROM pg_stat_activity
        WHERE application_name = $1 AND datname = current_database()";
    let statement = client.prepare_cached(select).await?;
    let listeners: i64 = client.query_one(&statement, &[&listener::NAME]).await?.try_get(0)?;
    node.notifier.set_has_listeners(listeners > 1);
    Ok(())
}
