//! Judges a run from outside: what clients were told, what readers read, what the target saw and
//! what the store holds in the end must fit together.

use std::collections::{BTreeMap, HashMap, HashSet};

use duly_client::wire::TaskView;
use duly_core::id::TaskId;
use duly_core::state::Status;

use crate::load::Ack;
use crate::reader::Seen;
use crate::target::Execution;

/// All that is known of a run whose tasks all call the target.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// Acknowledged submits by their keys.
    pub acked: BTreeMap<String, Ack>,
    /// The tasks that the same keys led to when they were submitted again at the end.
    pub resubmitted: BTreeMap<String, TaskId>,
    /// Every task that the store holds at the end.
    pub stored: Vec<TaskView>,
    /// What readers saw while it ran.
    pub seen: Seen,
    /// What the target saw, in the order of the starts.
    pub executions: Vec<Execution>,
}

/// Everything that does not fit; empty if all is well.
pub fn violations(evidence: &Evidence) -> Vec<String> {
    let mut found = Vec::new();
    check_tasks(evidence, &mut found);
    check_outcomes(evidence, &mut found);
    check_executions(evidence, &mut found);
    found
}

/// No acknowledged task is lost, none is invented, and a key leads to one task.
fn check_tasks(evidence: &Evidence, found: &mut Vec<String>) {
    let stored: HashSet<_> = evidence.stored.iter().map(|task| task.task_id).collect();
    let acked: HashSet<_> = evidence.acked.values().map(|ack| ack.task).collect();
    if acked.len() < evidence.acked.len() {
        found.push("two keys led to one task".to_owned());
    }
    for lost in acked.difference(&stored).chain(&evidence.seen.lost) {
        found.push(format!("{lost} was acknowledged and is lost"));
    }
    for early in &evidence.seen.invisible {
        found.push(format!("{early} was acknowledged before it could be read"));
    }
    for invented in stored.difference(&acked) {
        found.push(format!("{invented} exists, but no submit was answered with it"));
    }
    for (key, ack) in &evidence.acked {
        match evidence.resubmitted.get(key) {
            Some(task) if *task == ack.task => {}
            other => found.push(format!("{key} led to {} and then to {other:?}", ack.task)),
        }
    }
}

/// Every task succeeded, once, and what was read of it did not change afterwards.
fn check_outcomes(evidence: &Evidence, found: &mut Vec<String>) {
    for task in &evidence.stored {
        let id = task.task_id;
        if task.status != Status::Success {
            found.push(format!("{id} ended {} after {} losses", task.status, task.losses));
        }
        let Some((_, first)) = evidence.seen.outcomes.get(&id) else {
            found.push(format!("the outcome of {id} was never read"));
            continue;
        };
        let essence = |view: &TaskView| (view.status, view.epoch, view.finished_at);
        if essence(first) != essence(task) {
            found.push(format!("the outcome of {id} changed after it was read"));
        }
    }
}

/// No execution begins after its task's outcome was read, epochs rise with every execution, and
/// the last one's is the one that was committed.
fn check_executions(evidence: &Evidence, found: &mut Vec<String>) {
    let mut by_task: HashMap<TaskId, Vec<&Execution>> = HashMap::new();
    for execution in &evidence.executions {
        by_task.entry(execution.task).or_default().push(execution);
    }
    for task in &evidence.stored {
        let id = task.task_id;
        let Some(executions) = by_task.remove(&id) else {
            found.push(format!("{id} ended without an execution"));
            continue;
        };
        if !executions.is_sorted_by(|one, next| one.epoch < next.epoch) {
            let epochs: Vec<_> = executions.iter().map(|execution| execution.epoch).collect();
            found.push(format!("the epochs of {id} do not rise: {epochs:?}"));
        }
        if executions.last().is_some_and(|last| last.epoch != task.epoch) {
            found.push(format!("{id} was committed with epoch {}, not its last", task.epoch));
        }
        let key = format!("{id}-{}", task.run);
        if executions.iter().any(|execution| execution.idempotency_key != key) {
            found.push(format!("executions of {id} carry other keys than {key}"));
        }
        let read = evidence.seen.outcomes.get(&id).map(|(at, _)| *at);
        if executions.iter().any(|execution| read.is_some_and(|read| execution.started > read)) {
            found.push(format!("{id} was executed after its outcome had been read"));
        }
    }
    for id in by_task.keys() {
        found.push(format!("{id} was executed, but is not in the store"));
    }
}

#[cfg(test)]
mod tests;
