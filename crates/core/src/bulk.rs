//! One order for many tasks: what can be ordered, and for which of them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::filter::{BadFilter, Filter};
use crate::id::TaskId;
use crate::limits::RUN_AHEAD;
use crate::ports::store::DeadPosition;
use crate::state::Status;
use crate::task::Task;
use crate::time::Timestamp;

/// What is done to each task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BulkAction {
    /// End those that wait or run.
    Cancel,
    /// Start the next attempt of those that wait for it.
    Retry,
    /// Run those again that have ended; those that failed if it does not say.
    Replay,
    /// Forget those that have ended.
    Delete,
}

impl BulkAction {
    /// All there are, by their words.
    pub const ALL: [(&str, Self); 4] = [
        ("cancel", Self::Cancel),
        ("retry", Self::Retry),
        ("replay", Self::Replay),
        ("delete", Self::Delete),
    ];

    /// Its word.
    pub fn word(self) -> &'static str {
        let known = Self::ALL.iter().find(|(_, action)| *action == self);
        known.expect("all of them are there").0
    }

    /// The states it makes sense for.
    pub fn statuses(self) -> &'static [Status] {
        match self {
            Self::Cancel => &[Status::Blocked, Status::Pending, Status::Running],
            Self::Retry => &[Status::Pending],
            Self::Replay | Self::Delete => &[Status::Success, Status::Failed, Status::Cancelled],
        }
    }

    /// Reads the filter of an order. One that names no state means all that make sense, but for a
    /// replay those that failed: running again what succeeded must be said.
    pub fn filter(self, text: &str, now: Timestamp) -> Result<Filter, BadFilter> {
        let mut filter = Filter::parse_among(text, now, self.statuses())?;
        if filter.statuses.is_empty() {
            filter.statuses = match self {
                Self::Replay => [Status::Failed].into(),
                Self::Cancel | Self::Retry | Self::Delete => {
                    self.statuses().iter().copied().collect()
                }
            };
        }
        Ok(filter)
    }

    /// Whether an order given at this time means a task as it is now. What was submitted, or
    /// ended, only later is none of its business: what fails again is not replayed for ever.
    pub fn means(self, task: &Task, ordered_at: Timestamp) -> bool {
        let before = |at: Timestamp| at <= ordered_at;
        self.statuses().contains(&task.status)
            && !task.lane.queue.is_reserved()
            && match self {
                Self::Cancel => before(task.created_at),
                Self::Retry => before(task.created_at) && task.charged > 0,
                Self::Replay | Self::Delete => task.finished_at.is_some_and(before),
            }
    }
}

/// The time between two runs of which so many become due each second.
pub fn spacing(per_second: f64) -> Duration {
    Duration::try_from_secs_f64(1.0 / per_second).unwrap_or(RUN_AHEAD).min(RUN_AHEAD)
}

/// An order for many tasks, as it is kept. When it was given is when its task was submitted, so
/// that the same order sent twice is the same task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BulkOrder {
    /// What to do.
    pub action: BulkAction,
    /// To which tasks, as it was written.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub filter: String,
    /// Whether the filter selects dead letters: the times in it are then those of failures, and the last
    /// failure comes first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dead_letters: bool,
    /// To these tasks only, in this order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ids: Option<Vec<TaskId>>,
    /// Why, for people, where tasks are cancelled.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// How many runs become due each second, where tasks are replayed; all at once if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_second: Option<f64>,
}

impl BulkOrder {
    /// Reads its filter; `now` is when the order was given.
    pub fn parse_filter(&self, now: Timestamp) -> Result<Filter, BadFilter> {
        if self.dead_letters {
            return Filter::parse_dead(&self.filter, now);
        }
        self.action.filter(&self.filter, now)
    }
}

/// How far an order has come, beside what is done: its note for its next attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BulkNote {
    /// The tasks from here on have been looked at.
    #[serde(default)]
    pub before: Option<TaskId>,
    /// The same where dead letters are looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_before: Option<DeadPosition>,
    /// So many of the ids given have been looked at.
    #[serde(default)]
    pub looked: usize,
    /// Whether all of them have been.
    #[serde(default)]
    pub finished: bool,
    /// For so many it was tried; where it could not be carried out, others were quicker.
    #[serde(default)]
    pub tried: u64,
    /// When the next run is due, where they are spread.
    #[serde(default)]
    pub due: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        Timestamp::from_millis(1_900_000_000_000)
    }

    #[test]
    fn an_order_without_a_state_means_those_that_make_sense() {
        let statuses = |action: BulkAction, text| action.filter(text, now()).unwrap().statuses;
        assert_eq!(statuses(BulkAction::Replay, ""), [Status::Failed].into());
        assert_eq!(statuses(BulkAction::Replay, "status:SUCCESS"), [Status::Success].into());
        assert_eq!(statuses(BulkAction::Retry, "queue:mail"), [Status::Pending].into());
        assert_eq!(statuses(BulkAction::Delete, "").len(), 3);
        assert_eq!(statuses(BulkAction::Cancel, "").len(), 3);
    }

    #[test]
    fn an_order_for_other_states_is_refused() {
        for (action, text, allowed) in [
            (BulkAction::Cancel, "status:FAILED", "only BLOCKED, PENDING or RUNNING here"),
            (BulkAction::Retry, "status:RUNNING", "only PENDING here"),
            (BulkAction::Replay, "status:PENDING", "only SUCCESS, FAILED or CANCELLED here"),
            (BulkAction::Delete, "status:RUNNING", "only SUCCESS, FAILED or CANCELLED here"),
        ] {
            let refused = action.filter(text, now()).unwrap_err().to_string();
            assert!(refused.ends_with(allowed), "{refused}");
        }
    }

    #[test]
    fn an_order_for_dead_letters_reads_its_filter_as_they_do() {
        let order = |filter: &str| BulkOrder {
            action: BulkAction::Delete,
            filter: filter.to_owned(),
            dead_letters: true,
            ids: None,
            reason: String::new(),
            per_second: None,
        };
        let parsed = order("status:FAILED queue:mail").parse_filter(now()).unwrap();
        assert_eq!(parsed, Filter::parse_dead("queue:mail", now()).unwrap());
        assert!(order("status:SUCCESS").parse_filter(now()).is_err());
    }

    #[test]
    fn words_are_as_they_are_written() {
        for (word, action) in BulkAction::ALL {
            assert_eq!(action.word(), word);
            assert_eq!(serde_json::to_string(&action).unwrap(), format!("{word:?}"));
        }
    }
}
