//! Many tasks on three nodes, each executed once.

use std::time::Duration;

use duly_testkit::Target;

use super::{Cluster, executions};

/// Tasks whose executions the target counts.
const TASKS: usize = 5_000;

#[tokio::test(flavor = "multi_thread")]
async fn three_nodes_execute_every_task_once() -> anyhow::Result<()> {
    // A TTL that no node exceeds on a busy machine: a node that is declared dead loses its tasks to
    // the others, which execute them again.
    let Some(cluster) = Cluster::with_ttl("60s", 3, &[]).await? else { return Ok(()) };
    let target = Target::start(Duration::ZERO).await?;
    let ids = cluster.run_all(&target.task(), TASKS).await?;
    let counts = executions(&target);
    assert_eq!(counts.len(), TASKS);
    let repeated: Vec<_> = counts.iter().filter(|(_, count)| **count != 1).collect();
    assert!(repeated.is_empty(), "executed more than once: {repeated:?}");
    assert!(ids.iter().all(|id| counts.contains_key(id)));
    let failed = cluster.client().list_tasks("status:FAILED", Some(1), None).await?;
    assert!(failed.items.is_empty(), "{:?}", failed.items);
    // Every grant raises the epoch, so none was granted twice.
    let once = "SELECT count(*) FROM duly.task
        WHERE finished_at > 0 AND epoch = 1 AND charged = 1 AND losses = 0 AND error IS NULL";
    assert_eq!(cluster.ask(once).await?, i64::try_from(TASKS)?);
    let workers = cluster.ask("SELECT count(DISTINCT session) FROM duly.task").await?;
    assert!(workers > 1, "one node did all the work");
    Ok(())
}
