//! Everything about a run that explains its figures later: the command, the program, the machine.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use duly_core::ports::clock::Clock as _;
use duly_store::clock::SystemClock;
use duly_store::postgres::database;
use serde::Serialize;

use super::figures::Figure;
use super::machine::{self, Machine};
use crate::args::{BenchArgs, BenchStore};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BenchReport {
    command: String,
    date: String,
    version: &'static str,
    /// Labels of the caller.
    labels: BTreeMap<String, String>,
    store: String,
    machine: Machine,
    load_average: Load,
    figures: Vec<Figure>,
}

/// The load average: one or two processes are our own.
#[derive(Debug, Serialize)]
struct Load {
    before: Option<f64>,
    after: Option<f64>,
}

impl BenchReport {
    pub(super) async fn begin(args: &BenchArgs, store: &BenchStore) -> anyhow::Result<Self> {
        let (store, machine) = match store {
            BenchStore::Folder(folder) => {
                std::fs::create_dir_all(folder)
                    .with_context(|| format!("cannot create {}", folder.display()))?;
                (format!("SQLite {}", duly_store::sqlite::version()), Machine::read(Some(folder)))
            }
            BenchStore::Server(url) => {
                let version = database::version(url.reveal()).await?;
                (format!("PostgreSQL {version}"), Machine::read(None))
            }
        };
        Ok(Self {
            command: command(),
            date: SystemClock::default().now().to_string(),
            version: env!("CARGO_PKG_VERSION"),
            labels: args.labels.iter().cloned().collect(),
            store,
            machine,
            load_average: Load { before: machine::load_average(), after: None },
            figures: Vec::new(),
        })
    }

    pub(super) fn end(&mut self, figures: Vec<Figure>) {
        self.load_average.after = machine::load_average();
        self.figures = figures;
    }

    pub(super) fn figures(&self) -> &[Figure] {
        &self.figures
    }

    /// Saves the report to a file.
    pub(super) fn save(&self, path: &Path) -> anyhow::Result<()> {
        let cannot = || format!("cannot write {}", path.display());
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).with_context(cannot)?;
        }
        let text = serde_json::to_string_pretty(self)? + "\n";
        std::fs::write(path, text).with_context(cannot)
    }
}

/// The command line, without the program's path and without passwords.
fn command() -> String {
    let mut words: Vec<_> =
        std::env::args_os().map(|word| without_server(&word.to_string_lossy())).collect();
    if let Some(program) = words.first_mut() {
        "duly".clone_into(program);
    }
    words.join(" ")
}

/// The address of a server may contain a password.
fn without_server(word: &str) -> String {
    match word.split_once("://") {
        Some((scheme, _)) => format!("{scheme}://…"),
        None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_kept() {
        assert_eq!(without_server("--store=postgres://a:secret@h/b"), "--store=postgres://…");
        assert_eq!(without_server("sqlite:target"), "sqlite:target");
    }
}
