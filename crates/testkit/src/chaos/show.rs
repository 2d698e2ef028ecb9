//! What the server shows when all is over.

use std::path::Path;
use std::time::Duration;

use duly_client::Client;
use duly_client::wire::{DependencyOn, DependencyView, TaskView};
use duly_core::id::TaskId;
use duly_core::workflow::Condition;
use futures_util::future::try_join_all;

use super::doors::Doors;
use crate::history::{Shown, ShownWorkflow, file};
use crate::journal::Journal;
use crate::tasks::{all_tasks, all_workflows};
use crate::wait::eventually;

/// Waits until every task has ended, and writes them and the workflows down; returns how many tasks
/// there are. If some never end, that is written down too, for the judge to see.
pub(super) async fn until_quiet(
    doors: &Doors,
    folder: &Path,
    within: Duration,
) -> anyhow::Result<usize> {
    // All nodes are back, and show the same.
    let client = doors.door(0);
    let quiet = || async {
        let tasks = all_tasks(client).await.ok()?;
        tasks.iter().all(|task| task.status.is_terminal()).then_some(tasks)
    };
    let tasks = match eventually("every task ends", within, quiet).await {
        Ok(tasks) => tasks,
        Err(_) => all_tasks(client).await?,
    };
    let journal = Journal::open(&folder.join(file::SHOWN))?;
    for group in tasks.chunks(32) {
        for shown in try_join_all(group.iter().map(|task| shown(client, task))).await? {
            journal.write(shown)?;
        }
    }
    // After the tasks: if all had ended by then, so must all workflows have.
    show_workflows(client, folder).await?;
    Ok(tasks.len())
}

async fn shown(client: &Client, task: &TaskView) -> anyhow::Result<Shown> {
    let plain = task.epoch <= 1 && task.attempt <= 1 && task.losses == 0;
    let attempts = if plain { Vec::new() } else { client.list_attempts(task.task_id).await?.items };
    let attempts = attempts.into_iter();
    let attempts = attempts.filter_map(|attempt| Some((attempt.epoch, attempt.error?.code)));
    Ok(Shown {
        task: task.task_id,
        key: task.labels.get("key").cloned(),
        status: task.status,
        run: task.run,
        attempt: task.attempt,
        epoch: task.epoch,
        losses: task.losses,
        attempts: attempts.collect(),
        dependencies: task.dependencies.iter().map(dependency).collect(),
        workflow: task.workflow_id.as_deref().map(str::parse).transpose()?,
    })
}

async fn show_workflows(client: &Client, folder: &Path) -> anyhow::Result<()> {
    let journal = Journal::open(&folder.join(file::WORKFLOWS))?;
    for workflow in all_workflows(client).await? {
        journal.write(ShownWorkflow {
            workflow: workflow.workflow_id,
            key: workflow.labels.get("key").cloned(),
            status: workflow.status,
            open: workflow.open,
            fail_fast: workflow.fail_fast,
        })?;
    }
    Ok(())
}

fn dependency(view: &DependencyView) -> (TaskId, Condition) {
    match *view {
        DependencyView::Task(task) => (task, Condition::Success),
        DependencyView::On(DependencyOn { task_id, on }) => (task_id, on),
    }
}
