//! What a node does from time to time, whether or not anything happens.

use std::time::{Duration, Instant};

use super::error::Result;
use super::listener;
use super::node::Node;

/// How long a node goes without looking around, at the least and at the most. An application that
/// submits in a transaction of its own tells nobody, and its tasks lie before where claims look if
/// others have committed meanwhile.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(120));
/// Looking takes this part of the time. It is a matter of milliseconds, and of seconds when somebody
/// has held a transaction open for long: it then passes over all that was claimed since.
const SHARE: u32 = 50;
/// How long a node goes without the rest.
const ROUND: Duration = Duration::from_secs(10);

/// Makes rounds, for ever.
pub(super) async fn run(node: &Node) {
    let (mut pause, mut last) = (PAUSE.0, Instant::now());
    loop {
        tokio::time::sleep(pause).await;
        let began = Instant::now();
        note(node.look_around().await);
        pause = (began.elapsed() * SHARE).clamp(PAUSE.0, PAUSE.1);
        if last.elapsed() >= ROUND {
            note(round(node).await);
            last = Instant::now();
        }
    }
}

fn note(done: Result<()>) {
    if let Err(fault) = done {
        tracing::debug!(%fault, "the store cannot be looked at");
    }
}

/// Makes the days that come next, and counts who listens.
async fn round(node: &Node) -> Result<()> {
    node.make_next_days().await?;
    count_nodes(node).await
}

/// Whether another node listens to what this one tells.
async fn count_nodes(node: &Node) -> Result<()> {
    let client = node.pool.get().await?;
    let select = "/* node.count */ SELECT count(*) FROM pg_stat_activity
        WHERE application_name = $1 AND datname = current_database()";
    let statement = client.prepare_cached(select).await?;
    let listeners: i64 = client.query_one(&statement, &[&listener::NAME]).await?.try_get(0)?;
    node.notices.set_heard(listeners > 1);
    Ok(())
}
