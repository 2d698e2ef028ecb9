//! Flags of `duly bench`.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use super::{Output, duration, label};
use crate::exit::Usage;
use crate::wiring::{StoreLocation, StoreUrl};

#[derive(Debug, clap::Args)]
pub(crate) struct BenchArgs {
    /// The store to measure: `sqlite:DIR` creates files in this directory, on the disk to measure,
    /// and removes them; `postgres://…` creates databases on this server and removes them, which
    /// the user must be allowed to do
    ///
    /// Ignores DULY_STORE, so that the load never hits the store of your nodes by accident
    #[arg(
        long,
        value_name = "URL",
        default_value = "sqlite:.",
        env = "DULY_BENCH_STORE",
        hide_env_values = true
    )]
    pub(crate) store: StoreUrl,
    /// Measure only these parts
    #[arg(long, value_enum, value_name = "PART,…", value_delimiter = ',')]
    pub(crate) only: Vec<Part>,
    /// Tasks per measurement; with `--only queries`, ten times as many ended tasks and twice as many
    /// waiting ones
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = tasks)]
    pub(crate) tasks: usize,
    /// Sizes of the backlog whose effect is measured, in ascending order
    #[arg(
        long,
        value_name = "N,…",
        value_delimiter = ',',
        default_values_t = [100_000, 1_000_000],
        value_parser = tasks
    )]
    pub(crate) backlog: Vec<usize>,
    /// How long `--only held` holds a transaction open, twice
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = hold)]
    pub(crate) hold: Duration,
    /// Save the run to this file as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// Save this label with the run, such as commit=4f2a91c; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    pub(crate) labels: Vec<(String, String)>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

/// Where a run creates its stores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BenchStore {
    /// As files in this directory.
    Folder(PathBuf),
    /// As databases on this server.
    Server(StoreUrl),
}

impl BenchArgs {
    /// Interprets the address of the store.
    pub(crate) fn bench_store(&self) -> Result<BenchStore, Usage> {
        match self.store.clone().location()? {
            StoreLocation::Sqlite(folder) => Ok(BenchStore::Folder(folder)),
            StoreLocation::Postgres(url) => Ok(BenchStore::Server(url)),
        }
    }
}

/// A part of the benchmark. The limit is measured if a part compares itself with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// The cost of many waiting tasks and many lanes
    Growth,
    /// The engine in process
    Engine,
    /// The server over HTTP
    Rest,
    /// A remote worker over HTTP
    Remote,
    /// What the check of tokens costs, and what slow connections cost others
    Auth,
    /// Idle latency and lateness
    Punctuality,
    /// Chains, fan-outs and fan-ins of dependent tasks
    Workflows,
    /// A hundred thousand schedules, and five hundred that fire every second
    Schedules,
    /// Sinks of events and open streams
    Events,
    /// Memory of an idle server, and how soon the tasks of a dead worker run again
    Recovery,
    /// Queries on a file of a million tasks; takes a minute and a gigabyte, only with `--only`
    Queries,
    /// The cost of a transaction held open on the server; only with `--only`
    Held,
}

fn tasks(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1_000..=100_000_000).contains(number));
    number.ok_or_else(|| "must be a number from 1000 to 100000000".to_owned())
}

fn hold(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    let is_in_range = (Duration::from_secs(1)..=Duration::from_secs(3600)).contains(&time);
    if is_in_range { Ok(time) } else { Err("must be from 1s to 1h".to_owned()) }
}
