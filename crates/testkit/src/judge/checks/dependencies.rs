//! Dependencies: a task runs only after those that it depends on have ended, and only if they ended as
//! it asks. In a workflow it depends on what its submit asked for.

use std::collections::BTreeSet;

use duly_core::id::TaskId;
use duly_core::state::Status;
use duly_core::workflow::Condition;

use super::{Case, MS};
use crate::judge::book::{Book, Final};
use crate::judge::class::Class;
use crate::judge::execution::{executions, of_epoch};
use crate::judge::findings::Findings;

pub(super) fn check(case: &Case<'_>, found: &mut Findings) {
    let Some(end) = &case.task.end else { return };
    check_edges(case, end, found);
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

/// The other checks believe the server which tasks are parents, so this one must not.
fn check_edges(case: &Case<'_>, end: &Final, found: &mut Findings) {
    let Some(key) = case.key.filter(|key| key.workflow.is_some()) else { return };
    let parent = |place: usize| case.book.keys[place].task();
    let asked: BTreeSet<_> = key.needs.iter().map(|(place, on)| (parent(*place), *on)).collect();
    let shown: BTreeSet<_> = end.dependencies.iter().map(|(task, on)| (Some(*task), *on)).collect();
    if asked != shown {
        let (shown, asked) = (shown.len(), asked.len());
        let detail = format!("it depends on {shown} tasks, not on the {asked} that were asked for");
        found.add(case.violation(Class::EdgesChanged, end.at, detail));
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
