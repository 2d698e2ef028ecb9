//! Flags of `duly bench`.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use super::{Output, duration, label};
use crate::exit::Usage;
use crate::wiring::{StorePlace, StoreUrl};

#[derive(Debug, clap::Args)]
pub(crate) struct BenchArgs {
    /// What to measure: `sqlite:DIR` makes fresh files in this directory, on the disk that is to be
    /// measured, and removes them; `postgres://…` makes fresh databases on this server, whose user
    /// must have the right to, and removes them
    ///
    /// Not taken from DULY_STORE: nobody means to put this load on the store of their nodes
    #[arg(
        long,
        value_name = "URL",
        default_value = "sqlite:.",
        env = "DULY_BENCH_STORE",
        hide_env_values = true
    )]
    pub(crate) store: StoreUrl,
    /// Measure only these
    #[arg(long, value_enum, value_name = "PART,…", value_delimiter = ',')]
    pub(crate) only: Vec<Part>,
    /// Tasks per measurement; with `--only queries`, ten times as many have ended and twice as many
    /// wait
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = tasks)]
    pub(crate) tasks: usize,
    /// How many tasks wait while the effect of that is measured, from few to many
    #[arg(
        long,
        value_name = "N,…",
        value_delimiter = ',',
        default_values_t = [100_000, 1_000_000],
        value_parser = tasks
    )]
    pub(crate) backlog: Vec<usize>,
    /// How long `--only held` holds a transaction open, and then another
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = hold)]
    pub(crate) hold: Duration,
    /// Keep all about the run in this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// What else to keep there, such as commit=4f2a91c; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    pub(crate) labels: Vec<(String, String)>,
    /// How to print on standard output
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

/// Where the stores of a run are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BenchStore {
    /// As files in this directory.
    Folder(PathBuf),
    /// As databases on this server.
    Server(StoreUrl),
}

impl BenchArgs {
    /// What the address of the store means here.
    pub(crate) fn site(&self) -> Result<BenchStore, Usage> {
        match self.store.clone().place()? {
            StorePlace::Sqlite(folder) => Ok(BenchStore::Folder(folder)),
            StorePlace::Postgres(url) => Ok(BenchStore::Server(url)),
        }
    }
}

/// A part of the benchmark; the limit is measured where a figure is set beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// What many waiting tasks and many lanes cost
    Growth,
    /// The engine in process
    Engine,
    /// The server over HTTP
    Rest,
    /// A worker elsewhere, over HTTP
    Remote,
    /// Idle latency and lateness
    Punctuality,
    /// Memory of an idle server, and how soon the tasks of a dead worker run again
    Recovery,
    /// Questions to a file of a million tasks; a minute, a gigabyte, and only when asked for
    Queries,
    /// What a transaction costs that somebody holds open on the server; only when asked for
    Held,
}

fn tasks(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1_000..=100_000_000).contains(number));
    number.ok_or_else(|| "must be a number from 1000 to 100000000".to_owned())
}

fn hold(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    let sane = (Duration::from_secs(1)..=Duration::from_secs(3600)).contains(&time);
    if sane { Ok(time) } else { Err("must be from 1s to 1h".to_owned()) }
}
