//! Ctrl-C: what runs may finish, the rest is handed back, and nothing is counted as a loss.

use std::time::Duration;

use duly_core::state::Status;
use duly_testkit::Target;
use duly_testkit::wait::within;

use super::{outcome, start, task};

/// Long enough to be running when the signal comes, short enough to end in the grace.
const EXECUTION: Duration = Duration::from_millis(500);

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_stops_cleanly_and_work_goes_on_after_a_restart() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let target = Target::start(EXECUTION).await?;
    let server = start(data.path()).await?;
    let finishes = server.client().submit(&target.task()).await?.task_id;
    let handed_back = server.client().submit(&target.held_task()).await?.task_id;
    let mut later = target.task();
    later.delay_seconds = Some(1.0);
    let waits = server.client().submit(&later).await?.task_id;
    within("both executions begin", target.wait_for(|log| log.in_flight == 2)).await??;

    let (status, said) = server.interrupt().await?;
    assert_eq!(status.code(), Some(0), "{said}");
    assert!(said.trim_end().ends_with("stopped"), "{said}");
    assert_eq!(target.in_flight(), 0);
    assert_eq!(target.log().executions.len(), 2, "nothing new was started");

    target.release();
    let server = start(data.path()).await?;
    assert_eq!(server.recovered(), 0, "everything was handed back");
    for (id, epoch) in [(finishes, 1), (handed_back, 2), (waits, 1)] {
        let view = outcome(&server, id).await?;
        let found = (view.status, view.losses, view.attempt, view.epoch);
        assert_eq!(found, (Status::Success, 0, 1, epoch), "{view:?}");
    }
    assert_eq!(target.log().executions.len(), 4);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_ctrl_c_stops_at_once() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let target = Target::start(Duration::ZERO).await?;
    let mut server = start(data.path()).await?;
    let id = server.client().submit(&target.held_task()).await?.task_id;
    let long = task("sleep", serde_json::json!({"seconds": 3600}));
    server.client().submit(&long).await?;
    within("the execution begins", target.wait_for(|log| log.in_flight == 1)).await??;

    server.send_interrupt()?;
    within("the first signal is noticed", server.says("stopping")).await??;
    let before = std::time::Instant::now();
    let (status, said) = server.interrupt().await?;
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("stopped at once"), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    assert!(before.elapsed() < Duration::from_secs(8), "it took {:?}", before.elapsed());

    target.release();
    let server = start(data.path()).await?;
    assert_eq!(outcome(&server, id).await?.status, Status::Success);
    Ok(())
}
