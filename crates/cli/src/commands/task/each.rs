//! The same for each of several tasks: one that cannot be done does not keep the others from it.

use duly_client::Error;
use duly_client::wire::TaskView;

use crate::args::{Output, TaskRef};
use crate::exit::{self, Ending};
use crate::output;

/// What became of each task.
pub(super) struct Done<T> {
    /// The answers for those for which it could be done, in their order.
    pub(super) tasks: Vec<T>,
    /// How the command ends: as the first failure says, if there was one.
    pub(super) ending: Ending,
    /// Whether more than one was asked for.
    are_many: bool,
}

/// Calls this for every task, and tells for which of them it failed.
pub(super) async fn each<T>(
    ids: &[TaskRef],
    mut call: impl AsyncFnMut(&TaskRef) -> Result<T, Error>,
) -> anyhow::Result<Done<T>> {
    let mut done = Done { tasks: Vec::new(), ending: Ending::Ok, are_many: ids.len() > 1 };
    for id in ids {
        match call(id).await {
            Ok(task) => done.tasks.push(task),
            Err(error) if !done.are_many => return Err(error.into()),
            Err(error) => done.fail(id, error.into()),
        }
    }
    Ok(done)
}

impl<T> Done<T> {
    fn fail(&mut self, id: &TaskRef, error: anyhow::Error) {
        output::complain(&format!("{id}: {error:#}"));
        self.ending = first(self.ending, Ending::Failed(exit::code_of_error(&error)));
    }
}

impl Done<TaskView> {
    /// Prints the tasks: one as itself, several as a list.
    pub(super) fn print(&self, format: Output) -> anyhow::Result<()> {
        match (format, self.tasks.as_slice()) {
            (Output::Json, [task]) if !self.are_many => output::json(task),
            (Output::Json, tasks) => output::json(&tasks),
            (_, []) => Ok(()),
            (Output::Table, tasks) => output::data(&output::tasks(tasks)),
            (Output::Id, tasks) => output::data(&ids(tasks)),
        }
    }

    /// Says what to do next, where that is one thing.
    pub(super) fn say_next(&self, next: impl Fn(&TaskView) -> String) {
        if let [task] = self.tasks.as_slice() {
            output::say(&format!("next: {}", next(task)));
        }
    }
}

/// The first that is not well.
pub(super) fn first(earlier: Ending, later: Ending) -> Ending {
    if earlier == Ending::Ok { later } else { earlier }
}

fn ids(tasks: &[TaskView]) -> String {
    let ids: Vec<_> = tasks.iter().map(|task| task.task_id.to_string()).collect();
    ids.join("\n")
}
