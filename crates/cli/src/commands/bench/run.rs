//! One run: what it measures, how it gets on, and what it has found.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::figures::Figure;
use super::progress::Progress;

/// What the parts of a run share.
pub(super) struct Run {
    scratch: Scratch,
    /// Tasks of one measurement, in whole batches.
    pub(super) tasks: usize,
    pub(super) progress: Progress,
    pub(super) figures: Vec<Figure>,
}

impl Run {
    pub(super) fn new(data: &Path, tasks: usize, steps: usize) -> anyhow::Result<Self> {
        Ok(Self {
            scratch: Scratch::new(data)?,
            tasks: tasks / super::BATCH * super::BATCH,
            progress: Progress::new(steps),
            figures: Vec::new(),
        })
    }

    /// A place for the files of one measurement.
    pub(super) fn folder(&self, name: &str) -> PathBuf {
        self.scratch.root.join(name)
    }

    /// Says what is measured next.
    pub(super) fn step(&self, text: &str) {
        self.progress.step(text);
    }

    pub(super) fn found(&mut self, figure: Figure) {
        self.figures.push(figure);
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
