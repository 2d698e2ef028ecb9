//! `duly task …`.

use std::time::Duration;

use clap::Subcommand;
use duly_client::wire::Backoff;
use duly_core::time::Timestamp;

use super::back_off::back_off;
use super::{ClientArgs, FilterArgs, ImportArgs, LogsArgs, TaskRef, WatchArgs, duration, label};

#[derive(Debug, Subcommand)]
pub(crate) enum TaskCommand {
    /// Submit a task
    Run(RunArgs),
    /// Submit the tasks of a file, one per line; started again, it goes on where it ended
    Import(ImportArgs),
    /// Show tasks
    Get(GetArgs),
    /// List tasks, newest due time first
    List(ListArgs),
    /// Tell why a task does not run
    Explain(ExplainArgs),
    /// Show the attempts of a task that have ended
    Attempts(AttemptsArgs),
    /// Show what a task has logged, live if asked to
    Logs(LogsArgs),
    /// Follow a task until its outcome: exit 6 if it failed
    Watch(WatchArgs),
    /// End tasks that wait or run
    Cancel(CancelArgs),
    /// Change a task that waits
    Edit(EditArgs),
    /// Run tasks again that have ended
    Replay(ReplayArgs),
    /// Start the next attempt of tasks now
    Retry(RetryArgs),
    /// Delete tasks that have ended, with everything about them
    Delete(DeleteArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// Names the handler, such as echo, sleep, flaky or http
    #[arg(value_name = "TYPE")]
    pub(crate) task_type: String,
    /// JSON for the handler; @FILE reads a file, - standard input
    #[arg(short, long, value_name = "JSON")]
    pub(crate) data: Option<String>,
    /// Where the task waits
    #[arg(long)]
    pub(crate) queue: Option<String>,
    /// 0 to 9: among tasks due at about the same time, a higher one starts first; each level is
    /// worth one minute of waiting
    #[arg(long)]
    pub(crate) priority: Option<u8>,
    /// Start this much later, such as 30s or 2h
    #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with = "at")]
    pub(crate) delay: Option<Duration>,
    /// Start at this instant, such as 2030-01-31T08:00:00Z
    #[arg(long, value_name = "INSTANT", value_parser = Timestamp::parse)]
    pub(crate) at: Option<Timestamp>,
    /// How many failed attempts may be followed by another
    #[arg(long)]
    pub(crate) retries: Option<u32>,
    /// How retries are spaced: none, fixed, linear or exponential, then any of base=DURATION,
    /// factor=N, cap=DURATION and jitter=none|equal|full, such as fixed,base=5s,jitter=none
    #[arg(long, value_name = "BACKOFF", value_parser = back_off)]
    pub(crate) backoff: Option<Backoff>,
    /// How long the handler may run
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// A searchable mark; may be given several times
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    pub(crate) labels: Vec<(String, String)>,
    /// Makes a repeated submit answer with the first one's task
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
    /// Wait for the outcome and print the result: exit 6 if it failed, 7 if it took longer, an hour
    /// if absent; the time follows a `=`, as in --wait=30s
    #[arg(long, value_name = "DURATION", value_parser = duration, num_args = 0..=1,
          require_equals = true, default_missing_value = "1h")]
    pub(crate) wait: Option<Duration>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct GetArgs {
    /// The tasks: each its id, or the first 13 or more characters of it
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<TaskRef>,
    /// Wait for the outcome first: exit 6 if it failed, 7 if it took longer, an hour if absent; the
    /// time follows a `=`, as in --wait=30s
    #[arg(long, value_name = "DURATION", value_parser = duration, num_args = 0..=1,
          require_equals = true, default_missing_value = "1h")]
    pub(crate) wait: Option<Duration>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// How many
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub(crate) limit: u32,
    /// Go on where an earlier list with the same filter ended
    #[arg(long)]
    pub(crate) cursor: Option<String>,
    /// Show the list anew every 2 s, on a terminal, until Ctrl-C
    #[arg(long, conflicts_with = "cursor")]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct AttemptsArgs {
    /// The task: its id, or the first 13 or more characters of it
    #[arg(value_name = "ID")]
    pub(crate) id: TaskRef,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArgs {
    /// The task: its id, or the first 13 or more characters of it
    #[arg(value_name = "ID")]
    pub(crate) id: TaskRef,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CancelArgs {
    /// The tasks: each its id, or the first 13 or more characters of it
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<TaskRef>,
    /// Why, for people
    #[arg(long)]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct EditArgs {
    /// The task: its id, or the first 13 or more characters of it
    #[arg(value_name = "ID")]
    pub(crate) id: TaskRef,
    /// JSON for the handler instead of what it has; @FILE reads a file, - standard input
    #[arg(short, long, value_name = "JSON")]
    pub(crate) data: Option<String>,
    /// 0 to 9: among tasks due at about the same time, a higher one starts first; each level is
    /// worth one minute of waiting
    #[arg(long)]
    pub(crate) priority: Option<u8>,
    /// Start this much later than now, such as 30s or 2h
    #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with = "at")]
    pub(crate) delay: Option<Duration>,
    /// Start at this instant, such as 2030-01-31T08:00:00Z
    #[arg(long, value_name = "INSTANT", value_parser = Timestamp::parse)]
    pub(crate) at: Option<Timestamp>,
    /// How many failed attempts may be followed by another
    #[arg(long)]
    pub(crate) retries: Option<u32>,
    /// How long the handler may run
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// Searchable marks instead of those it has; may be given several times
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    pub(crate) labels: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ReplayArgs {
    /// The tasks: each its id, or the first 13 or more characters of it
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<TaskRef>,
    /// JSON for the handler instead of what it had; @FILE reads a file, - standard input
    #[arg(short, long, value_name = "JSON")]
    pub(crate) data: Option<String>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RetryArgs {
    /// The tasks: each its id, or the first 13 or more characters of it
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<TaskRef>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DeleteArgs {
    /// The tasks: each its id, or the first 13 or more characters of it
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<TaskRef>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}
