//! Schedules in histories: two names, whose slots start a few of the tasks.

use std::sync::Arc;
use std::time::Duration;

use duly_core::id::{ScheduleId, TaskId, WorkflowId};
use duly_core::name::{Lane, ScheduleName};
use duly_core::ports::store::{
    Decide, Decided, DeleteSchedule, Expected, PutSchedule, ScheduleChange, SlotOrder, SlotOutcome,
    Store, SwitchSchedule,
};
use duly_core::schedule::{Definition, Overlap, Schedule, ScheduleStatus, SkipReason, SlotRun};
use duly_core::task::{NewTask, Priority};
use duly_core::time::Timestamp;
use duly_core::workflow::{Links, Membership, NewWorkflow};

use crate::call::{Answer, Call};
use crate::known::{Known, tenant};
use crate::meaning::{queue, type_name};
use crate::step::{DecideStep, ScheduleOrder, ScheduleStep};

/// More tasks than these are not made by slots.
const TASKS: usize = 12;

pub(crate) fn name(other: bool) -> ScheduleName {
    ScheduleName::new(if other { "weekly" } else { "nightly" }).unwrap()
}

impl Known {
    pub(crate) fn about_schedules(&mut self, step: ScheduleStep) -> Call {
        let known = self.schedules[usize::from(step.other)].clone();
        let (tenant, name) = (tenant(false), name(step.other));
        let expected = |choice: u8| match (choice, &known) {
            (0, _) => Expected::Absent,
            (1, Some(schedule)) => Expected::Version(schedule.version),
            (2, _) => Expected::Version(1),
            _ => Expected::Any,
        };
        match step.order {
            ScheduleOrder::Put { rule, paused, expected: choice } => {
                let number = self.next_ordinal();
                Call::PutSchedule(PutSchedule {
                    id: ScheduleId::mint(self.now, number.into()),
                    tenant,
                    name,
                    definition: Definition {
                        rule: Arc::from(format!("{{\"every\":\"{rule}m\"}}")),
                        template: Arc::from("{}"),
                    },
                    labels: [("n".to_owned(), rule.to_string())].into(),
                    status: if paused { ScheduleStatus::Paused } else { ScheduleStatus::Active },
                    note: Some(rule.to_string()).filter(|_| rule > 1),
                    managed: false,
                    expected: expected(choice),
                })
            }
            ScheduleOrder::Switch { pause } => Call::SwitchSchedule(SwitchSchedule {
                tenant,
                name,
                status: if pause { ScheduleStatus::Paused } else { ScheduleStatus::Active },
                note: None,
                expected: Expected::Any,
            }),
            ScheduleOrder::Delete { expected: choice } => Call::DeleteSchedule(DeleteSchedule {
                tenant,
                name,
                managed: false,
                expected: expected(choice),
            }),
            ScheduleOrder::Changed => {
                Call::SchedulesChanged(known.map_or(0, |schedule| schedule.version - 1))
            }
            ScheduleOrder::Decide(step) => {
                Call::Decide(self.decide(known.as_ref(), step).into_iter().collect())
            }
        }
    }

    fn decide(&mut self, known: Option<&Schedule>, step: DecideStep) -> Option<Decide> {
        let schedule = known?;
        let behind = Duration::from_secs(u64::from(step.behind));
        let from = schedule.position.minus(behind);
        let mut slot = from;
        let mut slots = Vec::new();
        for (seconds, kind) in step.slots.into_iter().flatten() {
            slot = slot.plus(Duration::from_secs(1 + u64::from(seconds)));
            slots.push((slot, self.slot(slot, kind)));
        }
        Some(Decide {
            schedule: schedule.id,
            generation: schedule.generation,
            moves: step.moves.then_some((from, slot)),
            overlap: Overlap::ALL[usize::from(step.overlap) % Overlap::ALL.len()],
            slots,
        })
    }

    fn slot(&mut self, slot: Timestamp, kind: u8) -> SlotOrder {
        let full = self.tasks.len() >= TASKS;
        match kind {
            0 => SlotOrder::Skip(SkipReason::Missed),
            _ if full => SlotOrder::Skip(SkipReason::TooMany),
            4 => SlotOrder::Workflow(Box::new(self.workflow_of_slot(slot))),
            _ => SlotOrder::Task(Box::new(self.task_of_slot(slot, kind))),
        }
    }

    fn task_of_slot(&mut self, slot: Timestamp, kind: u8) -> NewTask {
        NewTask {
            id: TaskId::mint(slot, self.next_ordinal(), 7),
            lane: Lane { tenant: tenant(false), queue: queue(false), task_type: type_name(kind) },
            priority: Priority::new(5).unwrap(),
            run_at: slot,
            delay: None,
            retries: 1,
            back_off: duly_core::back_off::BackOff::default(),
            timeout: None,
            labels: [("n".to_owned(), kind.to_string())].into(),
            payload: Arc::from("{}"),
            idempotency: None,
            links: None,
        }
    }

    fn workflow_of_slot(&mut self, slot: Timestamp) -> NewWorkflow {
        let id = WorkflowId::from_bytes(*TaskId::mint(slot, self.next_ordinal(), 7).as_bytes());
        let mut task = self.task_of_slot(slot, 1);
        let workflow = Some(Membership { id, key: "only".to_owned() });
        task.links = Some(Arc::new(Links { workflow, ..Links::default() }));
        NewWorkflow {
            id,
            tenant: tenant(false),
            name: "slot".to_owned(),
            labels: [].into(),
            fail_fast: false,
            idempotency: None,
            tasks: vec![task],
        }
    }

    /// Workflows that slots have started.
    pub(crate) fn learn_slots(&mut self, answers: &[Decided]) {
        for answer in answers {
            let Decided::Done { slots, .. } = answer else { continue };
            for outcome in slots {
                if let SlotOutcome::Ran(SlotRun::Workflow(id)) = outcome
                    && !self.workflows.contains(&(*id, false))
                {
                    self.workflows.push((*id, false));
                }
            }
        }
    }
}

/// Makes a call about schedules.
pub(crate) async fn ask(store: &dyn Store, call: Call) -> Answer {
    match call {
        Call::PutSchedule(put) => Answer::Schedule(store.put_schedule(put).await.unwrap()),
        Call::SwitchSchedule(switch) => {
            Answer::Schedule(store.switch_schedule(switch).await.unwrap())
        }
        Call::DeleteSchedule(delete) => {
            Answer::Schedule(store.delete_schedule(delete).await.unwrap())
        }
        Call::Decide(decisions) => Answer::Decided(store.decide_slots(decisions).await.unwrap()),
        Call::SchedulesChanged(above) => {
            Answer::Schedules(store.schedules_changed(above, 10).await.unwrap())
        }
        other => panic!("{other:?} is about something else"),
    }
}

/// What is worth counting about an answer.
pub(crate) fn seen(answer: &Answer) -> Vec<String> {
    match answer {
        Answer::Schedule(ScheduleChange::Done { .. }) => vec!["schedule Done".to_owned()],
        Answer::Schedule(ScheduleChange::Conflict { .. }) => vec!["schedule Conflict".to_owned()],
        Answer::Decided(answers) => answers.iter().flat_map(seen_slots).collect(),
        _ => Vec::new(),
    }
}

fn seen_slots(answer: &Decided) -> Vec<String> {
    let Decided::Done { slots, cancelled } = answer else { return vec!["slots Stale".to_owned()] };
    let one = |outcome: &SlotOutcome| match outcome {
        SlotOutcome::Ran(SlotRun::Task(_)) => "slot ran a task".to_owned(),
        SlotOutcome::Ran(SlotRun::Workflow(_)) => "slot ran a workflow".to_owned(),
        SlotOutcome::Skipped(reason) => format!("slot {reason}"),
    };
    let replaced = cancelled.iter().map(|_| "slot that replaced another".to_owned());
    slots.iter().map(one).chain(replaced).collect()
}
