//! A batch that fits into the free slots of a fresh cluster starts on all nodes: no node takes more
//! than it can start. How soon it starts is measured by `make soak`.

use std::time::Duration;

use duly_testkit::Target;
use duly_testkit::wait::within;

use super::{Cluster, submit_all};

const NODES: usize = 3;
/// 64 slots on each node, and two of them free.
const TASKS: usize = 190;

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_fits_starts_on_all_nodes() -> anyhow::Result<()> {
    let flags = ["--concurrency", "64"];
    let Some(cluster) = Cluster::with_ttl("60s", NODES, &flags).await? else { return Ok(()) };
    let target = Target::start(Duration::ZERO).await?;
    submit_all(cluster.client(), &vec![target.held_task(); TASKS]).await?;
    // None of them ends before all have started.
    within("all tasks start", target.wait_for(|log| log.in_flight == TASKS)).await??;
    let granted_once = "SELECT count(*) FROM duly.task WHERE epoch = 1";
    assert_eq!(cluster.ask(granted_once).await?, i64::try_from(TASKS)?, "a node took too many");
    target.release();
    Ok(())
}
