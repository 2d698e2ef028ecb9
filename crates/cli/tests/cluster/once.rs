//! Many tasks on three nodes, each executed once.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use duly_client::wire::SubmitRequest;
use duly_core::id::TaskId;
use duly_testkit::wait::{PATIENCE, eventually};
use duly_testkit::{Target, report};

use super::{Cluster, executions, submit_all};

/// Tasks whose executions somebody else counts, and tasks that do nothing.
const CALLS: usize = 20_000;
const NO_OPS: usize = 100_000;
const BATCH: usize = 5_000;

#[tokio::test(flavor = "multi_thread")]
async fn three_nodes_execute_every_task_once() -> anyhow::Result<()> {
    let Some(cluster) = Cluster::start(3, &[]).await? else { return Ok(()) };
    let target = Target::start(Duration::ZERO).await?;
    let ids = run_all(&cluster, &target.task(), CALLS).await?;
    let counts = executions(&target);
    assert_eq!(counts.len(), CALLS);
    let repeated: Vec<_> = counts.iter().filter(|(_, count)| **count != 1).collect();
    assert!(repeated.is_empty(), "executed more than once: {repeated:?}");
    assert!(ids.iter().all(|id| counts.contains_key(id)));
    let client = cluster.client();
    let failed = client.list_tasks("status:FAILED", Some(1), None).await?;
    assert!(failed.items.is_empty(), "{:?}", failed.items);
    let page = client.list_tasks("", Some(200), None).await?;
    let workers: HashSet<_> = page.items.iter().filter_map(|task| task.worker.clone()).collect();
    assert!(workers.len() > 1, "one node did all the work: {workers:?}");
    Ok(())
}

/// An execution needs a grant, and every grant raises the epoch.
#[tokio::test(flavor = "multi_thread")]
async fn three_nodes_are_granted_each_of_many_tasks_once() -> anyhow::Result<()> {
    let Some(cluster) = Cluster::start(3, &[]).await? else { return Ok(()) };
    let ids = run_all(&cluster, &SubmitRequest::new("echo"), NO_OPS).await?;
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), NO_OPS);
    let once = "SELECT count(*) FROM duly.task
        WHERE finished_at > 0 AND epoch = 1 AND charged = 1 AND losses = 0 AND error IS NULL";
    assert_eq!(cluster.ask(once).await?, i64::try_from(NO_OPS)?);
    assert_eq!(cluster.ask("SELECT count(*) FROM duly.task").await?, i64::try_from(NO_OPS)?);
    let workers = "SELECT count(DISTINCT session) FROM duly.task";
    assert_eq!(cluster.ask(workers).await?, 3, "some nodes did nothing");
    Ok(())
}

/// Submits a task so often through all nodes in turn, and waits until all have ended.
async fn run_all(
    cluster: &Cluster,
    task: &SubmitRequest,
    count: usize,
) -> anyhow::Result<Vec<TaskId>> {
    let started = Instant::now();
    let mut ids = Vec::with_capacity(count);
    for number in 0..count / BATCH {
        let client = &cluster.nodes[number % cluster.nodes.len()].client;
        ids.extend(submit_all(client, &vec![task.clone(); BATCH]).await?);
    }
    let client = cluster.client();
    let is_empty = || async {
        let queue = client.queue_stats("default").await.ok()?;
        (queue.waiting.count == 0 && queue.running.count == 0).then_some(())
    };
    eventually("all tasks end", PATIENCE * 5, is_empty).await?;
    report::say(&format!("{count} tasks on three nodes took {:?}", started.elapsed()));
    Ok(ids)
}
