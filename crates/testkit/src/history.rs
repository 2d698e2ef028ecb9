//! The files of a run, each written by one that trusts none of the others: what clients asked
//! and were told, what workers did, what was broken when, and what the server shows in the end.
//! Their lines are [`journal::Line`](crate::journal::Line)s, on one monotonic clock.

use std::collections::BTreeMap;

use duly_core::id::{TaskId, WorkflowId};
use duly_core::state::Status;
use duly_core::workflow::{Condition, WorkflowStatus};
use serde::{Deserialize, Serialize};

/// Names of the files in the folder of a run.
pub mod file {
    /// Lines of [`Call`](super::Call).
    pub const CLIENT: &str = "client.jsonl";
    /// Lines of [`Effect`](crate::effects::Effect).
    pub const EFFECTS: &str = "effects.jsonl";
    /// Lines of [`Fault`](super::Fault).
    pub const NEMESIS: &str = "nemesis.jsonl";
    /// Lines of [`Shown`](super::Shown).
    pub const SHOWN: &str = "shown.jsonl";
    /// Lines of [`ShownWorkflow`](super::ShownWorkflow).
    pub const WORKFLOWS: &str = "workflows.jsonl";
    /// One [`Run`](super::Run).
    pub const RUN: &str = "run.json";
    /// What the judge found.
    pub const VERDICT: &str = "verdict.json";
}

/// A client's call, written before it is sent and after it was answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Which client.
    pub proc: u32,
    /// Pairs the lines of one call; unique in the file.
    pub op: u64,
    /// Which of the lines.
    #[serde(rename = "type")]
    pub phase: Phase,
    /// What was asked for.
    pub f: Verb,
    /// The idempotency key of a submit, which is also the label `key` of the task or workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The task, as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Earliest start that was asked for, in milliseconds of the real-time clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_at: Option<i64>,
    /// `delaySeconds` of a submit. The time of the line is the send time that it counts from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_seconds: Option<f64>,
    /// `jitterSeconds` of a submit, which adds to the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_seconds: Option<f64>,
    /// The workflow, as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowId>,
    /// The tasks of a workflow that is submitted, by their label `key`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub members: BTreeMap<String, Member>,
    /// The tasks of a workflow as its answer names them, by their label `key`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub member_ids: BTreeMap<String, TaskId>,
    /// The status of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<u16>,
}

impl Call {
    /// A call that is about to be sent.
    pub fn invoke(proc: u32, op: u64, f: Verb) -> Self {
        Self {
            proc,
            op,
            phase: Phase::Invoke,
            f,
            key: None,
            task: None,
            run_at: None,
            delay_seconds: None,
            jitter_seconds: None,
            workflow: None,
            members: BTreeMap::new(),
            member_ids: BTreeMap::new(),
            http: None,
        }
    }
}

/// What a client asks of one task of a workflow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// The tasks that it waits for, by their label `key`, and how each must end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<(String, Condition)>,
    /// `delaySeconds`, which counts from the release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_seconds: Option<f64>,
}

/// A line of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// It is about to be sent.
    Invoke,
    /// It was carried out.
    Ok,
    /// It was certainly not carried out.
    Fail,
    /// Unknown: both worlds are allowed.
    Info,
}

/// What a client can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verb {
    /// Submit a task.
    Submit,
    /// Cancel a task.
    Cancel,
    /// Submit a workflow with all its tasks.
    SubmitWorkflow,
    /// Cancel a workflow.
    CancelWorkflow,
}

/// Something that was broken on purpose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// What was done.
    pub fault: FaultKind,
    /// To whom: `server`, `node-0` and so on, `database`, the name of a worker, or `link`.
    pub target: String,
    /// Whether it begins or is over. A kill has no duration: both lines follow each other.
    pub phase: Edge,
    /// Executions that were under way when it began, as far as the harness knew.
    #[serde(default)]
    pub in_flight: u64,
}

/// What can be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// `kill -9`; the process is started again.
    Kill,
    /// SIGSTOP and, later, SIGCONT.
    Pause,
    /// SIGTERM; the process is started again when it has ended.
    Restart,
    /// Clients go away in the middle of their calls.
    Abort,
    /// Connections between workers and server, or between a node and the database, are cut.
    Cut,
    /// Nothing passes there for a while.
    Hold,
    /// Everything is late there for a while.
    Delay,
    /// Answers of committed calls are thrown away and their connections reset.
    Reset,
    /// The disk of the server is full for a while.
    DiskFull,
    /// The database ends all connections to it.
    Terminate,
    /// The node that led was killed, until another one leads.
    Leaderless,
    /// Nothing was broken, but the machine was too busy to let a process run.
    Stall,
}

/// The edges of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Edge {
    /// It begins.
    Begin,
    /// It is over.
    End,
}

/// A task as the server shows it at the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// The task.
    pub task: TaskId,
    /// Its label `key`.
    pub key: Option<String>,
    /// Where it is in its life.
    pub status: Status,
    /// Which run.
    pub run: u32,
    /// Charged attempts of the run.
    pub attempt: u32,
    /// The fencing token.
    pub epoch: u32,
    /// Lost leases of the run.
    pub losses: u32,
    /// Its failed and lost attempts, oldest first: epoch and error code.
    pub attempts: Vec<(u32, String)>,
    /// The tasks that it depends on, and how each must end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<(TaskId, Condition)>,
    /// The workflow that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowId>,
}

/// A workflow as the server shows it at the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownWorkflow {
    /// The workflow.
    pub workflow: WorkflowId,
    /// Its label `key`.
    pub key: Option<String>,
    /// Where it is in its life.
    pub status: WorkflowStatus,
    /// Tasks that have not ended, as it counts them.
    pub open: u64,
    /// Whether the first failure that is not handled cancels what is open.
    pub fail_fast: bool,
}

/// What a run was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Repeats it.
    pub seed: u64,
    /// How long workers may be silent, in milliseconds.
    pub ttl_ms: u64,
    /// How much the real-time clock was ahead of the monotonic one, in nanoseconds.
    pub real_minus_mono_ns: i128,
    /// What was tested.
    pub version: String,
}
