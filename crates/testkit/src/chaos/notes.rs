//! What the harness writes down of its faults, and what it reads of the workers' effects.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::effects::{Effect, Ev};
use crate::history::{Edge, Fault, FaultKind, file};
use crate::journal::{Journal, Line};
use crate::wait::eventually;
use crate::worker;

/// The two files.
pub(super) struct Notes {
    effects: PathBuf,
    journal: Journal,
}

impl Notes {
    pub(super) fn open(folder: &Path) -> anyhow::Result<Self> {
        let journal = Journal::open(&folder.join(file::NEMESIS))?;
        Ok(Self { effects: folder.join(file::EFFECTS), journal })
    }

    pub(super) fn effects(&self) -> &Path {
        &self.effects
    }

    /// Writes a fault down, with what was under way.
    pub(super) fn fault(&self, fault: FaultKind, target: &str, phase: Edge) -> anyhow::Result<()> {
        let in_flight = if phase == Edge::Begin { self.in_flight()? } else { 0 };
        let target = target.to_owned();
        self.journal.write(Fault { fault, target, phase, in_flight })?;
        Ok(())
    }

    /// Executions under way among the last that were written down.
    fn in_flight(&self) -> anyhow::Result<u64> {
        let mut open = HashSet::new();
        for line in worker::last_effects(&self.effects, 2_000)? {
            let Effect { task, epoch, ev, .. } = line.event;
            match ev {
                Ev::Start => open.insert((task, epoch)),
                Ev::End | Ev::CommitOk | Ev::CommitRefused | Ev::CommitUnknown => {
                    open.remove(&(task, epoch))
                }
            };
        }
        Ok(u64::try_from(open.len())?)
    }

    /// Waits until executions end again.
    pub(super) async fn recovered(
        &self,
        after: FaultKind,
        patience: Duration,
    ) -> anyhow::Result<()> {
        let before = std::fs::metadata(&self.effects).map_or(0, |meta| meta.len());
        let commits = || async {
            let news = worker::effects_from(&self.effects, before).unwrap_or_default();
            let is_commit = |line: &Line<Effect>| line.event.ev == Ev::CommitOk;
            news.iter().any(is_commit).then_some(())
        };
        eventually(&format!("work goes on after {after:?}"), patience, commits).await
    }
}
