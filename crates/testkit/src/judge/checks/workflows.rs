//! Workflows: an acknowledged one is there once and whole, and it has ended as follows from its
//! tasks.

use duly_core::id::WorkflowId;
use duly_core::workflow::WorkflowStatus;

use super::MS;
use crate::history::ShownWorkflow;
use crate::judge::book::{Book, Task};
use crate::judge::class::Class;
use crate::judge::execution::{executions, of_epoch};
use crate::judge::findings::{Findings, Violation};
use crate::judge::workflows::Workflow;

/// One workflow and what surrounds it.
struct Case<'a> {
    book: &'a Book,
    workflow: &'a Workflow,
}

pub(super) fn check(book: &Book, found: &mut Findings) {
    for workflow in book.workflows.all() {
        let case = Case { book, workflow };
        check_sets(&case, found);
        if let Some((at, shown)) = &workflow.shown {
            check_members(&case, *at, shown.workflow, found);
            check_end(&case, *at, shown, found);
        }
        check_cancel(&case, found);
    }
}

impl Case<'_> {
    fn violation(&self, class: Class, at: u64, detail: String) -> Violation {
        let keys = vec![self.workflow.name.to_string()];
        Violation { class, detail, mono_ns: at, tasks: Vec::new(), keys }
    }
}

fn check_sets(case: &Case<'_>, found: &mut Findings) {
    let Workflow { acked_at, ids, shown, .. } = case.workflow;
    let at = shown.as_ref().map_or(0, |(at, _)| *at);
    if shown.is_some() && !case.workflow.may_exist() {
        let detail = "no submit was sent that can have made the workflow".to_owned();
        found.add(case.violation(Class::Invented, at, detail));
    }
    if let Some(at) = acked_at.filter(|_| shown.is_none()) {
        let detail = "the workflow was acknowledged and is not shown at the end".to_owned();
        found.add(case.violation(Class::Lost, at, detail));
    }
    if ids.len() > 1 {
        let detail = format!("one key led to the workflows {ids:?}");
        found.add(case.violation(Class::Duplicated, at, detail));
    }
}

/// A workflow is stored with all its tasks or not at all, also if its submit was never answered.
fn check_members(case: &Case<'_>, at: u64, id: WorkflowId, found: &mut Findings) {
    for place in &case.workflow.members {
        let key = &case.book.keys[*place];
        let end = key.shown.and_then(|task| case.book.find(task)).and_then(|it| it.end.as_ref());
        if end.is_none_or(|end| end.workflow != Some(id)) {
            let detail = format!("the workflow does not have its task {}", key.name);
            found.add(case.violation(Class::Lost, at, detail));
        }
    }
}

fn check_end(case: &Case<'_>, at: u64, shown: &ShownWorkflow, found: &mut Findings) {
    let ended = |task: &&Task| task.end.as_ref().is_some_and(|end| end.status.is_terminal());
    let open = case.workflow.tasks(case.book).filter(|task| !ended(task)).count();
    let status = shown.status;
    let is_open = status == WorkflowStatus::Running || shown.open > 0;
    let detail = match (is_open, open) {
        // The tasks that have not ended are reported themselves.
        (true, 1..) => return,
        (true, 0) => format!("it is {status}, {} open, and all its tasks have ended", shown.open),
        (false, 1..) => format!("it is {status}, and {open} of its tasks have not ended"),
        (false, 0) if is_right(case, status) => return,
        (false, 0) => {
            let unhandled = case.workflow.unhandled_failures(case.book);
            let asked = if case.workflow.cancel_asked { "a" } else { "no" };
            format!("it is {status}, with {unhandled} unhandled failures and {asked} cancel")
        }
    };
    found.add(case.violation(Class::WorkflowEnd, at, detail));
}

/// Whether all its tasks may have led to this end. A cancel whose answer is unknown may have come
/// too late.
fn is_right(case: &Case<'_>, status: WorkflowStatus) -> bool {
    let has_failed = case.workflow.unhandled_failures(case.book) > 0;
    let by_tasks = if has_failed { WorkflowStatus::Failed } else { WorkflowStatus::Success };
    match case.workflow.cancelled_at {
        Some(_) => status == WorkflowStatus::Cancelled,
        None if status == WorkflowStatus::Cancelled => case.workflow.cancel_asked,
        None => status == by_tasks,
    }
}

/// A cancelled workflow releases nothing more: no task runs that still waited for another one when
/// the cancel was acknowledged.
fn check_cancel(case: &Case<'_>, found: &mut Findings) {
    let Some(cancelled) = case.workflow.cancelled_at else { return };
    for place in &case.workflow.members {
        let key = &case.book.keys[*place];
        let Some(task) = key.task().and_then(|id| case.book.find(id)) else { continue };
        let Some(start) = executions(&task.marks).iter().filter_map(|it| it.start).min() else {
            continue;
        };
        let ends = key.needs.iter().filter_map(|(parent, _)| last_end(case.book, *parent));
        if let Some(end) = ends.max().filter(|end| *end > cancelled) {
            let late = (end - cancelled) / MS;
            let detail = format!(
                "it ran, and waited for a task that ended {late} ms after the cancel of its workflow"
            );
            let tasks = vec![task.id];
            let violation = case.violation(Class::CancelUndone, start, detail);
            found.add(Violation { tasks, ..violation });
        }
    }
}

/// When the last execution of the task of this key ended, if a worker says so.
fn last_end(book: &Book, key: usize) -> Option<u64> {
    let task = book.find(book.keys[key].task()?)?;
    of_epoch(&executions(&task.marks), task.end.as_ref()?.epoch)?.end
}
