//! `duly task …`.

use std::time::Duration;

use clap::Subcommand;
use duly_client::wire::Backoff;
use duly_core::time::Timestamp;

use super::back_off::parse_back_off;
use super::{ClientArgs, FilterArgs, ImportArgs, LogsArgs, TaskRef, WatchArgs, duration, label};

#[derive(Debug, Subcommand)]
pub(crate) enum TaskCommand {
    /// Submit a task
    Run(RunArgs),
    /// Submit the tasks of a file, one per line; a restarted import continues
    Import(ImportArgs),
    /// Show tasks
    Get(GetArgs),
    /// List tasks, newest due time first
    List(ListArgs),
    /// Explain why a task does not run
    Explain(ExplainArgs),
    /// Show the ended attempts of a task
    Attempts(AttemptsArgs),
    /// Show the log of a task; --follow shows it live
    Logs(LogsArgs),
    /// Follow a task until its outcome: exit 6 if it failed
    Watch(WatchArgs),
    /// Cancel waiting or running tasks
    Cancel(CancelArgs),
    /// Change a waiting task
    Edit(EditArgs),
    /// Run ended tasks again
    Replay(ReplayArgs),
    /// Start the next attempt of tasks now, without the back-off
    Retry(RetryArgs),
    /// Delete ended tasks with their attempts and logs
    Delete(DeleteArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// Task type, such as echo, sleep, flaky or http
    #[arg(value_name = "TYPE")]
    pub(crate) task_type: String,
    /// Payload as JSON; @FILE reads a file, - standard input
    #[arg(short, long, value_name = "JSON")]
    pub(crate) data: Option<String>,
    /// Queue of the task
    #[arg(long)]
    pub(crate) queue: Option<String>,
    /// Priority, 0 to 9: among tasks due at about the same time, a higher one starts first; each
    /// level is worth one minute of waiting
    #[arg(long)]
    pub(crate) priority: Option<u8>,
    /// Start after this delay, such as 30s or 2h
    #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with = "at")]
    pub(crate) delay: Option<Duration>,
    /// Start at this instant, such as 2030-01-31T08:00:00Z
    #[arg(long, value_name = "INSTANT", value_parser = Timestamp::parse)]
    pub(crate) at: Option<Timestamp>,
    /// Retries after the first attempt
    #[arg(long)]
    pub(crate) retries: Option<u32>,
    /// Back-off of retries: none, fixed, linear or exponential, then any of base=DURATION,
    /// factor=N, cap=DURATION and jitter=none|equal|full, such as fixed,base=5s,jitter=none
    #[arg(long, value_name = "BACKOFF", value_parser = parse_back_off)]
    pub(crate) backoff: Option<Backoff>,
    /// Time limit of an attempt
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// Label for filters; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    pub(crate) labels: Vec<(String, String)>,
    /// A repeated submit with the same key returns the same task
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
    /// Wait for the outcome and print the result: exit 6 if it failed, 7 if it took longer than
    /// DURATION; write --wait=30s, or --wait for an hour
    #[arg(long, value_name = "DURATION", value_parser = duration, num_args = 0..=1,
          require_equals = true, default_missing_value = "1h")]
    pub(crate) wait: Option<Duration>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct GetArgs {
    /// Task ids, or prefixes of 13 or more characters
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<TaskRef>,
    /// Wait for the outcome first: exit 6 if it failed, 7 if it took longer than DURATION; write
    /// --wait=30s, or --wait for an hour
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
    /// Number of items
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub(crate) limit: u32,
    /// Continue after an earlier page with the same filter
    #[arg(long)]
    pub(crate) cursor: Option<String>,
    /// Refresh the list every 2 s, on a terminal, until Ctrl-C
    #[arg(long, conflicts_with = "cursor")]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct AttemptsArgs {
    /// Task id, or a prefix of 13 or more characters
    #[arg(value_name = "ID")]
    pub(crate) id: TaskRef,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArgs {
    /// Task id, or a prefix of 13 or more characters
    #[arg(value_name = "ID")]
    pub(crate) id: TaskRef,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CancelArgs {
    /// Task ids, or prefixes of 13 or more characters
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<TaskRef>,
    /// Reason, for people
    #[arg(long)]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct EditArgs {
    /// Task id, or a prefix of 13 or more characters
    #[arg(value_name = "ID")]
    pub(crate) id: TaskRef,
    /// New payload as JSON; @FILE reads a file, - standard input
    #[arg(short, long, value_name = "JSON")]
    pub(crate) data: Option<String>,
    /// Priority, 0 to 9: among tasks due at about the same time, a higher one starts first; each
    /// level is worth one minute of waiting
    #[arg(long)]
    pub(crate) priority: Option<u8>,
    /// Start after this delay from now, such as 30s or 2h
    #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with = "at")]
    pub(crate) delay: Option<Duration>,
    /// Start at this instant, such as 2030-01-31T08:00:00Z
    #[arg(long, value_name = "INSTANT", value_parser = Timestamp::parse)]
    pub(crate) at: Option<Timestamp>,
    /// Retries after the first attempt
    #[arg(long)]
    pub(crate) retries: Option<u32>,
    /// Time limit of an attempt
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// Labels that replace the old ones; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    pub(crate) labels: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ReplayArgs {
    /// Task ids, or prefixes of 13 or more characters
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<TaskRef>,
    /// New payload as JSON; @FILE reads a file, - standard input
    #[arg(short, long, value_name = "JSON")]
    pub(crate) data: Option<String>,
    /// Also run everything that depends on it again, after it
    #[arg(long, conflicts_with = "data")]
    pub(crate) downstream: bool,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RetryArgs {
    /// Task ids, or prefixes of 13 or more characters
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<TaskRef>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DeleteArgs {
    /// Task ids, or prefixes of 13 or more characters
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<TaskRef>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}
