//! The executions of one task, put together from the lines of its workers.

use duly_core::state::Status;

use super::book::{Book, Final, Mark};
use crate::effects::{Ev, Kind};

/// What became of one lease, as its worker tells it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Execution {
    pub(super) epoch: u32,
    /// Zero where it is not known.
    pub(super) run: u32,
    /// The process that started it, or else the one that wrote its first line.
    pub(super) proc: usize,
    pub(super) start: Option<u64>,
    pub(super) end: Option<u64>,
    /// When an outcome was accepted first, and which.
    pub(super) committed: Option<(u64, Option<Kind>)>,
    pub(super) is_refused: bool,
    /// When the first execution under a higher epoch began.
    pub(super) next: Option<u64>,
}

/// Puts them together, in the order of their epochs; `marks` must be sorted by epoch and time.
pub(super) fn executions(marks: &[Mark]) -> Vec<Execution> {
    let mut list: Vec<_> =
        marks.chunk_by(|one, next| one.epoch == next.epoch).map(execution).collect();
    let mut next: Option<u64> = None;
    for execution in list.iter_mut().rev() {
        execution.next = next;
        next = next.into_iter().chain(execution.start).min();
    }
    list
}

fn execution(marks: &[Mark]) -> Execution {
    let first = |ev: Ev| marks.iter().find(|mark| mark.ev == ev);
    let start = first(Ev::Start);
    Execution {
        epoch: marks[0].epoch,
        run: marks.iter().map(|mark| mark.run).max().unwrap_or(0),
        proc: start.unwrap_or(&marks[0]).proc,
        start: start.map(|mark| mark.at),
        end: first(Ev::End).map(|mark| mark.at),
        committed: first(Ev::CommitOk).map(|mark| (mark.at, mark.outcome)),
        is_refused: first(Ev::CommitRefused).is_some(),
        next: None,
    }
}

impl Execution {
    /// Until when it certainly went on: its end, or that of its process, or for ever.
    pub(super) fn lasts_until(&self, book: &Book) -> u64 {
        let Some(start) = self.start else { return 0 };
        if let Some(end) = self.end {
            return end;
        }
        let proc = book.procs.get(self.proc);
        let death = book.faults.death(&proc.worker, start);
        death.into_iter().chain(proc.gone).min().unwrap_or(u64::MAX)
    }

    /// Whether another one followed it, and the server shows no failure or loss that tells why.
    /// Outcomes that were accepted and overlaps have checks of their own.
    pub(super) fn is_followed_unnoted(&self, book: &Book, end: &Final) -> bool {
        let (Some(_), Some(next)) = (self.start, self.next) else { return false };
        let is_judged = self.committed.is_some() || next < self.lasts_until(book);
        let is_noted = end.why(self.epoch).is_some() || end.is_cut();
        let is_other_run = self.run > 0 && self.run != end.run;
        !(is_judged || is_noted || is_other_run || end.status == Status::Cancelled)
    }
}

/// When the first execution under a higher epoch than this one began.
pub(super) fn start_after(executions: &[Execution], epoch: u32) -> Option<u64> {
    let next = executions.partition_point(|execution| execution.epoch <= epoch);
    let next = executions.get(next)?;
    next.start.into_iter().chain(next.next).min()
}

pub(super) fn of_epoch(executions: &[Execution], epoch: u32) -> Option<&Execution> {
    let place = executions.binary_search_by_key(&epoch, |execution| execution.epoch).ok()?;
    executions.get(place)
}
