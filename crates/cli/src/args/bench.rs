//! Flags of `duly bench`.

use std::path::PathBuf;

use clap::ValueEnum;

use super::{Output, label};

#[derive(Debug, clap::Args)]
pub(crate) struct BenchArgs {
    /// What to measure: `sqlite:DIR` makes fresh files in this directory, on the disk that is to be
    /// measured, and removes them
    #[arg(long, value_name = "URL", default_value = "sqlite:.", value_parser = store)]
    pub(crate) store: BenchStore,
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

/// The store that is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BenchStore {
    /// Where the files of the run go.
    pub(crate) folder: PathBuf,
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
}

fn tasks(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1_000..=100_000_000).contains(number));
    number.ok_or_else(|| "must be a number from 1000 to 100000000".to_owned())
}

fn store(text: &str) -> Result<BenchStore, String> {
    let folder = text.strip_prefix("sqlite:").filter(|folder| !folder.is_empty());
    let folder = folder.ok_or("not of the form sqlite:DIR")?;
    Ok(BenchStore { folder: PathBuf::from(folder) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_named_by_its_kind() {
        let folder = |text| store(text).map(|store| store.folder);
        assert_eq!(folder("sqlite:target/x"), Ok(PathBuf::from("target/x")));
        for text in ["", "sqlite:", "target", "mysql://localhost/"] {
            assert!(folder(text).is_err(), "{text}");
        }
    }
}
