//! The states of a task and the one function that moves between them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where a task is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Status {
    /// Waits for its dependencies.
    Blocked,
    /// Waits for its time or for a worker.
    Pending,
    /// Leased to a worker.
    Running,
    /// Ended well.
    Success,
    /// Ended badly; in the dead-letter queue.
    Failed,
    /// Ended by request.
    Cancelled,
}

impl Status {
    /// All states, in the order of a task's life.
    pub const ALL: [Self; 6] =
        [Self::Blocked, Self::Pending, Self::Running, Self::Success, Self::Failed, Self::Cancelled];

    /// Its place in [`Self::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Whether the run has its outcome.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Success | Self::Failed | Self::Cancelled)
    }

    /// The state's name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Blocked => "BLOCKED",
            Self::Pending => "PENDING",
            Self::Running => "RUNNING",
            Self::Success => "SUCCESS",
            Self::Failed => "FAILED",
            Self::Cancelled => "CANCELLED",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What can happen to a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A worker gets the lease.
    Grant,
    /// The handler succeeded.
    Succeed,
    /// The attempt failed and another one is left.
    Retry,
    /// The attempt failed and none is left, or the handler said so.
    Fail,
    /// The worker hands the lease back; nothing is charged.
    Release,
    /// The worker died with the lease.
    Lose,
    /// The worker died with the lease once too often.
    Abandon,
    /// The stored task is damaged and cannot be granted.
    Spoil,
    /// A caller cancels it.
    Cancel,
    /// A caller replays it.
    Replay,
    /// The last of its dependencies is met.
    Unblock,
    /// A task that it depends on runs again.
    Block,
}

impl Event {
    /// All events.
    pub const ALL: [Self; 12] = [
        Self::Grant,
        Self::Succeed,
        Self::Retry,
        Self::Fail,
        Self::Release,
        Self::Lose,
        Self::Abandon,
        Self::Spoil,
        Self::Cancel,
        Self::Replay,
        Self::Unblock,
        Self::Block,
    ];
}

/// The event cannot happen in this state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{event:?} cannot happen to a task that is {from}")]
pub struct IllegalTransition {
    /// The state the task is in.
    pub from: Status,
    /// What was to happen.
    pub event: Event,
}

/// Where `event` takes a task that is in `from`: the only place where a state changes.
pub const fn transition(from: Status, event: Event) -> Result<Status, IllegalTransition> {
    match (from, event) {
        (Status::Pending, Event::Grant) => Ok(Status::Running),
        (Status::Pending, Event::Spoil) => Ok(Status::Failed),
        (Status::Blocked | Status::Pending | Status::Running, Event::Cancel) => {
            Ok(Status::Cancelled)
        }
        (Status::Success | Status::Failed | Status::Cancelled, Event::Replay) => {
            Ok(Status::Pending)
        }
        (Status::Blocked, Event::Unblock) => Ok(Status::Pending),
        (Status::Success | Status::Failed | Status::Cancelled, Event::Block) => Ok(Status::Blocked),
        (Status::Running, Event::Succeed) => Ok(Status::Success),
        (Status::Running, Event::Fail | Event::Abandon) => Ok(Status::Failed),
        (Status::Running, Event::Retry | Event::Release | Event::Lose) => Ok(Status::Pending),
        (
            Status::Blocked
            | Status::Pending
            | Status::Running
            | Status::Success
            | Status::Failed
            | Status::Cancelled,
            _,
        ) => Err(IllegalTransition { from, event }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_has_its_place_among_all() {
        assert_eq!(Status::ALL.map(Status::index), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn the_whole_matrix_is_as_reviewed() {
        let mut table = format!("{:10}", "");
        for event in Event::ALL {
            table += &format!("{:11}", format!("{event:?}"));
        }
        for from in Status::ALL {
            table += &format!("\n{from:10}");
            for event in Event::ALL {
                let to = transition(from, event).map_or("-", Status::as_str);
                table += &format!("{to:11}");
            }
        }
        let lines: Vec<_> = table.lines().map(str::trim_end).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn only_the_next_run_leaves_a_terminal_state() {
        for from in Status::ALL.into_iter().filter(|status| status.is_terminal()) {
            for event in Event::ALL {
                let leaves = transition(from, event).is_ok();
                let next = matches!(event, Event::Replay | Event::Block);
                assert_eq!(leaves, next, "{from} {event:?}");
            }
        }
    }
}
