//! Records the outcome of each line in order: counts, the list of rejected lines, the checkpoint.

use super::checkpoint::{Checkpoint, CheckpointFile};
use super::progress::Progress;
use super::reader::{Position, Rejection};
use super::rejected::RejectedFile;
use super::sender::{AcceptedTask, AnsweredBatch};
use crate::args::{ImportArgs, Output};
use crate::output;

/// Rejected lines that are printed; the list has all of them.
const PRINTED: u64 = 20;

/// The record of one import.
pub(super) struct Ledger<'a> {
    args: &'a ImportArgs,
    progress: &'a Progress,
    pub(super) checkpoint: Checkpoint,
    checkpoint_file: CheckpointFile,
    pub(super) rejected: RejectedFile,
    printed: u64,
}

impl<'a> Ledger<'a> {
    /// Writes the first checkpoint: if that fails, nothing was sent.
    pub(super) fn open(
        args: &'a ImportArgs,
        progress: &'a Progress,
        checkpoint: Checkpoint,
        mut checkpoint_file: CheckpointFile,
        rejected: RejectedFile,
    ) -> anyhow::Result<Self> {
        checkpoint_file.save(&checkpoint)?;
        Ok(Self { args, progress, checkpoint, checkpoint_file, rejected, printed: 0 })
    }

    /// Records the next batch. Returns whether the import may continue.
    pub(super) fn record(&mut self, answered: AnsweredBatch) -> anyhow::Result<bool> {
        let AnsweredBatch { batch, answers } = answered;
        let mut ids = Vec::with_capacity(answers.len());
        let mut rejections = batch.bad;
        for (before, answer) in batch.positions.into_iter().zip(answers) {
            match answer {
                Ok(taken) => ids.push((before, taken)),
                Err(problem) => rejections.push(Rejection { before, problem }),
            }
        }
        rejections.sort_by_key(|rejection| rejection.before.line);
        self.print(&ids)?;
        if let Some(first) = rejections.first().filter(|_| self.args.strict) {
            self.stop_at(first, &ids)?;
            return Ok(false);
        }
        for rejection in &rejections {
            self.report(rejection);
        }
        self.rejected.add(&rejections)?;
        self.checkpoint.at = batch.end;
        self.count(ids.iter().map(|(_, taken)| taken));
        self.checkpoint.rejected += rejections.len() as u64;
        self.checkpoint.rejected_bytes = self.rejected.bytes();
        self.progress.show(self.checkpoint.at);
        self.checkpoint_file.save_throttled(&self.checkpoint)?;
        Ok(true)
    }

    /// Whether another process can continue this import.
    pub(super) fn is_resumable(&self) -> bool {
        self.checkpoint_file.is_resumable()
    }

    /// Saves the checkpoint.
    pub(super) fn save(&mut self) -> anyhow::Result<()> {
        self.checkpoint_file.save(&self.checkpoint)
    }

    /// The next start repeats this line, so it does not count yet.
    fn stop_at(
        &mut self,
        first: &Rejection,
        ids: &[(Position, AcceptedTask)],
    ) -> anyhow::Result<()> {
        let earlier = ids.iter().filter(|(before, _)| before.line < first.before.line);
        self.count(earlier.map(|(_, taken)| taken));
        self.checkpoint.at = first.before;
        self.report(first);
        self.rejected.add(std::slice::from_ref(first))
    }

    fn count<'t>(&mut self, taken: impl Iterator<Item = &'t AcceptedTask>) {
        for taken in taken {
            let sum = &mut self.checkpoint;
            *(if taken.existed { &mut sum.existing } else { &mut sum.submitted }) += 1;
        }
    }

    fn print(&self, ids: &[(Position, AcceptedTask)]) -> anyhow::Result<()> {
        if self.args.client.output != Output::Id || ids.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = ids.iter().map(|(_, taken)| taken.id.to_string()).collect();
        self.progress.suspend(|| output::data(&ids.join("\n")))
    }

    fn report(&mut self, rejection: &Rejection) {
        // Without a list, standard error has to name all of them.
        let Some(path) = self.rejected.path() else { return self.print_rejection(rejection) };
        match self.printed {
            0..PRINTED => self.print_rejection(rejection),
            PRINTED => self.progress.say(&format!("more rejected lines are in {}", path.display())),
            _ => {}
        }
        self.printed += 1;
    }

    fn print_rejection(&self, rejection: &Rejection) {
        let Rejection { before, problem } = rejection;
        self.progress.say(&format!("line {} was rejected: {problem}", before.line + 1));
    }
}
