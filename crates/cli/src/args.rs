//! Flags and commands.

mod audit;
mod back_off;
mod backup;
mod bench;
mod bulk;
mod dlq;
mod doctor;
mod event;
mod filter;
mod handler;
mod id;
mod import;
mod key;
mod logs;
mod migrate;
mod node;
mod notify;
mod queue;
mod schedule;
mod serve;
mod server;
mod settings;
mod task;
mod tenant;
mod token;
mod worker;
mod workflow;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Parser, Subcommand, ValueEnum};
use duly_core::limits::{CONCURRENCY, LOSS_LIMIT, LOSSES};

pub(crate) use self::audit::AuditArgs;
pub(crate) use self::backup::{BackupArgs, RestoreArgs};
pub(crate) use self::bench::{BenchArgs, BenchStore, Part};
pub(crate) use self::bulk::{BulkArgs, BulkCommand, BulkIdArgs, BulkListArgs, BulkStatusArgs};
pub(crate) use self::dlq::{DlqActionArgs, DlqCommand, DlqGroupsArgs, DlqListArgs, DlqReplayArgs};
pub(crate) use self::doctor::DoctorArgs;
pub(crate) use self::event::{EventCommand, EventSinksArgs, EventTailArgs, SinkArgs};
pub(crate) use self::filter::FilterArgs;
pub(crate) use self::handler::{HandlerCommand, HandlerListArgs, HandlerShowArgs};
pub(crate) use self::id::TaskRef;
pub(crate) use self::import::ImportArgs;
pub(crate) use self::key::{KeyCommand, KeyCreateArgs, KeyListArgs, KeyRevokeArgs};
pub(crate) use self::logs::{LogOutput, LogsArgs, WatchArgs};
pub(crate) use self::migrate::{MigrateArgs, MigrateCommand};
pub(crate) use self::node::{NodeCommand, NodeListArgs};
pub(crate) use self::notify::{NotifyCommand, NotifyOutboxArgs, NotifyPreviewArgs};
pub(crate) use self::queue::{QueueArgs, QueueCommand, QueueListArgs, QueuePauseArgs};
pub(crate) use self::schedule::{
    ScheduleApplyArgs, ScheduleBackfillArgs, ScheduleCommand, ScheduleCreateArgs, ScheduleListArgs,
    ScheduleNameArgs, ScheduleNextArgs, SchedulePauseArgs,
};
pub(crate) use self::serve::{LogLevel, ServeArgs};
pub(crate) use self::server::{CallerArgs, ServerArgs};
pub(crate) use self::settings::{
    SettingsCommand, SettingsGetArgs, SettingsHistoryArgs, SettingsRollbackArgs, SettingsSetArgs,
};
pub(crate) use self::task::{
    AttemptsArgs, CancelArgs, DeleteArgs, EditArgs, ExplainArgs, GetArgs, ListArgs, ReplayArgs,
    RetryArgs, RunArgs, TaskCommand,
};
pub(crate) use self::tenant::{
    TenantCommand, TenantListArgs, TenantNameArgs, TenantPutArgs, TenantSuspendArgs,
};
pub(crate) use self::token::{TokenCommand, TokenCreateArgs};
pub(crate) use self::worker::{WorkerCommand, WorkerDrainArgs, WorkerListArgs, WorkerRunArgs};
pub(crate) use self::workflow::{
    GraphOutput, WorkflowCancelArgs, WorkflowCommand, WorkflowFileArgs, WorkflowGraphArgs,
    WorkflowIdArgs, WorkflowListArgs, WorkflowRunArgs, WorkflowWatchArgs,
};

/// A task scheduler that starts with nothing else installed.
#[derive(Debug, Parser)]
#[command(name = "duly", version, arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct Args {
    /// Log more on standard error; give it twice for details
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
    /// Start a server with API and worker on one SQLite file, on loopback, without keys
    Dev(DevArgs),
    /// Start a node of a cluster that shares a database
    Serve(ServeArgs),
    /// Submit, inspect and control tasks
    #[command(subcommand)]
    Task(TaskCommand),
    /// Submit, draw and control tasks that depend on each other
    #[command(subcommand)]
    Workflow(WorkflowCommand),
    /// Run tasks and workflows at set times: cron, intervals, one-offs
    #[command(subcommand)]
    Schedule(ScheduleCommand),
    /// Apply an action to many tasks
    #[command(subcommand)]
    Bulk(BulkCommand),
    /// Inspect, pause and resume queues
    #[command(subcommand)]
    Queue(QueueCommand),
    /// Inspect, replay and purge the dead-letter queue
    #[command(subcommand)]
    Dlq(DlqCommand),
    /// Follow what happens; list and resume the sinks of events
    #[command(subcommand)]
    Event(EventCommand),
    /// Show and change the settings of the installation, without a restart
    #[command(subcommand)]
    Settings(SettingsCommand),
    /// Show who changed what
    Audit(AuditArgs),
    /// Limit tenants, and suspend them
    #[command(subcommand)]
    Tenant(TenantCommand),
    /// Create, list and revoke API keys
    #[command(subcommand)]
    Key(KeyCommand),
    /// List the nodes of the server
    #[command(subcommand)]
    Node(NodeCommand),
    /// Run a remote worker; list and drain workers
    #[command(subcommand)]
    Worker(WorkerCommand),
    /// Sign tokens for callers of the server
    #[command(subcommand)]
    Token(TokenCommand),
    /// Describe the built-in task types: payload, result, errors, examples
    #[command(subcommand)]
    Handler(HandlerCommand),
    /// Show the mails of `duly dev`, and preview templates of mails
    #[command(subcommand)]
    Notify(NotifyCommand),
    /// Migrate the schema of a shared database
    #[command(subcommand)]
    Migrate(MigrateCommand),
    /// Back up the store of a running server, or a database that no server has open
    Backup(BackupArgs),
    /// Restore a backup while no server runs
    Restore(RestoreArgs),
    /// Check this machine, the store and the server
    Doctor(DoctorArgs),
    /// Measure the engine on this machine and compare it with a bare store
    Bench(BenchArgs),
    /// Print a shell completion script
    Completions(CompletionsArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct DevArgs {
    /// Address to listen on; port 0 picks a free port
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8080", value_parser = listen)]
    pub(crate) listen: SocketAddr,
    /// Data directory
    #[arg(long, value_name = "DIR", default_value = ".duly", env = "DULY_DATA")]
    pub(crate) data: PathBuf,
    /// Running slots (handlers at once) of this process; the setting workerConcurrency overrides it;
    /// 0 leaves all work to remote workers
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = concurrency_or_zero)]
    pub(crate) concurrency: usize,
    /// How long a remote worker may be silent before its tasks go to other workers
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = session_ttl)]
    pub(crate) session_ttl: Duration,
    /// How many workers may die with a task before it fails; the setting lossLimit overrides it
    #[arg(long, value_name = "N", default_value_t = LOSSES,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(LOSS_LIMIT)))]
    pub(crate) loss_limit: u32,
    /// Serve the type shell: every client of this server can run programs as this user
    #[arg(long)]
    pub(crate) allow_shell: bool,
    /// Serve the sample types daily-report, cleanup-temp-files and data-backup, which change nothing
    #[arg(long)]
    pub(crate) samples: bool,
    /// Switch on a bug that the tests must catch
    #[cfg(feature = "planted-bugs")]
    #[arg(long, value_name = "NAME", hide = true)]
    pub(crate) planted_bug: Option<duly_store::planted::PlantedBug>,
    /// Set the clock of the server ahead
    #[cfg(feature = "planted-bugs")]
    #[arg(long, value_name = "DURATION", hide = true, value_parser = duration)]
    pub(crate) clock_ahead: Option<Duration>,
}

/// Flags of every command that calls a server.
#[derive(Debug, clap::Args)]
pub(crate) struct ClientArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

/// The format of data on standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// A table for people
    #[default]
    Table,
    /// All fields as JSON
    Json,
    /// Only the ids
    Id,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let parsed: Result<jiff::SignedDuration, _> = text.parse();
    let parsed = parsed.ok().and_then(|duration| Duration::try_from(duration).ok());
    parsed.ok_or_else(|| "not a duration, such as 500ms, 30s, 2m or PT30S".to_owned())
}

/// Resolves no name but `localhost`: a name may change its address, a listener does not.
pub(crate) fn listen(text: &str) -> Result<SocketAddr, String> {
    let local = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    let address = local.as_deref().unwrap_or(text).parse();
    address.map_err(|_| "not an address and a port, such as 127.0.0.1:8080".to_owned())
}

pub(crate) fn session_ttl(text: &str) -> Result<Duration, String> {
    let ttl = duration(text)?;
    let is_in_range = (Duration::from_millis(500)..=Duration::from_secs(3600)).contains(&ttl);
    if is_in_range { Ok(ttl) } else { Err("must be from 500ms to 1h".to_owned()) }
}

fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("not of the form KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

fn concurrency_or_zero(text: &str) -> Result<usize, String> {
    if text == "0" { Ok(0) } else { concurrency(text).map_err(|_| concurrency_range("0")) }
}

fn concurrency(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=CONCURRENCY).contains(number));
    number.ok_or_else(|| concurrency_range("1"))
}

fn concurrency_range(least: &str) -> String {
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
