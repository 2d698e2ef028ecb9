//! Flags and commands.

mod back_off;
mod backup;
mod bench;
mod bulk;
mod dlq;
mod doctor;
mod filter;
mod handler;
mod id;
mod import;
mod logs;
mod migrate;
mod node;
mod queue;
mod serve;
mod settings;
mod task;
mod worker;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Parser, Subcommand, ValueEnum};
use duly_core::limits::{CONCURRENCY, LOSS_LIMIT, LOSSES};

pub(crate) use self::backup::{BackupArgs, RestoreArgs};
pub(crate) use self::bench::{BenchArgs, BenchStore, Part};
pub(crate) use self::bulk::{BulkArgs, BulkCommand, BulkIdArgs, BulkListArgs, BulkStatusArgs};
pub(crate) use self::dlq::{DlqCommand, DlqGroupsArgs, DlqListArgs, DlqOrderArgs, DlqReplayArgs};
pub(crate) use self::doctor::DoctorArgs;
pub(crate) use self::filter::FilterArgs;
pub(crate) use self::handler::{HandlerCommand, HandlerListArgs, HandlerShowArgs};
pub(crate) use self::id::TaskRef;
pub(crate) use self::import::ImportArgs;
pub(crate) use self::logs::{LogOutput, LogsArgs, WatchArgs};
pub(crate) use self::migrate::{MigrateArgs, MigrateCommand};
pub(crate) use self::node::{NodeCommand, NodeListArgs};
pub(crate) use self::queue::{QueueArgs, QueueCommand, QueueListArgs, QueuePauseArgs};
pub(crate) use self::serve::{LogLevel, ServeArgs};
pub(crate) use self::settings::{
    SettingsCommand, SettingsGetArgs, SettingsHistoryArgs, SettingsRollbackArgs, SettingsSetArgs,
};
pub(crate) use self::task::{
    AttemptsArgs, CancelArgs, DeleteArgs, EditArgs, ExplainArgs, GetArgs, ListArgs, ReplayArgs,
    RetryArgs, RunArgs, TaskCommand,
};
pub(crate) use self::worker::{WorkerCommand, WorkerDrainArgs, WorkerListArgs, WorkerRunArgs};

/// A task scheduler that starts with nothing else installed.
#[derive(Debug, Parser)]
#[command(name = "duly", version, arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct Args {
    /// Say more on standard error; twice for even more
    #[arg(short, long, action = ArgAction::Count, global = true)]
    pub(crate) verbose: u8,
    /// Print without colours, as with NO_COLOR=1
    #[arg(long, global = true)]
    pub(crate) no_color: bool,
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
    /// Run tasks in another process or on another machine; list and drain workers
    #[command(subcommand)]
    Worker(WorkerCommand),
    /// Describe the built-in task types: payload, result, errors, examples
    #[command(subcommand)]
    Handler(HandlerCommand),
    /// Change the schema of a shared database before the nodes do
    #[command(subcommand)]
    Migrate(MigrateCommand),
    /// Copy the store of a server while it works, or a database that no server has open
    Backup(BackupArgs),
    /// Put a backup in place, for a server that is not running
    Restore(RestoreArgs),
    /// Check this machine, the store and the server
    Doctor(DoctorArgs),
    /// Measure this machine: what the engine reaches beside a bare store
    Bench(BenchArgs),
    /// Print a script that completes commands and flags in a shell
    Completions(CompletionsArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct DevArgs {
    /// Where to listen; port 0 picks a free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8080", value_parser = listen)]
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
    pub(crate) planted_bug: Option<duly_store::planted::PlantedBug>,
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

/// Names other than this machine's own are not looked up: they may change, and a listener does not.
pub(crate) fn listen(text: &str) -> Result<SocketAddr, String> {
    let near = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    let address = near.as_deref().unwrap_or(text).parse();
    address.map_err(|_| "not an address and a port, such as 127.0.0.1:8080".to_owned())
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
    fn this_machine_may_be_called_by_its_name() {
        assert_eq!(listen("localhost:0"), Ok(SocketAddr::from(([127, 0, 0, 1], 0))));
        assert_eq!(listen("[::1]:80").map(|it| it.to_string()), Ok("[::1]:80".to_owned()));
        for text in ["", "8080", "localhost", "db:8080", "127.0.0.1:port"] {
            assert!(listen(text).unwrap_err().contains("127.0.0.1:8080"), "{text}");
        }
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
