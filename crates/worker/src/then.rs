//! Collects the tasks that a success adds.

use duly_core::submit::Draft;
use duly_core::workflow::Condition;
use duly_core::workflow::plan::Needed;
use duly_core::workflow::request::{Member, Members};

use crate::handler::HandlerError;

/// Tasks that a success adds, by key.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    members: Vec<Member>,
}

impl Tasks {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a task that starts after the one that adds it.
    pub fn task(self, key: impl Into<String>, draft: Draft) -> Result<Self, HandlerError> {
        self.task_after(key, draft, [])
    }

    /// Adds a task that starts after others of these tasks, once each has ended as its condition asks.
    pub fn task_after(
        mut self,
        key: impl Into<String>,
        draft: Draft,
        parents: impl IntoIterator<Item = (String, Condition)>,
    ) -> Result<Self, HandlerError> {
        let key = key.into();
        let spec = draft.check().map_err(|errors| {
            let first = errors.first().map(|error| format!("{}: {}", error.pointer, error.detail));
            invalid(&format!("task {key}: {}", first.unwrap_or_default()))
        })?;
        let needed = parents.into_iter().map(|(key, on)| Needed { key, on });
        self.members.push(Member { key, spec, depends_on: needed.collect() });
        Ok(self)
    }

    /// All of them, if the edges between them can hold.
    pub fn build(self) -> Result<Members, HandlerError> {
        Members::of_outcome(self.members).map_err(|flaws| {
            let first = flaws.first().map(ToString::to_string);
            invalid(&first.unwrap_or_default())
        })
    }
}

/// Another attempt would ask for the same.
fn invalid(detail: &str) -> HandlerError {
    HandlerError::fail("INVALID_RESULT", format!("the added tasks are not valid: {detail}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft() -> Draft {
        Draft { task_type: Some("echo".to_owned()), ..Draft::default() }
    }

    #[test]
    fn tasks_are_checked_when_they_are_added() {
        let tasks = Tasks::new().task("a", draft()).unwrap();
        let after = [("a".to_owned(), Condition::Done)];
        let both = tasks.task_after("b", draft(), after).unwrap().build().unwrap();
        assert_eq!(both.plan().order, [0, 1]);
        assert!(Tasks::new().task("a", Draft::default()).is_err());
        let lost = [("x".to_owned(), Condition::Success)];
        assert!(Tasks::new().task_after("a", draft(), lost).unwrap().build().is_err());
    }
}
