//! Flags and commands.

mod bench;
mod bulk;
mod dlq;
mod filter;
mod import;
mod logs;
mod migrate;
mod node;
mod queue;
mod serve;
mod settings;
mod worker;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Parser, Subcommand, ValueEnum};
use duly_core::id::TaskId;
use duly_core::limits::{CONCURRENCY, LOSS_LIMIT, LOSSES};

pub(crate) use self::bench::{BenchArgs, BenchStore, Part};
pub(crate) use self::bulk::{BulkArgs, BulkCommand, BulkIdArgs, BulkListArgs, BulkStatusArgs};
pub(crate) use self::dlq::{DlqCommand, DlqGroupsArgs, DlqListArgs, DlqPurgeArgs, DlqReplayArgs};
pub(crate) use self::filter::FilterArgs;
pub(crate) use self::import::ImportArgs;
pub(crate) use self::logs::{LogOutput, LogsArgs, WatchArgs};
pub(crate) use self::migrate::{MigrateArgs, MigrateCommand};
pub(crate) use self::node::{NodeCommand, NodeListArgs};
pub(crate) use self::queue::{QueueArgs, QueueCommand, QueueListArgs, QueuePauseArgs};
pub(crate) use self::serve::{LogLevel, ServeArgs};
pub(crate) use self::settings::{
    SettingsCommand, SettingsGetArgs, SettingsHistoryArgs, SettingsRollbackArgs, SettingsSetArgs,
};
pub(crate) use self::worker::{WorkerCommand, WorkerRunArgs};

/// A task scheduler that starts with nothing else installed.
#[derive(Debug, Parser)]
#[command(name = "duly", version, arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct Args {
    /// Say more on standard error; twice for even more
    #[arg(short, long, action = ArgAction::Count, global = true)]
    pub(crate) verbose: u8,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start API and workers on one file, on loopback, without keys
    Dev(DevArgs),
    /// Start one node of many, on a database that they share
    Serve(ServeArgs),
    /// Submit tasks and look at them
    #[command(subcommand)]
    Task(TaskCommand),
    /// Order something for many tasks
    #[command(subcommand)]
    Bulk(BulkCommand),
    /// Look at queues, and pause them
    #[command(subcommand)]
    Queue(QueueCommand),
    /// Look at tasks that failed, run them again or delete them
    #[command(subcommand)]
    Dlq(DlqCommand),
    /// Look at the settings of the installation and change them without a restart
    #[command(subcommand)]
    Settings(SettingsCommand),
    /// Look at the processes of the server
    #[command(subcommand)]
    Node(NodeCommand),
    /// Run tasks in another process or on another machine
    #[command(subcommand)]
    Worker(WorkerCommand),
    /// Change the schema of a shared database before the nodes do
    #[command(subcommand)]
    Migrate(MigrateCommand),
    /// Check this machine, the data directory and the server
    Doctor(DoctorArgs),
    /// Measure this machine: what the engine reaches beside bare SQLite
    Bench(BenchArgs),
    /// Print a script that completes commands and flags in a shell
    Completions(CompletionsArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct DevArgs {
    /// Where to listen; port 0 picks a free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,
    /// Where the database lives
    #[arg(long, value_name = "DIR", default_value = ".duly", env = "DULY_DATA")]
    pub(crate) data: PathBuf,
    /// Handlers that run at once in this process, unless the settings say otherwise; 0 leaves all
    /// work to workers elsewhere
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = concurrency_or_none)]
    pub(crate) concurrency: usize,
    /// How long a worker elsewhere may be silent before others get its tasks
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = session_ttl)]
    pub(crate) session_ttl: Duration,
    /// How many workers may die with a task before it is failed, unless the settings say otherwise
    #[arg(long, value_name = "N", default_value_t = LOSSES,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(LOSS_LIMIT)))]
    pub(crate) loss_limit: u32,
    /// Serve the type shell: whoever reaches this server runs programs as this user
    #[arg(long)]
    pub(crate) allow_shell: bool,
    /// Serve the types daily-report, cleanup-temp-files and data-backup, which do nothing
    #[arg(long)]
    pub(crate) samples: bool,
    /// Switch on a bug that the tests must catch
    #[cfg(feature = "planted-bugs")]
    #[arg(long, value_name = "NAME", hide = true)]
    pub(crate) planted_bug: Option<duly_store::sqlite::PlantedBug>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TaskCommand {
    /// Submit a task
    Run(RunArgs),
    /// Submit the tasks of a file, one per line; started again, it goes on where it ended
    Import(ImportArgs),
    /// Show a task
    Get(GetArgs),
    /// List tasks, newest due time first
    List(ListArgs),
    /// Tell why a task does not run
    Explain(ExplainArgs),
    /// Show the attempts of a task that went wrong
    Attempts(AttemptsArgs),
    /// Show what a task has logged, live if asked to
    Logs(LogsArgs),
    /// Follow a task until its outcome: exit 6 if it failed
    Watch(WatchArgs),
    /// End a task that waits or runs
    Cancel(CancelArgs),
    /// Change a task that waits
    Edit(EditArgs),
    /// Run a task again that has ended
    Replay(ReplayArgs),
    /// Start the next attempt of a task now
    Retry(RetryArgs),
}

/// Which server, and how to print.
#[derive(Debug, clap::Args)]
pub(crate) struct ClientArgs {
    /// The server's address
    #[arg(
        long,
        value_name = "URL",
        default_value = "http://127.0.0.1:8080",
        env = "DULY_SERVER",
        hide_env_values = true
    )]
    pub(crate) server: String,
    /// The token to send
    #[arg(long, env = "DULY_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
    /// How to print on standard output
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

/// How data is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people
    #[default]
    Table,
    /// Everything, as JSON
    Json,
    /// Only the ids
    Id,
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
    /// 0 to 9; 9 runs first
    #[arg(long)]
    pub(crate) priority: Option<u8>,
    /// Start this much later, such as 30s or 2h
    #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with = "at")]
    pub(crate) delay: Option<Duration>,
    /// Start at this instant, such as 2030-01-31T08:00:00Z
    #[arg(long, value_name = "INSTANT", value_parser = duly_core::time::Timestamp::parse)]
    pub(crate) at: Option<duly_core::time::Timestamp>,
    /// How many failed attempts may be followed by another
    #[arg(long)]
    pub(crate) retries: Option<u32>,
    /// How long the handler may run
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// A searchable mark; may be given several times
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    pub(crate) labels: Vec<(String, String)>,
    /// Makes a repeated submit answer with the first one's task
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
    /// Wait for the outcome and print the result: exit 6 if it failed, 7 if it took longer
    #[arg(long, value_name = "DURATION", value_parser = duration, num_args = 0..=1,
          default_missing_value = "1h")]
    pub(crate) wait: Option<Duration>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct GetArgs {
    /// The task
    #[arg(value_name = "ID")]
    pub(crate) id: TaskId,
    /// Wait for the outcome first: exit 6 if it failed, 7 if it took longer
    #[arg(long, value_name = "DURATION", value_parser = duration, num_args = 0..=1,
          default_missing_value = "1h")]
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
    /// The task
    #[arg(value_name = "ID")]
    pub(crate) id: TaskId,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArgs {
    /// The task
    #[arg(value_name = "ID")]
    pub(crate) id: TaskId,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CancelArgs {
    /// The task
    #[arg(value_name = "ID")]
    pub(crate) id: TaskId,
    /// Why, for people
    #[arg(long)]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct EditArgs {
    /// The task
    #[arg(value_name = "ID")]
    pub(crate) id: TaskId,
    /// JSON for the handler instead of what it has; @FILE reads a file, - standard input
    #[arg(short, long, value_name = "JSON")]
    pub(crate) data: Option<String>,
    /// 0 to 9; 9 runs first
    #[arg(long)]
    pub(crate) priority: Option<u8>,
    /// Start this much later than now, such as 30s or 2h
    #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with = "at")]
    pub(crate) delay: Option<Duration>,
    /// Start at this instant, such as 2030-01-31T08:00:00Z
    #[arg(long, value_name = "INSTANT", value_parser = duly_core::time::Timestamp::parse)]
    pub(crate) at: Option<duly_core::time::Timestamp>,
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
    /// The task
    #[arg(value_name = "ID")]
    pub(crate) id: TaskId,
    /// JSON for the handler instead of what it had; @FILE reads a file, - standard input
    #[arg(short, long, value_name = "JSON")]
    pub(crate) data: Option<String>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RetryArgs {
    /// The task
    #[arg(value_name = "ID")]
    pub(crate) id: TaskId,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    /// Where the database lives
    #[arg(long, value_name = "DIR", default_value = ".duly", env = "DULY_DATA")]
    pub(crate) data: PathBuf,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// For which shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

fn duration(text: &str) -> Result<Duration, String> {
    let parsed: Result<jiff::SignedDuration, _> = text.parse();
    let parsed = parsed.ok().and_then(|duration| Duration::try_from(duration).ok());
    parsed.ok_or_else(|| "not a duration, such as 500ms, 30s, 2m or PT30S".to_owned())
}

pub(crate) fn session_ttl(text: &str) -> Result<Duration, String> {
    let ttl = duration(text)?;
    let sane = (Duration::from_millis(500)..=Duration::from_secs(3600)).contains(&ttl);
    if sane { Ok(ttl) } else { Err("must be from 500ms to 1h".to_owned()) }
}

fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("not of the form KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

fn concurrency_or_none(text: &str) -> Result<usize, String> {
    if text == "0" { Ok(0) } else { concurrency(text).map_err(|_| at_most("0")) }
}

fn concurrency(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=CONCURRENCY).contains(number));
    number.ok_or_else(|| at_most("1"))
}

fn at_most(least: &str) -> String {
    format!("must be a number from {least} to {CONCURRENCY}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_holds_together() {
        <Args as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, millis) in
            [("500ms", 500), ("30s", 30_000), ("2m", 120_000), ("PT1H", 3_600_000)]
        {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "5", "-1s", "soon"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
