//! A run ends once: what was committed is what is shown, and a holder that was overtaken is
//! refused.

use duly_core::state::Status;

use super::Case;
use crate::effects::{Ev, Kind};
use crate::judge::book::{Final, Mark, Why};
use crate::judge::class::Class;
use crate::judge::execution::{Execution, of_epoch};
use crate::judge::findings::Findings;

pub(super) fn check(case: &Case<'_>, found: &mut Findings) {
    check_repeats(case, found);
    for execution in case.executions {
        check_stale(case, execution, found);
        if let Some(end) = &case.task.end {
            check_agreement(case, execution, end, found);
        }
    }
    if let Some(end) = case.task.end.as_ref().filter(|end| end.status == Status::Success) {
        // The line of the end is written before the outcome is sent, whatever comes after.
        let ended = of_epoch(case.executions, end.epoch).and_then(|execution| execution.end);
        if ended.is_none() {
            let detail = format!("no worker ended an execution under epoch {}", end.epoch);
            found.add(case.violation(Class::SuccessWithoutExecution, end.at, detail));
        }
    }
}

/// Two accepted outcomes that end one run, or two of one lease.
fn check_repeats(case: &Case<'_>, found: &mut Findings) {
    let accepted = case.task.marks.iter().filter(|mark| mark.ev == Ev::CommitOk);
    let mut ended_runs: Vec<u32> = Vec::new();
    let mut last: Option<&Mark> = None;
    for mark in accepted {
        let run = of_epoch(case.executions, mark.epoch).map_or(0, |it| case.run_of(it));
        let ends = matches!(mark.outcome, Some(Kind::Success | Kind::Fail));
        let again = ends && ended_runs.contains(&run);
        let other = last.is_some_and(|last| {
            let differs = last.proc != mark.proc || last.outcome != mark.outcome;
            last.epoch == mark.epoch && differs
        });
        if again || other {
            let by = case.book.procs.get(mark.proc);
            let detail =
                format!("another outcome, of epoch {} from {by}, was accepted", mark.epoch);
            found.add(case.violation(Class::DoubleOutcome, mark.at, detail));
        }
        if ends {
            ended_runs.push(run);
        }
        last = Some(mark);
    }
}

/// The line of an end is written before its outcome is sent: if a successor had begun by then,
/// the outcome certainly came too late.
fn check_stale(case: &Case<'_>, execution: &Execution, found: &mut Findings) {
    let (Some((at, _)), Some(end), Some(next)) =
        (execution.committed, execution.end, execution.next)
    else {
        return;
    };
    if next < end {
        let epoch = execution.epoch;
        let detail = format!("epoch {epoch} was accepted although a higher one had begun");
        found.add(case.violation(Class::StaleCommit, at, detail));
    }
}

/// Whether what was accepted is what is shown. A task that has not ended is reported by another check.
fn check_agreement(case: &Case<'_>, execution: &Execution, end: &Final, found: &mut Findings) {
    let Some((at, outcome)) = execution.committed else { return };
    if !end.status.is_terminal() || case.run_of(execution) != end.run {
        return;
    }
    let epoch = execution.epoch;
    let is_last = epoch == end.epoch;
    let agrees = match outcome {
        Some(Kind::Success) => is_last && end.status == Status::Success,
        Some(Kind::Fail) => is_last && end.status == Status::Failed,
        // The last retry that a task has left ends it.
        Some(Kind::Retry) | None => !(is_last && end.status == Status::Success),
    };
    let lost = end.why(epoch) == Some(Why::Lost);
    if !agrees || lost {
        let shown =
            if lost { "as lost".to_owned() } else { format!("{} {}", end.status, end.epoch) };
        let outcome = outcome.map_or_else(String::new, |outcome| format!("{outcome:?} "));
        let detail = format!("{outcome}of epoch {epoch} was accepted, and it is shown {shown}");
        found.add(case.violation(Class::DoubleOutcome, at, detail));
    }
}
