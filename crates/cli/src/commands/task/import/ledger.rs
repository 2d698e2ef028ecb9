//! What became of the lines, in their order: counted, listed where they were rejected, and noted
//! in the checkpoint.

use super::checkpoint::{Checkpoint, Keeper};
use super::progress::Progress;
use super::reader::{Position, Rejection};
use super::rejected::Rejected;
use super::sender::{Answered, Taken};
use crate::args::{ImportArgs, Output};
use crate::output;

/// Rejected lines that are spelled out; the list has them all.
const SPELLED_OUT: u64 = 20;

/// The books of one import.
pub(super) struct Ledger<'a> {
    args: &'a ImportArgs,
    progress: &'a Progress,
    pub(super) checkpoint: Checkpoint,
    keeper: Keeper,
    pub(super) rejected: Rejected,
    told: u64,
}

impl<'a> Ledger<'a> {
    /// Opens the books, and writes the first checkpoint: where that fails, nothing was sent.
    pub(super) fn open(
        args: &'a ImportArgs,
        progress: &'a Progress,
        checkpoint: Checkpoint,
        mut keeper: Keeper,
        rejected: Rejected,
    ) -> anyhow::Result<Self> {
        keeper.save(&checkpoint)?;
        Ok(Self { args, progress, checkpoint, keeper, rejected, told: 0 })
    }

    /// Settles the next batch. Returns whether the import may go on.
    pub(super) fn settle(&mut self, answered: Answered) -> anyhow::Result<bool> {
        let Answered { batch, answers } = answered;
        let mut ids = Vec::with_capacity(answers.len());
        let mut rejections = batch.bad;
        for (before, answer) in batch.places.into_iter().zip(answers) {
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
            self.tell(rejection);
        }
        self.rejected.add(&rejections)?;
        self.checkpoint.at = batch.end;
        self.count(ids.iter().map(|(_, taken)| taken));
        self.checkpoint.rejected += rejections.len() as u64;
        self.checkpoint.rejected_bytes = self.rejected.bytes();
        self.progress.show(self.checkpoint.at);
        self.keeper.save_now_and_then(&self.checkpoint)?;
        Ok(true)
    }

    /// Whether another process can go on where this one ends.
    pub(super) fn is_kept(&self) -> bool {
        self.keeper.is_kept()
    }

    /// Writes down how far it came.
    pub(super) fn save(&mut self) -> anyhow::Result<()> {
        self.keeper.save(&self.checkpoint)
    }

    /// The next start begins with this line again, so it does not count yet.
    fn stop_at(&mut self, first: &Rejection, ids: &[(Position, Taken)]) -> anyhow::Result<()> {
        let earlier = ids.iter().filter(|(before, _)| before.line < first.before.line);
        self.count(earlier.map(|(_, taken)| taken));
        self.checkpoint.at = first.before;
        self.tell(first);
        self.rejected.add(std::slice::from_ref(first))
    }

    fn count<'t>(&mut self, taken: impl Iterator<Item = &'t Taken>) {
        for taken in taken {
            let sum = &mut self.checkpoint;
            *(if taken.existed { &mut sum.existing } else { &mut sum.submitted }) += 1;
        }
    }

    fn print(&self, ids: &[(Position, Taken)]) -> anyhow::Result<()> {
        if self.args.client.output != Output::Id || ids.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = ids.iter().map(|(_, taken)| taken.id.to_string()).collect();
        self.progress.aside(|| output::data(&ids.join("\n")))
    }

    fn tell(&mut self, rejection: &Rejection) {
        // Without a list this is the only place where they are named.
        let Some(path) = self.rejected.path() else { return self.spell_out(rejection) };
        match self.told {
            0..SPELLED_OUT => self.spell_out(rejection),
            SPELLED_OUT => self.progress.say(&format!("and more: see {}", path.display())),
            _ => {}
        }
        self.told += 1;
    }

    fn spell_out(&self, rejection: &Rejection) {
        let Rejection { before, problem } = rejection;
        self.progress.say(&format!("line {} was rejected: {problem}", before.line + 1));
    }
}
