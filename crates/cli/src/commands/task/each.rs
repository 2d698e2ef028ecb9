//! Calls the server for each of several tasks; a failure does not stop the others.

use duly_client::Error;
use duly_client::wire::TaskView;

use crate::args::{Output, TaskRef};
use crate::exit::{self, Ending};
use crate::output;

/// The results of the calls.
pub(super) struct CallResults<T> {
    /// The successful answers, in order.
    pub(super) tasks: Vec<T>,
    /// How the command ends: by the first failure, if any.
    pub(super) ending: Ending,
    /// Whether more than one task was named.
    are_many: bool,
}

/// Makes the call for every task and prints the errors.
pub(super) async fn call_each<T>(
    ids: &[TaskRef],
    mut call: impl AsyncFnMut(&TaskRef) -> Result<T, Error>,
) -> anyhow::Result<CallResults<T>> {
    let mut done = CallResults { tasks: Vec::new(), ending: Ending::Ok, are_many: ids.len() > 1 };
    for id in ids {
        match call(id).await {
            Ok(task) => done.tasks.push(task),
            Err(error) if !done.are_many => return Err(error.into()),
            Err(error) => done.fail(id, error.into()),
        }
    }
    Ok(done)
}

impl<T> CallResults<T> {
    fn fail(&mut self, id: &TaskRef, error: anyhow::Error) {
        output::error(&format!("{id}: {error:#}"));
        self.ending = first_failure(self.ending, Ending::Failed(exit::code_of_error(&error)));
    }
}

impl CallResults<TaskView> {
    /// Prints the tasks: one as an object, several as a list.
    pub(super) fn print(&self, format: Output) -> anyhow::Result<()> {
        match (format, self.tasks.as_slice()) {
            (Output::Json, [task]) if !self.are_many => output::json(task),
            (Output::Json, tasks) => output::json(&tasks),
            (_, []) => Ok(()),
            (Output::Table, tasks) => output::data(&output::tasks(tasks)),
            (Output::Id, tasks) => output::data(&ids(tasks)),
        }
    }

    /// Prints the next command if there is one task.
    pub(super) fn print_next(&self, next: impl Fn(&TaskView) -> String) {
        if let [task] = self.tasks.as_slice() {
            output::say(&format!("next: {}", next(task)));
        }
    }
}

/// The first ending that is not a success.
pub(super) fn first_failure(earlier: Ending, later: Ending) -> Ending {
    if earlier == Ending::Ok { later } else { earlier }
}

fn ids(tasks: &[TaskView]) -> String {
    let ids: Vec<_> = tasks.iter().map(|task| task.task_id.to_string()).collect();
    ids.join("\n")
}
