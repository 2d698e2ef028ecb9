//! What can happen in a history. A step names sessions, tasks and leases by their place among
//! those known when it runs, so that it means something in every history, also in one from which
//! the steps before it were struck out.

use std::time::Duration;

/// A session, counted from the newest.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Who {
    /// One that holds leases, if there is such; otherwise one that is open.
    Busy(u8),
    /// One that is open. Where there is none, the step opens one instead.
    Open(u8),
    /// One that was opened at some time.
    Any(u8),
    /// One that never was.
    Unknown,
}

/// A task, counted from the newest.
#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    /// One in a state that the order is meant for, if there is such; otherwise any.
    Fit(u8),
    Known(u8),
    Nothing,
}

/// A lease, as seen by the session that speaks of it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Which {
    /// One that it holds.
    Held(u8),
    /// One that it was granted at some time.
    Past(u8),
    /// One that another session holds.
    Foreign(u8),
    /// One that was never granted.
    MadeUp(What),
}

/// Which claim, and how large.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClaimStep {
    /// 0 is a new one, 1 the last one again, and so on.
    pub(crate) back: u8,
    pub(crate) max: usize,
    /// Whether it is for one queue only, and for one type.
    pub(crate) queue: Option<bool>,
    pub(crate) task_type: Option<u8>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum How {
    Success,
    Retry { after: Option<Duration>, entropy: u64 },
    Fail,
    Release,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct FinishStep {
    pub(crate) which: Which,
    pub(crate) how: How,
    pub(crate) log: Option<LogStep>,
    /// How many tasks come with it.
    pub(crate) then: u8,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ReportStep {
    pub(crate) which: Which,
    /// Steps done, and whether there is a checkpoint.
    pub(crate) progress: Option<(u8, bool)>,
    pub(crate) log: Option<LogStep>,
}

/// A piece of the text that every attempt logs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogStep {
    pub(crate) start: u8,
    pub(crate) length: u8,
    /// Whether each byte stands for many.
    pub(crate) large: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskStep {
    /// An id that came before, or a new one.
    pub(crate) again: Option<What>,
    pub(crate) tenant: bool,
    pub(crate) queue: bool,
    pub(crate) task_type: u8,
    pub(crate) priority: u8,
    pub(crate) delay: Duration,
    pub(crate) retries: u32,
    pub(crate) back_off: u8,
    pub(crate) timeout: Option<Duration>,
    pub(crate) large: bool,
    /// A key and a body.
    pub(crate) key: Option<(u8, u8)>,
    /// What it depends on, and how that must end.
    pub(crate) parents: [Option<(What, u8)>; 2],
    /// The workflow that it joins.
    pub(crate) joins: Option<u8>,
}

/// What is ordered for a workflow.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WorkflowOrder {
    Cancel,
    Retry,
    Graph,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenStep {
    /// An id that came before, or a new one.
    pub(crate) again: Option<Who>,
    pub(crate) remote: bool,
    pub(crate) bound: Option<bool>,
    pub(crate) all_types: bool,
    pub(crate) one_queue: bool,
}

impl OpenStep {
    /// A new session that serves everything.
    pub(crate) fn usual(remote: bool) -> Self {
        Self { again: None, remote, bound: None, all_types: true, one_queue: false }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplayStep {
    pub(crate) what: What,
    /// Beyond the run that the task is in.
    pub(crate) ahead: i8,
    /// Beyond now, in seconds.
    pub(crate) run_at: Option<i8>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct EditStep {
    pub(crate) what: What,
    pub(crate) foreign: bool,
    pub(crate) priority: Option<u8>,
    /// Beyond now, in seconds.
    pub(crate) run_at: Option<i8>,
    pub(crate) retries: Option<u32>,
    pub(crate) large: Option<bool>,
}

/// Why a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    Closed,
    Died,
    /// A process that has not seen its last beat takes it for dead.
    DiedBefore,
}

/// Which of a tenant's tasks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FilterStep {
    /// A task that all terms hold for, if there is such: drawn blindly they seldom do.
    pub(crate) aim: Option<u8>,
    pub(crate) tenant: bool,
    /// One bit for each state.
    pub(crate) statuses: u8,
    pub(crate) queue: Option<bool>,
    pub(crate) task_type: Option<u8>,
    pub(crate) of_group: Option<u8>,
    pub(crate) since: Option<u8>,
    pub(crate) until: Option<u8>,
    /// The value of the label that all have.
    pub(crate) label: Option<u8>,
    pub(crate) says: Option<u8>,
    /// The worker of one of the tasks.
    pub(crate) worker: Option<u8>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum ReadStep {
    Get { what: What, tenant: bool },
    Attempts { what: What, tenant: bool },
    Logs { what: What, tenant: bool, epoch: Option<u8>, after: (u8, u8), limit: u8 },
    List { which: FilterStep, before: Option<What>, limit: u32 },
    Dead { which: FilterStep, limit: u32, skip: bool },
    Groups { which: FilterStep },
    Count { which: FilterStep },
    Queue { queue: bool, tenant: bool },
    QueuePosition { what: What, tenant: bool },
    Parents { what: What },
}

/// What happens to one of two schedules.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScheduleStep {
    pub(crate) other: bool,
    pub(crate) order: ScheduleOrder,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum ScheduleOrder {
    Put { rule: u8, paused: bool, expected: u8 },
    Switch { pause: bool },
    Delete { expected: u8 },
    Decide(DecideStep),
    Changed,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct DecideStep {
    pub(crate) overlap: u8,
    /// Seconds after the one before, and what it starts.
    pub(crate) slots: [Option<(u8, u8)>; 3],
    /// How far the position that the caller knows is behind.
    pub(crate) behind: u8,
    pub(crate) moves: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Submit {
        tasks: Vec<TaskStep>,
        offer: Option<(Who, ClaimStep)>,
    },
    Open(OpenStep),
    Heartbeat {
        who: Who,
        received: Vec<u8>,
        unstarted: Vec<Which>,
    },
    End {
        who: Who,
        why: Why,
    },
    Exchange {
        who: Who,
        finishes: Vec<FinishStep>,
        claim: Option<ClaimStep>,
    },
    Extend {
        who: Who,
        leases: Vec<(Which, Duration)>,
    },
    Report {
        who: Who,
        items: Vec<ReportStep>,
    },
    Reap {
        silence: Duration,
        entropy: u64,
    },
    Cancel {
        tasks: Vec<What>,
        foreign: bool,
    },
    Replay {
        tasks: Vec<ReplayStep>,
        payload: Option<bool>,
        foreign: bool,
    },
    Retry {
        tasks: Vec<What>,
        foreign: bool,
    },
    Delete {
        tasks: Vec<What>,
        foreign: bool,
    },
    Edit(EditStep),
    Pause {
        queue: bool,
        tenant: bool,
        /// Or resume.
        pause: bool,
    },
    /// Deletes what ended longer ago than this, by outcome.
    Sweep {
        ago: [Option<Duration>; 3],
        /// What the other tenant has instead.
        own: Option<[Option<Duration>; 3]>,
        after: Option<What>,
    },
    /// Changes the loss limit, perhaps of a version that is no longer the newest.
    Settings {
        loss_limit: Option<u32>,
        behind: u8,
    },
    /// Tasks, and for each one bit for every task before it that it depends on.
    Workflow {
        tasks: Vec<(TaskStep, u8)>,
        fail_fast: bool,
        key: Option<(u8, u8)>,
    },
    OrderWorkflow {
        back: u8,
        order: WorkflowOrder,
        foreign: bool,
    },
    /// A replay with all that depends on the task.
    ReplayDownstream {
        what: What,
        foreign: bool,
    },
    Cascade,
    Schedule(ScheduleStep),
    /// Whether the sink of events is told of deleted tasks.
    Listen {
        deleted: bool,
    },
    Read(ReadStep),
    /// One of the last calls once more, word for word.
    Again {
        back: u8,
    },
    Advance(Duration),
    Crash,
}
