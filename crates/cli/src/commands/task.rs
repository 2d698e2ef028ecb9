//! `duly task …`.

mod attempts;
mod control;
mod each;
mod explain;
mod get;
mod import;
mod list;
mod logs;
mod run;
mod watch;

use std::fmt::Display;
use std::time::{Duration, Instant};

use duly_client::Client;
use duly_client::wire::TaskView;
use duly_core::id::TaskId;
use duly_core::limits::WAIT;
use duly_core::state::Status;

pub(crate) use self::run::read_payload;
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
            TaskCommand::Delete(args) => control::delete(&args).await,
        }
    })
}

/// Prints a task that has not ended; a table has one line.
fn print(task: &TaskView, format: Output) -> anyhow::Result<()> {
    match format {
        Output::Json => output::json(task),
        Output::Table => output::data(&output::tasks(std::slice::from_ref(task))),
        Output::Id => output::data(&task.task_id.to_string()),
    }
}

/// Waits for the outcome, in as many requests as needed. After `patience` it returns the task as it
/// is.
async fn wait(
    client: &Client,
    id: impl Display,
    patience: Duration,
) -> Result<TaskView, duly_client::Error> {
    let start = Instant::now();
    loop {
        let left = patience.saturating_sub(start.elapsed());
        let task = client.get_task(&id, Some(left.min(WAIT))).await?;
        if task.status.is_terminal() || start.elapsed() >= patience {
            return Ok(task);
        }
    }
}

fn report_timeout(id: TaskId, patience: Duration) -> Ending {
    output::say(&format!(
        "not finished after {patience:?}; the task continues; next: duly task get {id} --wait"
    ));
    Ending::WaitedTooLong
}

/// Prints an ended task: as a table its result alone, so that it can be piped. Without a format it
/// prints only the outcome.
fn print_ended(task: &TaskView, format: Option<Output>) -> anyhow::Result<Ending> {
    match (format, &task.result) {
        (Some(Output::Json), _) => output::json(task)?,
        (Some(Output::Id), _) => output::data(&task.task_id.to_string())?,
        (Some(Output::Table), Some(result)) => output::data(result.get())?,
        (Some(Output::Table), None) | (None, _) => {}
    }
    let attempts = output::count(task.attempt, "attempt");
    if task.status == Status::Success {
        output::say(&format!("{} {} in {attempts}", task.task_id, task.status));
        return Ok(Ending::Ok);
    }
    output::say(&format!(
        "{} {} after {attempts}{}",
        task.task_id,
        task.status,
        failure_suffix(task)
    ));
    Ok(Ending::TaskFailed)
}

/// The reason of a failure, as a suffix. Omits the code of a cancelled task, which repeats its
/// status.
fn failure_suffix(task: &TaskView) -> String {
    match &task.error {
        None => String::new(),
        Some(error) if error.code != task.status.as_str() => {
            format!(": {}", output::failure(error))
        }
        Some(error) if error.message.is_empty() => String::new(),
        Some(error) => format!(": {}", error.message),
    }
}
