//! `duly task …`: a client for people.

mod attempts;
mod control;
mod explain;
mod get;
mod import;
mod list;
mod logs;
mod run;
mod watch;

use std::time::{Duration, Instant};

use duly_client::Client;
use duly_client::wire::TaskView;
use duly_core::id::TaskId;
use duly_core::limits::WAIT;
use duly_core::state::Status;

use crate::args::{Output, TaskCommand};
use crate::commands::connect;
use crate::exit::Ending;
use crate::output;

pub(crate) fn run(command: TaskCommand) -> anyhow::Result<Ending> {
    super::block_on(async {
        match command {
            TaskCommand::Run(args) => run::run(args).await,
            TaskCommand::Import(args) => import::run(&args).await,
            TaskCommand::Get(args) => get::run(&args).await,
            TaskCommand::List(args) => list::run(&args).await,
            TaskCommand::Explain(args) => explain::run(&args).await,
            TaskCommand::Attempts(args) => attempts::run(&args).await,
            TaskCommand::Logs(args) => logs::run(&args).await,
            TaskCommand::Watch(args) => watch::run(&args).await,
            TaskCommand::Cancel(args) => control::cancel(args).await,
            TaskCommand::Edit(args) => control::edit(args).await,
            TaskCommand::Replay(args) => control::replay(args).await,
            TaskCommand::Retry(args) => control::retry(&args).await,
        }
    })
}

/// Prints a task that has not ended, one line in table form.
fn print(task: &TaskView, format: Output) -> anyhow::Result<()> {
    match format {
        Output::Json => output::json(task),
        Output::Table => output::data(&output::tasks(std::slice::from_ref(task))),
        Output::Id => output::data(&task.task_id.to_string()),
    }
}

/// Waits for an outcome, in as many requests as it takes. `None`: it took longer.
async fn wait(client: &Client, id: TaskId, patience: Duration) -> anyhow::Result<Option<TaskView>> {
    let start = Instant::now();
    loop {
        let left = patience.saturating_sub(start.elapsed());
        let task = client.get_task(id, Some(left.min(WAIT))).await?;
        if task.status.is_terminal() {
            return Ok(Some(task));
        }
        if start.elapsed() >= patience {
            return Ok(None);
        }
    }
}

fn too_long(id: TaskId, patience: Duration) -> Ending {
    output::say(&format!(
        "not finished after {patience:?}; the task goes on: duly task get {id} --wait"
    ));
    Ending::WaitedTooLong
}

/// Prints a task that has ended: its result alone in table form, so that it can be piped.
fn print_ended(task: &TaskView, format: Output) -> anyhow::Result<Ending> {
    match (format, &task.result) {
        (Output::Json, _) => output::json(task)?,
        (Output::Id, _) => output::data(&task.task_id.to_string())?,
        (Output::Table, Some(result)) => output::data(result.get())?,
        (Output::Table, None) => {}
    }
    let attempts = output::count(task.attempt, "attempt");
    if task.status == Status::Success {
        output::say(&format!("{} {} in {attempts}", task.task_id, task.status));
        return Ok(Ending::Ok);
    }
    output::say(&format!("{} {} after {attempts}{}", task.task_id, task.status, why(task)));
    Ok(Ending::TaskFailed)
}

/// Why a task ended so, behind what else is said of it.
fn why(task: &TaskView) -> String {
    let error = task.error.as_ref();
    error.map_or(String::new(), |error| format!(": {}: {}", error.code, error.message))
}
