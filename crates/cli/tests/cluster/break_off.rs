//! All connections to the database break at once.

use std::time::{Duration, Instant};

use duly_testkit::wait::within;
use duly_testkit::{Target, report};

use super::{Cluster, submit_all};

const TASKS: usize = 3_000;
/// Ends all connections to a database but the one that does it.
const BREAK_ALL: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()";

#[tokio::test(flavor = "multi_thread")]
async fn work_goes_on_when_all_connections_break() -> anyhow::Result<()> {
    let Some(cluster) = Cluster::start(2, &[]).await? else { return Ok(()) };
    let target = Target::start(Duration::from_millis(20)).await?;
    let ids = submit_all(cluster.client(), &vec![target.task(); TASKS]).await?;
    within("a third has run", target.wait_for(|log| log.executions.len() > TASKS / 3)).await??;
    let broken = cluster.ask(BREAK_ALL).await?;
    assert!(broken > 2, "only {broken} connections were there to break");
    let before = target.log().executions.len();
    assert!(before < TASKS, "they broke under load");
    let since = Instant::now();
    // As many as the nodes may still have held leases for are no proof that the store is back.
    within("all tasks run", target.wait_for(|log| log.executions.len() >= TASKS)).await??;
    let took = since.elapsed();
    report::say(&format!("{broken} connections broke; the rest ran within {took:?}"));
    for task in cluster.succeeded(&ids).await? {
        assert_eq!(task.attempt, 1, "{task:?}");
    }
    assert!(took < Duration::from_secs(30), "it took {took:?}");
    Ok(())
}
