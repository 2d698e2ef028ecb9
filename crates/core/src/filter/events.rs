//! Filters of events: the term `event` names kinds, every other term is about the task of the event.

use super::{BadFilter, Filter, Why, says, term};
use crate::error_group::ErrorGroup;
use crate::event::{Event, KINDS, Kinds};
use crate::task::Task;
use crate::time::Timestamp;

const KEY: &str = "event";

/// Which events are meant; all when empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// Of these kinds; of any if absent.
    pub kinds: Option<Kinds>,
    /// About tasks that this filter means. Its queue holds for events about queues too.
    pub task: Filter,
}

impl EventFilter {
    /// Reads a filter; `now` is what its relative times refer to.
    pub fn parse(text: &str, now: Timestamp) -> Result<Self, BadFilter> {
        let mut kinds = None;
        // What is left keeps its place, so that errors name the right one.
        let mut rest = text.to_owned();
        for term in term::split(text) {
            let term = term?;
            if term.key != KEY {
                continue;
            }
            let bad = || BadFilter::new(term.at, term.text, Why::Value { key: KEY, wanted: KINDS });
            let named = term.value.parse().map_err(|_| bad())?;
            kinds = Some(kinds.unwrap_or(Kinds::NONE).and(named));
            let end = term.at + term.text.len();
            rest.replace_range(term.at..end, &" ".repeat(term.text.len()));
        }
        Ok(Self { kinds, task: Filter::parse(&rest, now)? })
    }

    /// Whether an event is meant. `task` is the task that it is about, if that is still there.
    pub fn matches(&self, event: &Event, task: Option<&Task>) -> bool {
        if self.kinds.is_some_and(|kinds| !kinds.has(event.kind)) {
            return false;
        }
        let Filter { queue, task_type, .. } = &self.task;
        let is_there = queue.is_none() || *queue == event.place.queue;
        if !is_there || !(task_type.is_none() || *task_type == event.place.task_type) {
            return false;
        }
        match task {
            Some(task) => self.task.matches(task),
            None => {
                self.task
                    == Filter {
                        queue: queue.clone(),
                        task_type: task_type.clone(),
                        ..Filter::default()
                    }
            }
        }
    }
}

impl Filter {
    /// Whether this task is meant.
    pub fn matches(&self, task: &Task) -> bool {
        self.ids().contains(&task.id) && self.matches_at_any_time(task)
    }

    /// The same without the terms on time, which mean another time in every list.
    pub fn matches_at_any_time(&self, task: &Task) -> bool {
        let Self { queue, task_type, labels, error, group, worker, workflow, .. } = self;
        let of = task.links.as_ref().and_then(|links| links.workflow.as_ref());
        let failure = task.error.as_ref();
        self.allows(task.status)
            && queue.as_ref().is_none_or(|queue| *queue == task.lane.queue)
            && task_type.as_ref().is_none_or(|name| *name == task.lane.task_type)
            && labels.iter().all(|(key, value)| task.labels.get(key) == Some(value))
            && error.as_ref().is_none_or(|text| failure.is_some_and(|it| says(it, text)))
            && group.is_none_or(|group| failure.is_some_and(|it| ErrorGroup::of(it) == group))
            && worker.as_ref().is_none_or(|name| task.worker.as_ref() == Some(name))
            && workflow.is_none_or(|id| of.is_some_and(|it| it.id == id))
    }
}
