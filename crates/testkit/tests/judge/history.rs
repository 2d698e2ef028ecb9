//! The files of a run in memory.

use std::collections::BTreeMap;
use std::path::Path;

use duly_core::id::{TaskId, WorkflowId};
use duly_testkit::effects::{Effect, Ev, Kind};
use duly_testkit::history::{
    Call, Edge, Fault, FaultKind, Member, Phase, Run, Shown, ShownWorkflow, Verb, file,
};
use duly_testkit::journal::Line;
use duly_testkit::judge::{Figures, Findings, Judge};
use serde::Serialize;

/// How long workers may be silent.
pub(crate) const TTL: u64 = 1_000;
/// What the real-time clock shows when the monotonic one shows zero, in milliseconds.
pub(crate) const EPOCH: i64 = 1_700_000_000_000;
const MS: u64 = 1_000_000;

/// All lines of a run; times in milliseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) client: Vec<Line<Call>>,
    pub(crate) effects: Vec<Line<Effect>>,
    pub(crate) nemesis: Vec<Line<Fault>>,
    pub(crate) shown: Vec<Line<Shown>>,
    pub(crate) workflows: Vec<Line<ShownWorkflow>>,
    ops: u64,
}

fn line<T>(at: u64, event: T) -> Line<T> {
    Line { seq: 1, mono_ns: at * MS, event }
}

/// The task of this name.
pub(crate) fn id(name: &str) -> TaskId {
    let mut bytes = [0; 16];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    TaskId::from_bytes(bytes)
}

/// The workflow of this name.
pub(crate) fn workflow_id(name: &str) -> WorkflowId {
    WorkflowId::from_bytes(*id(name).as_bytes())
}

/// The time of a line in milliseconds.
pub(crate) fn ms<T>(line: &Line<T>) -> u64 {
    line.mono_ns / MS
}

/// Moves a line.
pub(crate) fn move_to<T>(line: &mut Line<T>, at: u64) {
    line.mono_ns = at * MS;
}

impl History {
    pub(crate) fn run() -> Run {
        let real_minus_mono_ns = i128::from(EPOCH) * i128::from(MS);
        Run { seed: 7, ttl_ms: TTL, real_minus_mono_ns, version: "0.1.0".to_owned() }
    }

    pub(crate) fn judge(&self) -> (Findings, Figures) {
        let mut judge = Judge::new(Self::run());
        self.client.iter().for_each(|line| judge.call(line.clone()));
        self.effects.iter().for_each(|line| judge.effect(line.clone()));
        self.nemesis.iter().for_each(|line| judge.fault(line.clone()));
        self.shown.iter().for_each(|line| judge.shown(line.clone()));
        self.workflows.iter().for_each(|line| judge.shown_workflow(line.clone()));
        judge.decide()
    }

    /// Writes the files.
    pub(crate) fn write(&self, folder: &Path) {
        let run = serde_json::to_vec(&Self::run()).expect("it is plain");
        std::fs::write(folder.join(file::RUN), run).expect("the folder can be written");
        write(&folder.join(file::CLIENT), &self.client);
        write(&folder.join(file::EFFECTS), &self.effects);
        write(&folder.join(file::NEMESIS), &self.nemesis);
        write(&folder.join(file::SHOWN), &self.shown);
        write(&folder.join(file::WORKFLOWS), &self.workflows);
    }

    /// A call and its answer a millisecond later; without one if it is never answered.
    pub(crate) fn call(&mut self, at: u64, f: Verb, answer: Option<Phase>, about: &About<'_>) {
        self.ops += 1;
        let submitted = f == Verb::Submit;
        let asked = Call {
            key: submitted.then(|| about.key.to_owned()),
            task: (!submitted).then(|| id(about.task)),
            run_at: about.due.map(|due| EPOCH + i64::try_from(due).expect("it is near")),
            delay_seconds: about.delay.map(|ms| f64::from(ms) / 1e3),
            jitter_seconds: about.jitter.map(|ms| f64::from(ms) / 1e3),
            ..Call::invoke(1, self.ops, f)
        };
        self.client.push(line(at, asked.clone()));
        if let Some(phase) = answer {
            let task = asked.task.or((phase == Phase::Ok).then(|| id(about.task)));
            self.client.push(line(at + 1, Call { phase, task, ..asked }));
        }
    }

    /// The same about a workflow; its cancel has no members.
    pub(crate) fn call_workflow(
        &mut self,
        at: u64,
        f: Verb,
        answer: Option<Phase>,
        name: &str,
        members: BTreeMap<String, Member>,
    ) {
        self.ops += 1;
        let call = Call { key: Some(name.to_owned()), ..Call::invoke(1, self.ops, f) };
        let names: Vec<_> = members.keys().cloned().collect();
        self.client.push(line(at, Call { members, ..call.clone() }));
        if let Some(phase) = answer {
            let workflow = (phase == Phase::Ok).then(|| workflow_id(name));
            let names = names.into_iter().filter(|_| phase == Phase::Ok);
            let member_ids = names.map(|name| (name.clone(), id(&name))).collect();
            self.client.push(line(at + 1, Call { phase, workflow, member_ids, ..call }));
        }
    }

    pub(crate) fn effect(&mut self, at: u64, effect: Effect) {
        self.effects.push(line(at, effect));
    }

    pub(crate) fn fault(&mut self, from: u64, to: u64, fault: FaultKind, target: &str) {
        for (at, phase) in [(from, Edge::Begin), (to, Edge::End)] {
            let target = target.to_owned();
            self.nemesis.push(line(at, Fault { fault, target, phase, in_flight: 1 }));
        }
    }

    pub(crate) fn show(&mut self, at: u64, shown: Shown) {
        self.shown.push(line(at, shown));
    }

    pub(crate) fn show_workflow(&mut self, at: u64, shown: ShownWorkflow) {
        self.workflows.push(line(at, shown));
    }
}

/// What a call is about.
#[derive(Clone, Copy, Default)]
pub(crate) struct About<'a> {
    pub(crate) key: &'a str,
    pub(crate) task: &'a str,
    pub(crate) due: Option<u64>,
    /// Milliseconds between the send and the earliest start.
    pub(crate) delay: Option<u32>,
    /// The largest time that the server may add, in milliseconds.
    pub(crate) jitter: Option<u32>,
}

/// A line of a worker.
pub(crate) fn effect(
    worker: &str,
    task: &str,
    epoch: u32,
    ev: Ev,
    outcome: Option<Kind>,
) -> Effect {
    // Commits do not know the run, as in the worker of the harness.
    let run = u32::from(outcome.is_none());
    Effect {
        worker: worker.to_owned(),
        pid: 1,
        task: id(task),
        epoch,
        run,
        attempt: 0,
        ev,
        outcome,
    }
}

fn write<T: Serialize>(path: &Path, lines: &[Line<T>]) {
    let mut text = Vec::new();
    for line in lines {
        serde_json::to_writer(&mut text, line).expect("it is plain");
        text.push(b'\n');
    }
    std::fs::write(path, text).expect("the folder can be written");
}
