//! The checks, each over one task with everything that is known of it.

mod attempts;
mod cancels;
mod dependencies;
mod epochs;
mod leaders;
mod losses;
mod outcomes;
mod sets;
mod workflows;

use super::book::{Book, Key, Task};
use super::class::Class;
use super::execution::{Execution, executions};
use super::findings::{Findings, Violation};
use super::workflows::Workflow;

/// Nanoseconds of a millisecond.
const MS: u64 = 1_000_000;

/// One task and what surrounds it.
struct Case<'a> {
    book: &'a Book,
    task: &'a Task,
    key: Option<&'a Key>,
    executions: &'a [Execution],
}

/// Checks everything.
pub(super) fn all(book: &Book) -> Findings {
    let mut found = Findings::default();
    sets::check_keys(book, &mut found);
    leaders::check(book, &mut found);
    workflows::check(book, &mut found);
    for task in &book.tasks {
        let executions = executions(&task.marks);
        let key = task.key.map(|key| &book.keys[key]);
        let case = Case { book, task, key, executions: &executions };
        for check in [
            sets::check,
            outcomes::check,
            epochs::check,
            losses::check,
            attempts::check,
            cancels::check,
            dependencies::check,
        ] {
            check(&case, &mut found);
        }
    }
    found
}

impl Case<'_> {
    fn violation(&self, class: Class, at: u64, detail: String) -> Violation {
        // The submit of a workflow is a line about each of its tasks.
        let workflow = self.workflow().map(|workflow| &workflow.name);
        let keys = self.key.map(|key| &key.name).into_iter().chain(workflow);
        let keys = keys.map(ToString::to_string).collect();
        Violation { class, detail, mono_ns: at, tasks: vec![self.task.id], keys }
    }

    /// The last epoch that is known to belong to a run before the one that is shown.
    fn epoch_before_run(&self) -> u32 {
        let shown = self.task.end.as_ref().map_or(0, |end| end.run);
        let before = self.executions.iter().filter(|it| it.run > 0 && it.run < shown);
        before.map(|it| it.epoch).max().unwrap_or(0)
    }

    /// The run of an execution; what does not say so belongs to the one that is shown.
    fn run_of(&self, execution: &Execution) -> u32 {
        let shown = self.task.end.as_ref().map_or(0, |end| end.run);
        if execution.run > 0 { execution.run } else { shown }
    }

    /// The workflow that it was submitted with.
    fn workflow(&self) -> Option<&Workflow> {
        let place = self.key.and_then(|key| key.workflow)?;
        self.book.workflows.all().get(place)
    }

    fn worker(&self, execution: &Execution) -> &str {
        &self.book.procs.get(execution.proc).worker
    }
}
