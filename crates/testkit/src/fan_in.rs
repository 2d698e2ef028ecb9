//! A workflow whose last task waits for many others: however their ends meet, it is released once.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use duly_client::Client;
use duly_client::wire::{NeededTask, SubmitRequest, WorkflowRequest};
use duly_core::id::TaskId;
use duly_core::state::Status;
use duly_core::workflow::WorkflowStatus;

use crate::Target;
use crate::wait::{PATIENCE, eventually};

/// Tasks that the last one waits for.
pub const PARENTS: usize = 1_000;
/// The key of the task that waits.
const CHILD: &str = "child";
/// How long one question for the end waits on the server.
const WAIT: Duration = Duration::from_secs(10);

/// Runs such a workflow this many times, submitted through all servers in turn. Each child must have
/// been granted once: one execution at the target, one attempt, run 1, epoch 1.
pub async fn check(clients: &[Client], target: &Target, runs: usize) -> anyhow::Result<()> {
    for run in 0..runs {
        let client = &clients[run % clients.len()];
        check_run(client, target).await.with_context(|| format!("run {run} of {runs}"))?;
    }
    Ok(())
}

async fn check_run(client: &Client, target: &Target) -> anyhow::Result<()> {
    let answer = client.submit_workflow(serde_json::to_string(&workflow(target))?).await?;
    let ask = || async {
        let view = client.get_workflow(answer.workflow_id, Some(WAIT)).await.ok()?;
        (view.summary.status != WorkflowStatus::Running).then_some(view)
    };
    let view = eventually("the workflow ends", PATIENCE * 2, ask).await?;
    let succeeded = view.counts.get(&Status::Success).copied();
    ensure!(succeeded == Some(u64::try_from(PARENTS + 1)?), "it ended otherwise: {view:?}");
    check_child(client, target, *answer.tasks.get(CHILD).context("no child")?).await
}

async fn check_child(client: &Client, target: &Target, id: TaskId) -> anyhow::Result<()> {
    let child = client.get_task(id, None).await?;
    let figures = (child.run, child.attempt, child.epoch, child.losses);
    ensure!(figures == (1, 1, 1, 0), "run, attempt, epoch and losses are {figures:?}");
    let attempts = client.list_attempts(id).await?.items;
    ensure!(attempts.len() == 1, "it has {} attempts", attempts.len());
    let log = target.log();
    let executions = log.executions.iter().filter(|execution| execution.task == id).count();
    ensure!(executions == 1, "it was executed {executions} times");
    Ok(())
}

fn workflow(target: &Target) -> WorkflowRequest {
    let key = |number| format!("parent-{number}");
    let parent = |number| (key(number), SubmitRequest::new("echo"));
    let mut tasks: BTreeMap<_, _> = (0..PARENTS).map(parent).collect();
    let depends_on = (0..PARENTS).map(|number| NeededTask::Key(key(number))).collect();
    tasks.insert(CHILD.to_owned(), SubmitRequest { depends_on, ..target.task() });
    WorkflowRequest { tasks, ..WorkflowRequest::default() }
}
