//! One run: its stores, its progress and its figures.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;

use super::figures::Figure;
use super::progress::Progress;
use super::store_site::StoreSite;
use crate::args::BenchStore;
use crate::wiring::Database;

/// The state that the parts of a run share.
pub(super) struct Run {
    stores: StoreFactory,
    /// Tasks of one measurement, in whole batches.
    pub(super) tasks: usize,
    pub(super) progress: Progress,
    pub(super) figures: Vec<Figure>,
}

impl Run {
    pub(super) fn new(store: &BenchStore, tasks: usize, steps: usize) -> anyhow::Result<Self> {
        Ok(Self {
            stores: StoreFactory::new(store)?,
            tasks: tasks / super::BATCH * super::BATCH,
            progress: Progress::new(steps),
            figures: Vec::new(),
        })
    }

    /// Creates a location for the store of one measurement.
    pub(super) async fn new_site(&self, name: &str) -> anyhow::Result<StoreSite> {
        match &self.stores {
            StoreFactory::Folder(scratch) => Ok(StoreSite::Folder(scratch.root.join(name))),
            StoreFactory::Server(server) => {
                let name = format!("duly_bench_{}_{}", std::process::id(), name.replace('-', "_"));
                Ok(StoreSite::Database(Arc::new(Database::make(server, &name).await?)))
            }
        }
    }

    /// The directory of the run, if it has one.
    pub(super) fn folder(&self) -> Option<&Path> {
        match &self.stores {
            StoreFactory::Folder(scratch) => Some(&scratch.root),
            StoreFactory::Server(_) => None,
        }
    }

    /// Chooses a value by the kind of store.
    pub(super) fn per_store<T>(&self, file: T, server: T) -> T {
        match &self.stores {
            StoreFactory::Folder(_) => file,
            StoreFactory::Server(_) => server,
        }
    }

    /// Starts the next step.
    pub(super) fn step(&self, text: &str) {
        self.progress.step(text);
    }

    pub(super) fn add(&mut self, figure: Figure) {
        self.figures.push(figure);
    }
}

/// Creates the stores of a run.
enum StoreFactory {
    Folder(Scratch),
    /// The address of a server on which the run creates and removes databases.
    Server(String),
}

impl StoreFactory {
    fn new(store: &BenchStore) -> anyhow::Result<Self> {
        match store {
            BenchStore::Folder(folder) => Ok(Self::Folder(Scratch::new(folder)?)),
            BenchStore::Server(url) => Ok(Self::Server(url.reveal().to_owned())),
        }
    }
}

/// The directory of a run: one fresh folder per measurement, removed at the end.
struct Scratch {
    root: PathBuf,
}

impl Scratch {
    fn new(data: &Path) -> anyhow::Result<Self> {
        let root = data.join(format!("bench-{}", std::process::id()));
        std::fs::create_dir_all(&root)
            .with_context(|| format!("cannot create {}", root.display()))?;
        Ok(Self { root })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.root));
    }
}
