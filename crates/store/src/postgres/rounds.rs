//! What a node does from time to time, whether or not anything happens.

use std::time::Duration;

use super::error::Result;
use super::listener;
use super::node::Node;

/// How long a node goes without looking around.
const ROUND: Duration = Duration::from_secs(10);

/// Makes rounds, for ever.
pub(super) async fn run(node: &Node) {
    loop {
        tokio::time::sleep(ROUND).await;
        if let Err(fault) = round(node).await {
            tracing::debug!(%fault, "the store cannot be looked at");
        }
    }
}

/// Finds what news did not tell, and makes the days that come next.
async fn round(node: &Node) -> Result<()> {
    node.look_around().await?;
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
