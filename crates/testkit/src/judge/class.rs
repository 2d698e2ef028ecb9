//! What can be wrong with a run. Names are stable: reports and regression sets refer to them.

use serde::{Deserialize, Serialize};

/// A way in which a run breaks a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// An acknowledged task is gone, or has not ended.
    Lost,
    /// A task that was not submitted.
    Invented,
    /// Two tasks of one key.
    Duplicated,
    /// A second outcome, or another one than the server shows.
    DoubleOutcome,
    /// An outcome that came after a successor had begun was accepted.
    StaleCommit,
    /// A lease was executed twice.
    SameEpochTwice,
    /// A grant did not raise the epoch.
    EpochWentBack,
    /// Two executions at a time, and nothing tells why.
    Overlap,
    /// A start before the time that was asked for.
    EarlyStart,
    /// A worker that nothing had happened to was declared lost.
    LostWithoutCause,
    /// Another number of attempts than were charged.
    AttemptsMiscounted,
    /// Another number of losses than there were.
    LossesMiscounted,
    /// A cancelled task went on.
    CancelUndone,
    /// A task that was never acknowledged has not ended.
    Unfinished,
    /// A success without an execution that ended.
    SuccessWithoutExecution,
    /// Cancelled, although no client asked for it.
    CancelledUnasked,
    /// A task ran before the tasks that it depends on had ended as it asks.
    ChildBeforeParent,
    /// A task does not depend on what its submit asked for.
    EdgesChanged,
    /// A task was granted once more, or has a second run, and nothing tells why.
    ReleasedTwice,
    /// A workflow has not ended as follows from its tasks.
    WorkflowEnd,
    /// After the end of a leader no node led for too long.
    Leaderless,
}

impl Class {
    /// All of them, in the order of the table that is printed.
    pub const ALL: [Self; 21] = [
        Self::Lost,
        Self::Invented,
        Self::Duplicated,
        Self::DoubleOutcome,
        Self::StaleCommit,
        Self::SameEpochTwice,
        Self::EpochWentBack,
        Self::Overlap,
        Self::EarlyStart,
        Self::LostWithoutCause,
        Self::AttemptsMiscounted,
        Self::LossesMiscounted,
        Self::CancelUndone,
        Self::Unfinished,
        Self::SuccessWithoutExecution,
        Self::CancelledUnasked,
        Self::ChildBeforeParent,
        Self::EdgesChanged,
        Self::ReleasedTwice,
        Self::WorkflowEnd,
        Self::Leaderless,
    ];

    /// Its name in files and on the terminal.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Invented => "invented",
            Self::Duplicated => "duplicated",
            Self::DoubleOutcome => "double-outcome",
            Self::StaleCommit => "stale-commit",
            Self::SameEpochTwice => "same-epoch-twice",
            Self::EpochWentBack => "epoch-went-back",
            Self::Overlap => "overlap",
            Self::EarlyStart => "early-start",
            Self::LostWithoutCause => "lost-without-cause",
            Self::AttemptsMiscounted => "attempts-miscounted",
            Self::LossesMiscounted => "losses-miscounted",
            Self::CancelUndone => "cancel-undone",
            Self::Unfinished => "unfinished",
            Self::SuccessWithoutExecution => "success-without-execution",
            Self::CancelledUnasked => "cancelled-unasked",
            Self::ChildBeforeParent => "child-before-parent",
            Self::EdgesChanged => "edges-changed",
            Self::ReleasedTwice => "released-twice",
            Self::WorkflowEnd => "workflow-end",
            Self::Leaderless => "leaderless",
        }
    }

    /// What it means.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Lost => "a submit was acknowledged, and its task is gone or has not ended",
            Self::Invented => "a task exists or ran that no submit can have made",
            Self::Duplicated => "one key led to two tasks",
            Self::DoubleOutcome => "a run has two outcomes, or another one than was committed",
            Self::StaleCommit => "an outcome was accepted although a successor had begun",
            Self::SameEpochTwice => "one lease was executed twice",
            Self::EpochWentBack => "an execution began under a lower epoch than one before it",
            Self::Overlap => "two executions overlap, and the first one was not lost",
            Self::EarlyStart => "an execution began before the time that was asked for",
            Self::LostWithoutCause => "a worker was declared lost although nothing happened to it",
            Self::AttemptsMiscounted => "the number of attempts is not that of charged outcomes",
            Self::LossesMiscounted => "the number of losses is not that of lost attempts",
            Self::CancelUndone => "a cancel was acknowledged, and the task went on",
            Self::Unfinished => "a task has not ended although the run was given time to end",
            Self::SuccessWithoutExecution => "a task succeeded that no worker says it ended",
            Self::CancelledUnasked => "a task is cancelled although no client asked for it",
            Self::ChildBeforeParent => "a task ran before those that it depends on had ended",
            Self::EdgesChanged => "a task does not depend on what its submit asked for",
            Self::ReleasedTwice => "a task was granted again or has a second run without a cause",
            Self::WorkflowEnd => "a workflow has not ended as follows from its tasks",
            Self::Leaderless => {
                "the leader was killed, and no node led for more than twice the TTL"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_has_one_name_in_files_and_on_the_terminal() {
        for class in Class::ALL {
            let text = serde_json::to_string(&class).unwrap();
            assert_eq!(text, format!("\"{}\"", class.name()));
        }
    }
}
