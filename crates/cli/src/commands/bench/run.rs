//! One run: what it measures, how it gets on, and what it has found.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;

use super::figures::Figure;
use super::place::Place;
use super::progress::Progress;
use crate::args::BenchStore;
use crate::wiring::Database;

/// What the parts of a run share.
pub(super) struct Run {
    site: Site,
    /// Tasks of one measurement, in whole batches.
    pub(super) tasks: usize,
    pub(super) progress: Progress,
    pub(super) figures: Vec<Figure>,
}

impl Run {
    pub(super) fn new(store: &BenchStore, tasks: usize, steps: usize) -> anyhow::Result<Self> {
        Ok(Self {
            site: Site::new(store)?,
            tasks: tasks / super::BATCH * super::BATCH,
            progress: Progress::new(steps),
            figures: Vec::new(),
        })
    }

    /// A place for the store of one measurement.
    pub(super) async fn place(&self, name: &str) -> anyhow::Result<Place> {
        match &self.site {
            Site::Folder(scratch) => Ok(Place::Folder(scratch.root.join(name))),
            Site::Server(server) => {
                let name = format!("duly_bench_{}_{}", std::process::id(), name.replace('-', "_"));
                Ok(Place::Database(Arc::new(Database::make(server, &name).await?)))
            }
        }
    }

    /// The directory of the run, if it has one.
    pub(super) fn folder(&self) -> Option<&Path> {
        match &self.site {
            Site::Folder(scratch) => Some(&scratch.root),
            Site::Server(_) => None,
        }
    }

    /// What one store must reach and the other.
    pub(super) fn per_store<T>(&self, file: T, server: T) -> T {
        match &self.site {
            Site::Folder(_) => file,
            Site::Server(_) => server,
        }
    }

    /// Says what is measured next.
    pub(super) fn step(&self, text: &str) {
        self.progress.step(text);
    }

    pub(super) fn found(&mut self, figure: Figure) {
        self.figures.push(figure);
    }
}

/// Where the stores of a run are made.
enum Site {
    Folder(Scratch),
    /// The address of a server, on which the run makes databases and removes them.
    Server(String),
}

impl Site {
    fn new(store: &BenchStore) -> anyhow::Result<Self> {
        match store {
            BenchStore::Folder(folder) => Ok(Self::Folder(Scratch::new(folder)?)),
            BenchStore::Server(url) => Ok(Self::Server(url.reveal().to_owned())),
        }
    }
}

/// The directory of a run: one fresh folder per measurement, gone at the end.
struct Scratch {
    root: PathBuf,
}

impl Scratch {
    fn new(data: &Path) -> anyhow::Result<Self> {
        let root = data.join(format!("bench-{}", std::process::id()));
        std::fs::create_dir_all(&root)
            .with_context(|| format!("cannot make {}", root.display()))?;
        Ok(Self { root })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.root));
    }
}
