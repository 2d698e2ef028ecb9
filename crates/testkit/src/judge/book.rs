//! What is known of each task and key, gathered from all files in any order. Per line it keeps a
//! few numbers, so that a million tasks fit into memory.

use std::collections::HashMap;
use std::sync::Arc;

use duly_core::id::{TaskId, WorkflowId};
use duly_core::state::Status;
use duly_core::workflow::Condition;

use super::faults::Faults;
use super::procs::Procs;
use super::workflows::Workflows;
use crate::effects::{Effect, Ev, Kind};
use crate::history::{Call, Fault, Run, Shown, ShownWorkflow};
use crate::journal::Line;

/// Failed attempts that a server keeps per task; a list of that length may lack older ones.
const KEPT_ATTEMPTS: usize = 100;

/// All that is known of a run.
#[derive(Debug)]
pub(super) struct Book {
    pub(super) run: Run,
    pub(super) tasks: Vec<Task>,
    places: HashMap<TaskId, usize>,
    pub(super) keys: Vec<Key>,
    key_places: HashMap<Arc<str>, usize>,
    pub(super) workflows: Workflows,
    pub(super) procs: Procs,
    pub(super) faults: Faults,
    /// Calls that were not answered so far.
    pub(super) open: HashMap<u64, OpenCall>,
    pub(super) submits: u64,
    pub(super) submits_ok: u64,
    pub(super) unknown_answers: u64,
    /// Pairs of tasks that cannot both be right.
    pub(super) twins: Vec<Twins>,
    /// The time of the first line of all.
    pub(super) first: u64,
}

/// A call that was sent.
#[derive(Debug, Default)]
pub(super) struct OpenCall {
    pub(super) key: Option<usize>,
    pub(super) task: Option<TaskId>,
    pub(super) workflow: Option<usize>,
}

/// Two tasks of one key, or two keys of one task.
#[derive(Debug)]
pub(super) struct Twins {
    pub(super) at: u64,
    pub(super) keys: [usize; 2],
    pub(super) tasks: [TaskId; 2],
}

/// An idempotency key.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: Arc<str>,
    /// How many submits were sent, and how many of them certainly did nothing.
    pub(super) sent: u32,
    pub(super) failed: u32,
    /// Earliest start that was asked for, in milliseconds of the real-time clock.
    pub(super) run_at: Option<i64>,
    /// Earliest start of a submit with a delay, on the monotonic clock: counted from the first
    /// send, because a repeated submit answers with the first task.
    pub(super) delayed_until: Option<u64>,
    /// When a submit was first acknowledged, and with which task.
    pub(super) acked_at: Option<u64>,
    pub(super) acked: Option<TaskId>,
    /// The task that is shown with this key.
    pub(super) shown: Option<TaskId>,
    /// The workflow that it was submitted with, and what it was asked to wait for in it: places of
    /// keys.
    pub(super) workflow: Option<usize>,
    pub(super) needs: Vec<(usize, Condition)>,
}

impl Key {
    /// Whether a submit may have made a task.
    pub(super) fn may_exist(&self) -> bool {
        self.sent > self.failed || self.acked_at.is_some()
    }

    /// The task of this key.
    pub(super) fn task(&self) -> Option<TaskId> {
        self.acked.or(self.shown)
    }
}

/// A task that is named in a file.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) id: TaskId,
    pub(super) key: Option<usize>,
    pub(super) acked_at: Option<u64>,
    /// Whether an answer that was no refusal named it.
    pub(super) is_named: bool,
    pub(super) cancel_asked: bool,
    pub(super) cancelled_at: Option<u64>,
    pub(super) marks: Vec<Mark>,
    pub(super) end: Option<Box<Final>>,
}

/// What a worker did with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) at: u64,
    /// Which process.
    pub(super) proc: usize,
    pub(super) epoch: u32,
    /// Zero where it is not known.
    pub(super) run: u32,
    pub(super) ev: Ev,
    pub(super) outcome: Option<Kind>,
}

/// How it is shown at the end.
#[derive(Debug)]
pub(super) struct Final {
    pub(super) at: u64,
    pub(super) status: Status,
    pub(super) run: u32,
    pub(super) attempt: u32,
    pub(super) epoch: u32,
    pub(super) losses: u32,
    pub(super) attempts: Vec<(u32, Why)>,
    pub(super) dependencies: Vec<(TaskId, Condition)>,
    pub(super) workflow: Option<WorkflowId>,
}

/// Why an attempt did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// Its worker was lost; nothing is charged.
    Lost,
    /// It was overdue.
    Timeout,
    /// Its handler failed.
    Failed,
}

impl Final {
    /// Whether older attempts may be missing.
    pub(super) fn is_cut(&self) -> bool {
        self.attempts.len() >= KEPT_ATTEMPTS
    }

    pub(super) fn why(&self, epoch: u32) -> Option<Why> {
        self.attempts.iter().find(|(of, _)| *of == epoch).map(|(_, why)| *why)
    }
}

impl Book {
    pub(super) fn new(run: Run) -> Self {
        Self {
            run,
            tasks: Vec::new(),
            places: HashMap::new(),
            keys: Vec::new(),
            key_places: HashMap::new(),
            workflows: Workflows::default(),
            procs: Procs::default(),
            faults: Faults::default(),
            open: HashMap::new(),
            submits: 0,
            submits_ok: 0,
            unknown_answers: 0,
            twins: Vec::new(),
            first: u64::MAX,
        }
    }

    pub(super) fn effect(&mut self, line: Line<Effect>) {
        let at = self.note(line.mono_ns);
        let Effect { worker, pid, task, epoch, run, ev, outcome, .. } = line.event;
        let proc = self.procs.note(worker, pid, at);
        self.task(task).marks.push(Mark { at, proc, epoch, run, ev, outcome });
    }

    pub(super) fn fault(&mut self, line: Line<Fault>) {
        let at = self.note(line.mono_ns);
        self.faults.add(at, line.event);
    }

    pub(super) fn shown(&mut self, line: Line<Shown>) {
        let at = self.note(line.mono_ns);
        let Shown { task: id, key, status, run, attempt, epoch, losses, .. } = line.event;
        let Shown { attempts, dependencies, workflow, .. } = line.event;
        let attempts = attempts.iter().map(|(epoch, code)| (*epoch, why(code))).collect();
        let end =
            Final { at, status, run, attempt, epoch, losses, attempts, dependencies, workflow };
        let key = key.map(|key| self.key(&key));
        if let Some(key) = key {
            let other = self.keys[key].shown.replace(id).filter(|other| *other != id);
            let twins = other.map(|other| Twins { at, keys: [key; 2], tasks: [other, id] });
            self.twins.extend(twins);
        }
        let task = self.task(id);
        task.end = Some(Box::new(end));
        // An answer may have named it under another key, which is then the one that was lost.
        let other = task.key.zip(key).filter(|(answered, shown)| answered != shown);
        task.key = task.key.or(key);
        let twins = other.map(|(one, two)| Twins { at, keys: [one, two], tasks: [id; 2] });
        self.twins.extend(twins);
    }

    pub(super) fn shown_workflow(&mut self, line: Line<ShownWorkflow>) {
        let at = self.note(line.mono_ns);
        self.workflows.show(at, line.event);
    }

    pub(super) fn call(&mut self, line: Line<Call>) {
        let at = self.note(line.mono_ns);
        super::calls::note(self, at, line.event);
    }

    /// Where a key is kept.
    pub(super) fn key(&mut self, name: &str) -> usize {
        if let Some(&place) = self.key_places.get(name) {
            return place;
        }
        let (name, place) = (Arc::<str>::from(name), self.keys.len());
        self.key_places.insert(Arc::clone(&name), place);
        self.keys.push(Key {
            name,
            sent: 0,
            failed: 0,
            run_at: None,
            delayed_until: None,
            acked_at: None,
            acked: None,
            shown: None,
            workflow: None,
            needs: Vec::new(),
        });
        place
    }

    pub(super) fn task(&mut self, id: TaskId) -> &mut Task {
        let place = *self.places.entry(id).or_insert_with(|| {
            self.tasks.push(Task {
                id,
                key: None,
                acked_at: None,
                is_named: false,
                cancel_asked: false,
                cancelled_at: None,
                marks: Vec::new(),
                end: None,
            });
            self.tasks.len() - 1
        });
        &mut self.tasks[place]
    }

    /// A task that is named in a file.
    pub(super) fn find(&self, id: TaskId) -> Option<&Task> {
        self.places.get(&id).map(|place| &self.tasks[*place])
    }

    /// How long workers may be silent, in nanoseconds.
    pub(super) fn ttl(&self) -> u64 {
        self.run.ttl_ms.saturating_mul(1_000_000)
    }

    fn note(&mut self, at: u64) -> u64 {
        self.first = self.first.min(at);
        at
    }
}

fn why(code: &str) -> Why {
    match code {
        "WORKER_LOST" => Why::Lost,
        "TIMEOUT" => Why::Timeout,
        _ => Why::Failed,
    }
}
