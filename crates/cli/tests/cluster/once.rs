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
    // A node may hand a lease back before it starts the task, so the epoch may be higher than 1.
    for (wrong, unwanted) in [
        ("unfinished", "finished_at IS NULL OR finished_at = 0"),
        ("charged twice", "charged <> 1"),
        ("lost", "losses <> 0"),
        ("failed", "error IS NOT NULL"),
    ] {
        let count = format!("SELECT count(*) FROM duly.task WHERE {unwanted}");
        assert_eq!(cluster.ask(&count).await?, 0, "{wrong}");
    }
    let workers = cluster.ask("SELECT count(DISTINCT session) FROM duly.task").await?;
    assert!(workers > 1, "one node did all the work");
    Ok(())
}
