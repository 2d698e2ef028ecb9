//! A node that stands still for longer than others wait: it comes back under another session.

use std::time::Duration;

use duly_testkit::Target;
use duly_testkit::wait::within;
use rustix::process::Signal;

use super::{Cluster, submit_all};

const TASKS: usize = 16;

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_node_commits_nothing_stale_and_works_again() -> anyhow::Result<()> {
    let Some(mut cluster) = Cluster::start(2, &["--concurrency", "32"]).await? else {
        return Ok(());
    };
    let target = Target::start(Duration::ZERO).await?;
    // The second one is to be paused; the first one answers questions.
    let mut paused = cluster.nodes.remove(1);
    let ids = submit_all(&paused.client, &vec![target.held_task(); TASKS]).await?;
    within("all tasks run", target.wait_for(|log| log.in_flight == TASKS)).await??;
    let filter = format!("status:RUNNING worker:{}", paused.name);
    let held = cluster.client().list_tasks(&filter, Some(200), None).await?;
    let orphans: Vec<_> = held.items.iter().map(|task| task.task_id).collect();
    assert!(!orphans.is_empty(), "the node has nothing to do");
    paused.signal(Signal::STOP)?;
    let again = TASKS + orphans.len();
    within("its tasks run on other nodes", target.wait_for(|log| log.executions.len() >= again))
        .await??;
    target.release();
    let tasks = cluster.succeeded(&ids).await?;
    // Its handlers have their answers by now, and want to commit.
    paused.signal(Signal::CONT)?;
    paused.says("another node ended the session of a local worker").await?;
    for task in tasks {
        let after = cluster.client().get_task(task.task_id, None).await?;
        let (before, after) = (serde_json::to_value(&task)?, serde_json::to_value(&after)?);
        assert_eq!(before, after, "something stale was committed");
        let lost = orphans.contains(&task.task_id);
        assert_eq!(task.losses, u32::from(lost), "{task:?}");
        assert_ne!(lost, task.worker.as_deref() == Some(paused.name.as_str()), "{task:?}");
    }
    let other = cluster.nodes.remove(0);
    let (status, said) = other.terminate().await?;
    assert!(status.success(), "{said}");
    cluster.nodes.push(paused);
    let ids = submit_all(cluster.client(), &vec![target.task(); TASKS]).await?;
    for task in cluster.succeeded(&ids).await? {
        assert_eq!(task.worker.as_deref(), Some("node-1"), "it works again");
        assert_eq!(task.losses, 0);
    }
    Ok(())
}
