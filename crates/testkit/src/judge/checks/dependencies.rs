//! Dependencies: a task runs only after those that it depends on have ended, and only if they ended as
//! it asks.

use duly_core::id::TaskId;
use duly_core::state::Status;
use duly_core::workflow::Condition;

use super::{Case, MS};
use crate::judge::book::Book;
use crate::judge::class::Class;
use crate::judge::execution::{executions, of_epoch};
use crate::judge::findings::Findings;

pub(super) fn check(case: &Case<'_>, found: &mut Findings) {
    let Some(end) = &case.task.end else { return };
    let Some(start) = case.executions.iter().filter_map(|it| it.start).min() else { return };
    for (parent, on) in &end.dependencies {
        let Some((status, ended_at)) = ended(case.book, *parent) else { continue };
        if !on.holds(status) {
            let detail = format!("it ran although task {parent}, which must {on}, is {status}");
            found.add(case.violation(Class::ChildBeforeParent, start, detail));
        }
        // The end of an execution is written before its outcome is sent, so the commit came later.
        if let Some(ended_at) = ended_at.filter(|ended_at| start < *ended_at) {
            let early = (ended_at - start) / MS;
            let detail = format!("it began {early} ms before task {parent} had ended");
            found.add(case.violation(Class::ChildBeforeParent, start, detail));
        }
    }
}

/// How a task ended, and when its last execution did, if a worker says so.
fn ended(book: &Book, id: TaskId) -> Option<(Status, Option<u64>)> {
    let task = book.find(id)?;
    let end = task.end.as_ref()?;
    let ended_at = of_epoch(&executions(&task.marks), end.epoch).and_then(|it| it.end);
    Some((end.status, ended_at.filter(|_| end.status != Status::Cancelled)))
}

/// Whether a task may have been cancelled because of the tasks that it depends on.
pub(super) fn may_be_cancelled(book: &Book, dependencies: &[(TaskId, Condition)]) -> bool {
    dependencies
        .iter()
        .any(|(parent, on)| ended(book, *parent).is_some_and(|(it, _)| !on.holds(it)))
}
