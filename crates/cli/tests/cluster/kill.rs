//! A node that is killed: another one leads, and what it ran is run again.

use std::time::{Duration, Instant};

use duly_testkit::wait::{PATIENCE, eventually, within};
use duly_testkit::{Target, report};

use super::{Cluster, executions, submit_all};

/// Longer than in other tests, so that the bound on an election leaves room for a busy machine.
const TTL: Duration = Duration::from_secs(5);
const TASKS: usize = 60;

#[tokio::test(flavor = "multi_thread")]
async fn another_node_leads_and_runs_what_the_killed_one_had() -> anyhow::Result<()> {
    let flags = ["--concurrency", "20"];
    let Some(mut cluster) = Cluster::with_ttl("5s", 3, &flags).await? else { return Ok(()) };
    let target = Target::start(Duration::ZERO).await?;
    let ids = submit_all(cluster.client(), &vec![target.held_task(); TASKS]).await?;
    within("all tasks run", target.wait_for(|log| log.in_flight == TASKS)).await??;
    let (victim, before) = cluster.take_leader().await?;
    let name = victim.name.clone();
    let client = cluster.client().clone();
    let held = client.list_tasks(&format!("status:RUNNING worker:{name}"), Some(200), None).await?;
    let orphans: Vec<_> = held.items.iter().map(|task| task.task_id).collect();
    assert!(!orphans.is_empty(), "the killed node has nothing to do");
    victim.kill().await?;
    let killed = Instant::now();
    let next = || async {
        let leader = client.list_nodes().await.ok()?.leader?;
        (leader.node_id != before.node_id).then_some(leader)
    };
    let leader = eventually("another node leads", PATIENCE, next).await?;
    let leaderless = killed.elapsed();
    assert!(leader.term > before.term, "{leader:?} after {before:?}");
    assert!(leaderless < 2 * TTL, "no node led for {leaderless:?}");
    target.release();
    let tasks = cluster.succeeded(&ids).await?;
    report::say(&format!(
        "another node led after {leaderless:?}; {} tasks of the killed one ended after {:?}",
        orphans.len(),
        killed.elapsed()
    ));
    let counts = executions(&target);
    for task in tasks {
        let lost = orphans.contains(&task.task_id);
        assert_eq!(task.losses, u32::from(lost), "{task:?}");
        assert_eq!(counts[&task.task_id], 1 + usize::from(lost), "{task:?}");
        assert!(!lost || task.worker.as_deref() != Some(name.as_str()), "{task:?}");
    }
    Ok(())
}
