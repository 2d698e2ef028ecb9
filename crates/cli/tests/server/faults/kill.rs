//! `kill -9` of a server that runs tasks itself. Runs under chaos kill servers at random moments.

use std::collections::BTreeSet;
use std::time::Duration;

use duly_client::wire::SubmitRequest;
use duly_core::state::Status;
use duly_testkit::Target;
use duly_testkit::wait::within;

use super::{outcome, start};

/// Tasks that run when the server is killed.
const RUNNING: usize = 8;
/// Tasks that wait.
const WAITING: usize = 100;

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_keeps_every_task_and_runs_again_what_it_ran() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let target = Target::start(Duration::ZERO).await?;
    let server = start(data.path()).await?;
    let tomorrow = SubmitRequest { delay_seconds: Some(86_400.0), ..SubmitRequest::new("echo") };
    let keyed = |number: usize| {
        let template = if number < RUNNING { target.held_task() } else { tomorrow.clone() };
        SubmitRequest { idempotency_key: Some(format!("key-{number}")), ..template }
    };
    let mut ids = Vec::new();
    for number in 0..RUNNING + WAITING {
        ids.push(server.client().submit(&keyed(number)).await?.task_id);
    }
    within("the tasks run", target.wait_for(|log| log.in_flight == RUNNING)).await??;
    server.kill().await?;
    within("connections break", target.wait_for(|log| log.in_flight == 0)).await??;

    let server = start(data.path()).await?;
    assert_eq!(server.recovered(), RUNNING);
    let found: BTreeSet<_> =
        server.all_tasks().await?.into_iter().map(|task| task.task_id).collect();
    assert_eq!(found, ids.iter().copied().collect());
    for (number, id) in ids.iter().enumerate() {
        assert_eq!(server.client().submit(&keyed(number)).await?.task_id, *id);
    }
    target.release();
    for id in &ids[..RUNNING] {
        let task = outcome(&server, *id).await?;
        let found = (task.status, task.epoch, task.losses);
        assert_eq!(found, (Status::Success, 2, 1), "{task:?}");
    }
    assert_eq!(target.log().executions.len(), 2 * RUNNING);
    Ok(())
}
