//! How often what was seen: histories that never come upon anything prove nothing.

use std::collections::BTreeMap;
use std::fmt;

use duly_core::event::EventKind;
use duly_core::filter::Filter;
use duly_core::id::TaskId;
use duly_core::lease::{Finish, Finished, Outcome};
use duly_core::limits::QUARANTINE_LOSSES;
use duly_core::ports::store::{
    Controlled, Exchange, Extended, ListDead, ListTasks, Put, ReplayedDownstream, Submit,
    Submitted, WorkflowChange,
};
use duly_core::state::Status;
use duly_core::task::Task;

use crate::call::{Answer, Call};
use crate::known::Known;
use crate::schedules;

#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) cases: u64,
    pub(crate) steps: u64,
    seen: BTreeMap<String, u64>,
}

/// What must be seen, and how often in a thousand histories.
const INTERESTING: [(&str, u64); 62] = [
    ("submit HandedOff", 200),
    ("submit HandedOff again", 20),
    ("submit Replayed", 200),
    ("submit KeyReused", 100),
    ("finish Done", 1000),
    ("finish Done again", 50),
    ("finish LeaseLost", 200),
    ("finish Unknown", 20),
    ("claim again", 100),
    ("narrowed claim granted", 100),
    ("extend Done", 50),
    ("extend LeaseLost", 20),
    ("report Done", 200),
    ("report LeaseLost", 50),
    ("logs that are not empty", 3),
    ("cancel Conflict", 12),
    ("replay Done again", 20),
    ("replay Conflict", 50),
    ("retry Done", 20),
    ("delete Done of a failed task", 20),
    ("delete Done", 20),
    ("edit Done", 50),
    ("edit Conflict", 20),
    ("pause or resume true", 100),
    ("place in a queue", 50),
    ("loss leads to the dead letters", 15),
    ("quarantined task granted alone", 20),
    ("timeout", 100),
    ("unacknowledged lease released", 50),
    ("list by a filter that left some", 70),
    ("list of failed tasks alone", 3),
    ("dead letters by a filter that left some", 10),
    ("sweep that deleted", 20),
    ("settings Conflict", 20),
    ("submit Blocked", 200),
    ("submit UnknownParent", 20),
    ("submit WorkflowEnded", 20),
    ("task released", 200),
    ("task added by an outcome", 50),
    ("cascade that cancelled", 100),
    ("delete OpenChildren", 10),
    ("workflow retried", 8),
    ("replay with what depends on it", 8),
    ("workflow Replayed", 5),
    ("schedule Done", 100),
    ("schedule Conflict", 50),
    ("slots Stale", 50),
    ("slot ran a task", 100),
    ("slot ran a workflow", 50),
    ("slot OVERLAP", 50),
    ("slot BUFFERED", 5),
    ("slot MISSED", 20),
    ("slot that replaced another", 10),
    ("event task.unblocked", 50),
    ("event task.lost", 200),
    ("event task.retried", 50),
    ("event task.released", 100),
    ("event task.progressed", 100),
    ("event task.deleted", 50),
    ("event workflow.ended", 40),
    ("event schedule.skipped", 20),
    ("event queue.resumed", 20),
];
/// With fewer histories the numbers scatter more, and a quarter of what is expected will do.
const MANY: u64 = 1000;
/// Kinds of answers in a line of the report.
const PER_LINE: usize = 5;
const CRASH: &str = "crash with a live remote lease";

impl Tally {
    pub(crate) fn add(&mut self, other: &Self) {
        self.cases += other.cases;
        self.steps += other.steps;
        for (what, times) in &other.seen {
            *self.seen.entry(what.clone()).or_default() += times;
        }
    }

    /// Everything interesting was seen.
    pub(crate) fn check(&self) {
        for (what, times) in INTERESTING.into_iter().chain([(CRASH, 50)]) {
            let (seen, expected) = (self.times(what), times * self.cases / 1000);
            let wanted = if self.cases < MANY { expected / 4 } else { expected };
            assert!(seen >= wanted, "{what}: seen {seen} times, wanted {wanted}\n{self}");
        }
    }

    fn times(&self, what: &str) -> u64 {
        self.seen.get(what).copied().unwrap_or(0)
    }

    fn count(&mut self, what: impl Into<String>) {
        *self.seen.entry(what.into()).or_default() += 1;
    }

    pub(crate) fn note_events(&mut self, kinds: impl Iterator<Item = EventKind>) {
        kinds.for_each(|kind| self.count(format!("event {kind}")));
    }

    pub(crate) fn note_crash(&mut self, known: &Known) {
        self.count("crash");
        let remote = known.workers.iter().filter(|worker| worker.remote && worker.open);
        let ids: Vec<_> = remote.map(|worker| Some(worker.id)).collect();
        let running = known.state.values().filter(|task| task.status == Status::Running);
        if running.into_iter().any(|task| ids.contains(&task.session)) {
            self.count(CRASH);
        }
    }

    pub(crate) fn note(
        &mut self,
        call: &Call,
        answer: &Answer,
        before: &BTreeMap<TaskId, Task>,
        known: &Known,
    ) {
        let after = &known.state;
        schedules::seen(answer).into_iter().for_each(|what| self.count(what));
        match (call, answer) {
            (Call::Submit(batch), Answer::Submitted(answers)) => {
                self.note_submit(batch, answers, before);
            }
            (Call::Exchange(exchange), Answer::Exchanged { finished, .. }) => {
                for (item, answer) in exchange.finishes.iter().zip(finished) {
                    self.note_finish(item, *answer, before);
                }
                self.note_claim(exchange, answer, before);
            }
            (Call::Extend(_), Answer::Extended(answers)) => {
                for answer in answers {
                    let name = match answer {
                        Extended::Done { .. } => "Done",
                        Extended::LeaseLost => "LeaseLost",
                        Extended::Unknown => "Unknown",
                    };
                    self.count(format!("extend {name}"));
                }
            }
            (_, Answer::Reported(answers)) => {
                answers.iter().for_each(|answer| self.count(format!("report {answer:?}")));
            }
            (_, Answer::Logs(Some(page))) if !page.parts.is_empty() => {
                self.count("logs that are not empty");
            }
            (Call::Reap(_), Answer::TakenBack(leases)) => {
                for (_, id, _) in leases {
                    let charged = after[id].charged > before[id].charged;
                    self.count(if charged { "timeout" } else { "unacknowledged lease released" });
                }
            }
            (_, Answer::Controlled(answers)) => self.note_orders(call, answers, before, after),
            (_, Answer::Swept { deleted: 1.. }) => self.count("sweep that deleted"),
            (_, Answer::Put(put)) => {
                let conflict = matches!(put, Put::Conflict { .. });
                self.count(if conflict { "settings Conflict" } else { "settings Done" });
            }
            (_, Answer::Pages(pages)) => self.note_pages(call, pages),
            (_, Answer::IsQueue(known)) => self.count(format!("pause or resume {known}")),
            (_, Answer::QueuePosition(Some(_))) => self.count("place in a queue"),
            (_, Answer::IsOpen(open)) => self.count(format!("beat {open}")),
            (Call::End { why, .. }, Answer::PutBack(held)) if !held.is_empty() => {
                self.count(format!("end {why:?} with leases"));
            }
            _ => self.note_workflows(call, answer),
        }
        self.note_released(call, before, after);
        let lost = |task: &&Task| {
            let ran = before.get(&task.id).is_some_and(|it| it.status == Status::Running);
            let code = task.error.as_ref().map(|error| error.code.as_str());
            ran && task.status == Status::Failed && code == Some("WORKER_LOST")
        };
        for _ in after.values().filter(lost) {
            self.count("loss leads to the dead letters");
        }
    }

    fn note_workflows(&mut self, call: &Call, answer: &Answer) {
        match (call, answer) {
            (Call::Workflow(_), Answer::Workflow(answer)) => {
                let name = format!("{answer:?}");
                let name = name.split([' ', '{']).next().unwrap_or_default().to_owned();
                self.count(format!("workflow {name}"));
            }
            (_, Answer::Cascaded(cancelled)) if !cancelled.is_empty() => {
                self.count("cascade that cancelled");
            }
            (
                Call::RetryWorkflow(..),
                Answer::WorkflowChange(WorkflowChange::Done { tasks: 1.. }),
            ) => {
                self.count("workflow retried");
            }
            (_, Answer::ReplayedDownstream(ReplayedDownstream::Done { tasks: 1.. })) => {
                self.count("replay with what depends on it");
            }
            _ => {}
        }
    }

    fn note_released(
        &mut self,
        call: &Call,
        before: &BTreeMap<TaskId, Task>,
        after: &BTreeMap<TaskId, Task>,
    ) {
        let was = |task: &Task| before.get(&task.id).map(|task| task.status);
        let freed = |task: &&Task| {
            was(task) == Some(Status::Blocked)
                && matches!(task.status, Status::Pending | Status::Running)
        };
        for _ in after.values().filter(freed) {
            self.count("task released");
        }
        if matches!(call, Call::Exchange(_)) {
            for _ in after.keys().filter(|id| !before.contains_key(id)) {
                self.count("task added by an outcome");
            }
        }
    }

    fn note_pages(&mut self, call: &Call, pages: &[Vec<Task>]) {
        let (list, filter) = match call {
            Call::List(ListTasks { filter, .. }) => ("list", filter),
            Call::Dead(ListDead { filter, .. }) => ("dead letters", filter),
            _ => return,
        };
        if pages.concat().is_empty() || *filter == Filter::default() {
            return;
        }
        self.count(format!("{list} by a filter that left some"));
        if list == "list" && filter.statuses == [Status::Failed].into() {
            self.count("list of failed tasks alone");
        }
    }

    fn note_submit(
        &mut self,
        batch: &Submit,
        answers: &[Submitted],
        before: &BTreeMap<TaskId, Task>,
    ) {
        for (task, answer) in batch.tasks.iter().zip(answers) {
            let again = if before.contains_key(&task.id) { " again" } else { "" };
            let name = match answer {
                Submitted::Stored { .. } => "Stored",
                Submitted::HandedOff { .. } => "HandedOff",
                Submitted::Replayed { .. } => "Replayed",
                Submitted::KeyReused => "KeyReused",
                Submitted::LaneLimit => "LaneLimit",
                Submitted::Blocked { .. } => "Blocked",
                Submitted::UnknownParent { .. } => "UnknownParent",
                Submitted::TooManyChildren { .. } => "TooManyChildren",
                Submitted::WorkflowEnded => "WorkflowEnded",
                Submitted::UnknownWorkflow => "UnknownWorkflow",
            };
            self.count(format!("submit {name}{again}"));
        }
    }

    fn note_finish(&mut self, item: &Finish, answer: Finished, before: &BTreeMap<TaskId, Task>) {
        let ran = before.get(&item.task).is_some_and(|task| task.status == Status::Running);
        self.count(match answer {
            Finished::Done if !ran => "finish Done again",
            Finished::Done => "finish Done",
            Finished::LeaseLost => "finish LeaseLost",
            Finished::Unknown => "finish Unknown",
        });
        if answer == Finished::Done && ran && matches!(item.outcome, Outcome::Release) {
            self.count("finish Done of a release");
        }
    }

    fn note_claim(
        &mut self,
        exchange: &Exchange,
        answer: &Answer,
        before: &BTreeMap<TaskId, Task>,
    ) {
        let (Some(claim), Answer::Exchanged { leases, .. }) = (&exchange.claim, answer) else {
            return;
        };
        let losses = |id| before.get(id).map_or(0, |task: &Task| task.losses);
        let held = |id, epoch| before.get(id).is_some_and(|task: &Task| task.epoch == epoch);
        let is_new = leases.iter().any(|lease| !held(&lease.task, lease.epoch));
        if claim.only.is_some() && is_new {
            self.count("narrowed claim granted");
        }
        match &leases[..] {
            [] => self.count("claim of nothing"),
            [lease, ..] if held(&lease.task, lease.epoch) => self.count("claim again"),
            [lease] if losses(&lease.task) >= QUARANTINE_LOSSES => {
                self.count("quarantined task granted alone")
            }
            _ => self.count("claim granted"),
        }
    }

    fn note_orders(
        &mut self,
        call: &Call,
        answers: &[Controlled],
        before: &BTreeMap<TaskId, Task>,
        after: &BTreeMap<TaskId, Task>,
    ) {
        let (name, ids): (_, Vec<TaskId>) = match call {
            Call::Cancel(order) => ("cancel", order.tasks.clone()),
            Call::Replay(order) => ("replay", order.tasks.iter().map(|it| it.task).collect()),
            Call::Retry(order) => ("retry", order.tasks.clone()),
            Call::Delete(order) => ("delete", order.tasks.clone()),
            Call::Edit(order) => ("edit", vec![order.task]),
            _ => return,
        };
        let failed = |id| before.get(id).is_some_and(|task| task.status == Status::Failed);
        for (id, answer) in ids.iter().zip(answers) {
            let changed = before.get(id) != after.get(id);
            let detail = match (answer, name) {
                (Controlled::Done, "delete") if changed && failed(id) => "Done of a failed task",
                (Controlled::Done, _) if changed => "Done",
                (Controlled::Done, _) => "Done again",
                (Controlled::Conflict { .. }, _) => "Conflict",
                (Controlled::OpenChildren, _) => "OpenChildren",
                (Controlled::Unknown, _) => "Unknown",
            };
            self.count(format!("{name} {detail}"));
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} histories, {} steps", self.cases, self.steps)?;
        for (number, (what, times)) in self.seen.iter().enumerate() {
            let gap = if number % PER_LINE == 0 { ";\n " } else { "," };
            write!(f, "{gap} {times} {what}")?;
        }
        Ok(())
    }
}
