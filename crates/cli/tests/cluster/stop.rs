//! A node that is stopped while it works.

use std::time::Duration;

use duly_testkit::Target;
use duly_testkit::wait::within;

use super::{Cluster, executions, submit_all};

const TASKS: usize = 3_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_stopped_under_load_loses_nothing() -> anyhow::Result<()> {
    // A TTL that no node exceeds on a busy machine: no task may be lost.
    let Some(mut cluster) = Cluster::with_ttl("60s", 3, &[]).await? else { return Ok(()) };
    let target = Target::start(Duration::from_millis(20)).await?;
    let ids = submit_all(cluster.client(), &vec![target.task(); TASKS]).await?;
    within("a third has run", target.wait_for(|log| log.executions.len() > TASKS / 3)).await??;
    assert!(target.log().executions.len() < TASKS, "it is stopped under load");
    let stopped = cluster.nodes.remove(2);
    let (status, said) = stopped.terminate().await?;
    assert!(status.success(), "{said}");
    for task in cluster.succeeded(&ids).await? {
        assert_eq!((task.losses, task.attempt), (0, 1), "{task:?}");
    }
    let counts = executions(&target);
    assert!(ids.iter().all(|id| counts[id] == 1), "something ran twice");
    let nodes = cluster.client().list_nodes().await?;
    let names: Vec<_> = nodes.items.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["node-0", "node-1"], "it has left");
    Ok(())
}
