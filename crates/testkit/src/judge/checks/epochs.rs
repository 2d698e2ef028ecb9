//! Leases: each is executed once, epochs rise, executions overlap only where the first one was
//! lost, none begins early, and none follows another without a cause.

use duly_core::state::Status;

use super::{Case, MS};
use crate::effects::{Ev, NODES};
use crate::judge::book::Why;
use crate::judge::class::Class;
use crate::judge::execution::Execution;
use crate::judge::faults::Spell;
use crate::judge::findings::Findings;

/// How much a start may seem early: servers keep times in whole milliseconds.
const EARLY_TOLERANCE: i128 = MS as i128;

pub(super) fn check(case: &Case<'_>, found: &mut Findings) {
    check_repeats(case, found);
    check_early(case, found);
    let mut by_start: Vec<_> = case.executions.iter().filter(|it| it.start.is_some()).collect();
    by_start.sort_by_key(|execution| execution.start);
    check_order(case, &by_start, found);
    for (place, execution) in by_start.iter().enumerate() {
        check_overlap(case, execution, &by_start[place + 1..], found);
        check_successor(case, execution, found);
    }
    check_run(case, found);
}

fn check_repeats(case: &Case<'_>, found: &mut Findings) {
    let starts: Vec<_> = case.task.marks.iter().filter(|mark| mark.ev == Ev::Start).collect();
    for pair in starts.windows(2).filter(|pair| pair[0].epoch == pair[1].epoch) {
        let [first, second] = [pair[0], pair[1]].map(|mark| case.book.procs.get(mark.proc));
        let detail = format!("{first} and {second} started epoch {}", pair[1].epoch);
        found.add(case.violation(Class::SameEpochTwice, pair[1].at, detail));
    }
}

fn check_early(case: &Case<'_>, found: &mut Findings) {
    let Some(key) = case.key else { return };
    // Both on the monotonic clock. A start at an instant is judged by the real-time clock of the
    // machine, a delay by the client's send time: neither asks the server what time it is.
    let at =
        key.run_at.map(|at| i128::from(at) * i128::from(MS) - case.book.run.real_minus_mono_ns);
    let delayed = key.delayed_until.map(i128::from);
    for (due, since) in [(at, "the time that was asked for"), (delayed, "the send time + delay")] {
        let Some(due) = due else { continue };
        for execution in case.executions {
            let Some(start) = execution.start else { continue };
            let early = due - i128::from(start);
            if early > EARLY_TOLERANCE {
                let (epoch, ms) = (execution.epoch, early / 1_000_000);
                let detail = format!("epoch {epoch} began {ms} ms before {since}");
                found.add(case.violation(Class::EarlyStart, start, detail));
            }
        }
    }
}

/// A worker may get a lease, be paused or cut off before it starts it, and start it late, before it
/// hears that the lease is gone. Its outcome must then be refused, which another check looks at.
fn check_order(case: &Case<'_>, by_start: &[&Execution], found: &mut Findings) {
    let Some((first, rest)) = by_start.split_first() else { return };
    let mut highest = *first;
    for &execution in rest {
        if execution.epoch > highest.epoch {
            highest = execution;
            continue;
        }
        let (from, at) = (highest.start.unwrap_or(0), execution.start.unwrap_or(0));
        let from = from.saturating_sub(2 * case.book.ttl());
        let worker = case.worker(execution);
        if !case.book.faults.any(from, at, |spell| spell.silences(worker)) {
            let detail = format!("epoch {} began after {}", execution.epoch, highest.epoch);
            found.add(case.violation(Class::EpochWentBack, at, detail));
        }
    }
    let shown = case.task.end.as_ref().filter(|end| end.epoch < highest.epoch);
    if let Some(end) = shown {
        let detail = format!("epoch {} began, and {} is shown", highest.epoch, end.epoch);
        found.add(case.violation(Class::EpochWentBack, end.at, detail));
    }
}

fn check_overlap(
    case: &Case<'_>,
    execution: &Execution,
    later: &[&Execution],
    found: &mut Findings,
) {
    let until = execution.lasts_until(case.book);
    let within = |other: &&&Execution| other.start.is_some_and(|start| start < until);
    let mut during = later.iter().take_while(within);
    let Some(successor) = during.find(|other| other.epoch > execution.epoch) else { return };
    let at = successor.start.unwrap_or(0);
    if !is_explained(case, execution, at) {
        let (epoch, next) = (execution.epoch, successor.epoch);
        let detail = format!("epoch {next} began while {epoch} ran, which was not lost");
        found.add(case.violation(Class::Overlap, at, detail));
    }
}

/// A successor needs a cause: the execution before it is noted as failed or lost, or a fault came
/// between that can have taken its lease away before the server knew of its start. A task that was
/// released twice has none.
fn check_successor(case: &Case<'_>, execution: &Execution, found: &mut Findings) {
    let (Some(end), Some(start), Some(next)) = (&case.task.end, execution.start, execution.next)
    else {
        return;
    };
    let has_cause = has_died(case, execution, start, next) || is_explained(case, execution, next);
    if execution.is_followed_unnoted(case.book, end) && !has_cause {
        let detail = format!("epoch {} was followed by another without a cause", execution.epoch);
        found.add(case.violation(Class::ReleasedTwice, next, detail));
    }
}

/// Whether the process of an execution may have ended before `next`, and its lease with it. Of those
/// that nodes ran it is unknown in which node, and a node that cannot reach its database loses them.
fn has_died(case: &Case<'_>, execution: &Execution, start: u64, next: u64) -> bool {
    let from = start.min(next).saturating_sub(2 * case.book.ttl());
    let proc = case.book.procs.get(execution.proc);
    let is_own = |spell: &Spell| spell.target == proc.worker || proc.worker == NODES;
    proc.gone.is_some_and(|gone| gone <= next)
        || case.book.faults.any(from, next, |spell| is_own(spell) && spell.harms(&proc.worker))
}

/// No client runs a task of a workflow again.
fn check_run(case: &Case<'_>, found: &mut Findings) {
    let Some(end) = case.task.end.as_ref().filter(|end| end.run > 1) else { return };
    if case.workflow().is_some() {
        let detail = format!("run {} is shown, and no client asked for it", end.run);
        found.add(case.violation(Class::ReleasedTwice, end.at, detail));
    }
}

/// Whether anything tells why a successor was granted, which began at `next`.
fn is_explained(case: &Case<'_>, execution: &Execution, next: u64) -> bool {
    let Some(end) = &case.task.end else { return true };
    let was_lost = matches!(end.why(execution.epoch), Some(Why::Lost | Why::Timeout));
    if was_lost || end.is_cut() || end.status == Status::Cancelled {
        return true;
    }
    // A worker that falls silent before it can say that it has started a lease is taken by its last
    // word: the lease goes back as not started, and nothing is noted.
    let (start, ttl) = (execution.start.unwrap_or(0), case.book.ttl());
    let (faults, worker) = (&case.book.faults, case.worker(execution));
    let (from, to) = (start.saturating_sub(2 * ttl), start.saturating_add(ttl));
    let was_silent = faults.any(from, to, |spell| spell.silences(worker));
    // A server that was started again has forgotten what the worker said, also which leases it had
    // received: if the worker is silent then, they go back as if they had never arrived.
    let was_forgotten = faults.any(start, next, |spell| spell.ends_server())
        && faults.any(start, next, |spell| spell.silences(worker));
    was_silent || was_forgotten
}
