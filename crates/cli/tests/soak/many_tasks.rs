//! A hundred thousand tasks on three nodes.

use std::collections::HashSet;

use duly_client::wire::SubmitRequest;

use super::TURN;
use super::harness::Cluster;

const TASKS: usize = 100_000;

/// An execution needs a grant, and every grant raises the epoch.
#[tokio::test(flavor = "multi_thread")]
async fn three_nodes_are_granted_each_of_many_tasks_once() -> anyhow::Result<()> {
    let _turn = TURN.lock().await;
    // A TTL that no node exceeds on a busy machine.
    let Some(cluster) = Cluster::with_ttl("60s", 3, &[]).await? else { return Ok(()) };
    let ids = cluster.run_all(&SubmitRequest::new("echo"), TASKS).await?;
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), TASKS);
    let once = "SELECT count(*) FROM duly.task
        WHERE finished_at > 0 AND epoch = 1 AND charged = 1 AND losses = 0 AND error IS NULL";
    assert_eq!(cluster.ask(once).await?, i64::try_from(TASKS)?);
    assert_eq!(cluster.ask("SELECT count(*) FROM duly.task").await?, i64::try_from(TASKS)?);
    let workers = "SELECT count(DISTINCT session) FROM duly.task";
    assert_eq!(cluster.ask(workers).await?, 3, "some nodes did nothing");
    Ok(())
}
