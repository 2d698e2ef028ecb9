//! What workers of the harness do, as they write it down themselves: an effect outside the
//! system that cannot be taken back.

use duly_core::id::TaskId;
use serde::{Deserialize, Serialize};

/// The worker of all executions that nodes run themselves: which of them it was is not known.
pub const NODES: &str = "nodes";

/// One thing that a worker did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effect {
    /// What the worker calls itself.
    pub worker: String,
    /// Its process.
    pub pid: u32,
    /// The task.
    pub task: TaskId,
    /// Under which grant.
    pub epoch: u32,
    /// Which run of the task; zero where it is not known.
    pub run: u32,
    /// Which attempt of the run; zero where it is not known.
    pub attempt: u32,
    /// What.
    pub ev: Ev,
    /// How the execution ended, of its commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Kind>,
}

/// How an execution ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// It succeeded: the run ends.
    Success,
    /// It failed and may be tried again.
    Retry,
    /// It failed for good: the run ends.
    Fail,
}

/// What a worker does with a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ev {
    /// The handler started.
    Start,
    /// It ended; the outcome is sent after this.
    End,
    /// The outcome was committed.
    CommitOk,
    /// The outcome was refused.
    CommitRefused,
    /// It is not known what became of the outcome.
    CommitUnknown,
}
