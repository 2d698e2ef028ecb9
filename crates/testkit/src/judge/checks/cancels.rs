//! Cancels: a task whose cancel was acknowledged is cancelled and starts no more, and no other task
//! is cancelled.

use duly_core::state::Status;

use super::dependencies::may_be_cancelled;
use super::{Case, MS};
use crate::effects::Ev;
use crate::judge::class::Class;
use crate::judge::findings::Findings;

/// How long after a cancel a worker may start a lease that it was granted before.
const LATE_START: u64 = 2_000 * MS;

pub(super) fn check(case: &Case<'_>, found: &mut Findings) {
    let end = case.task.end.as_ref();
    let is_cancelled = end.is_some_and(|end| end.status == Status::Cancelled);
    let unasked = end.filter(|_| is_cancelled && !case.task.cancel_asked);
    let unasked = unasked.filter(|_| !case.workflow().is_some_and(|it| it.may_cancel(case.book)));
    if let Some(end) = unasked.filter(|end| !may_be_cancelled(case.book, &end.dependencies)) {
        let detail = "no cancel was ever sent".to_owned();
        found.add(case.violation(Class::CancelledUnasked, end.at, detail));
    }
    let Some(cancelled) = case.task.cancelled_at else { return };
    if let Some(end) = end.filter(|_| !is_cancelled) {
        let detail = format!("its cancel was acknowledged, and it is {}", end.status);
        found.add(case.violation(Class::CancelUndone, end.at, detail));
    }
    for start in case.task.marks.iter().filter(|mark| mark.ev == Ev::Start) {
        let worker = &case.book.procs.get(start.proc).worker;
        let is_late = start.at > cancelled.saturating_add(LATE_START);
        // A worker that could not hear of the cancel may start what it held.
        if is_late && !case.book.faults.any(cancelled, start.at, |spell| spell.harms(worker)) {
            let late = (start.at - cancelled) / MS;
            let detail = format!("epoch {} began {late} ms after the cancel", start.epoch);
            found.add(case.violation(Class::CancelUndone, start.at, detail));
        }
    }
}
