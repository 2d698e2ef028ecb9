//! Many tasks on three nodes, each executed once.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use duly_testkit::wait::{PATIENCE, eventually};
use duly_testkit::{Target, report};

use super::{Cluster, executions, submit_all};

const TASKS: usize = 100_000;
const BATCH: usize = 10_000;

#[tokio::test(flavor = "multi_thread")]
async fn three_nodes_execute_every_task_once() -> anyhow::Result<()> {
    let Some(cluster) = Cluster::start(3, &[]).await? else { return Ok(()) };
    let target = Target::start(Duration::ZERO).await?;
    let started = Instant::now();
    let mut ids = Vec::new();
    for number in 0..TASKS / BATCH {
        let client = &cluster.nodes[number % cluster.nodes.len()].client;
        ids.extend(submit_all(client, &vec![target.task(); BATCH]).await?);
    }
    let client = cluster.client();
    let is_empty = || async {
        let queue = client.queue_stats("default").await.ok()?;
        (queue.waiting.count == 0 && queue.running.count == 0).then_some(())
    };
    eventually("all tasks end", PATIENCE * 5, is_empty).await?;
    let took = started.elapsed();
    report::say(&format!("{TASKS} tasks on three nodes took {took:?}"));
    let counts = executions(&target);
    assert_eq!(counts.len(), TASKS);
    let repeated: Vec<_> = counts.iter().filter(|(_, count)| **count != 1).collect();
    assert!(repeated.is_empty(), "executed more than once: {repeated:?}");
    assert!(ids.iter().all(|id| counts.contains_key(id)));
    let failed = client.list_tasks("status:FAILED", Some(1), None).await?;
    assert!(failed.items.is_empty(), "{:?}", failed.items);
    let page = client.list_tasks("", Some(200), None).await?;
    let workers: HashSet<_> = page.items.iter().filter_map(|task| task.worker.clone()).collect();
    assert!(workers.len() > 1, "one node did all the work: {workers:?}");
    Ok(())
}
