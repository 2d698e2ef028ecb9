//! What a slot runs: the task or workflow of its schedule's template. Everything in it follows from the
//! slot, so that a decision that is repeated, here or on another node, starts the same.

use std::collections::BTreeMap;
use std::time::Duration;

use duly_core::id::{ScheduleId, TaskId};
use duly_core::name::{ScheduleName, TenantName};
use duly_core::ports::store::SlotOrder;
use duly_core::schedule::{
    SCHEDULE_LABEL, SLOT_LABEL, SlotRun, Template, slot_task_id, slot_workflow_id,
};
use duly_core::settings::Settings;
use duly_core::submit::Spec;
use duly_core::task::NewTask;
use duly_core::time::Timestamp;
use duly_core::workflow::request::WorkflowSpec;
use duly_core::workflow::{Links, NewWorkflow};
use sha2::{Digest, Sha256};

use crate::command::schedules::ScheduleView;
use crate::command::submit::{Minted, just_after, new_task};
use crate::command::workflows::{MintedMember, member_tasks};

/// Makes what the slots of one generation of a schedule run.
pub(crate) struct SlotRunner<'a> {
    pub(crate) schedule: ScheduleId,
    pub(crate) generation: u32,
    pub(crate) tenant: &'a TenantName,
    pub(crate) name: &'a ScheduleName,
    pub(crate) template: &'a Template,
    /// What the template does not say.
    pub(crate) defaults: &'a Settings,
}

impl SlotRunner<'_> {
    /// The order to run a slot, this long after it.
    pub(crate) fn run(&self, slot: Timestamp, jitter: Duration) -> SlotOrder {
        let start = slot.plus(jitter);
        match self.template {
            Template::Task(spec) => SlotOrder::Task(Box::new(self.task(spec, slot, start))),
            Template::Workflow(spec) => {
                SlotOrder::Workflow(Box::new(self.workflow(spec, slot, start)))
            }
        }
    }

    /// What the order to run a slot starts.
    pub(crate) fn started_by(&self, slot: Timestamp, jitter: Duration) -> SlotRun {
        let start = slot.plus(jitter);
        match self.template {
            Template::Task(spec) => SlotRun::Task(self.task_id(spec, slot, start)),
            Template::Workflow(_) => {
                let id = slot_workflow_id(self.schedule, self.generation, slot, start);
                SlotRun::Workflow(id)
            }
        }
    }

    fn task(&self, spec: &Spec, slot: Timestamp, start: Timestamp) -> NewTask {
        let [entropy, _] = self.numbers(slot, None);
        let id = self.task_id(spec, slot, start);
        let links = Links { render: spec.render, ..Links::default() };
        let minted = Minted { id, now: start, entropy, links };
        let mut task = at_its_time(new_task(self.tenant, spec.clone(), self.defaults, minted));
        self.mark(&mut task.labels, slot);
        task
    }

    fn task_id(&self, spec: &Spec, slot: Timestamp, start: Timestamp) -> TaskId {
        let [entropy, _] = self.numbers(slot, None);
        slot_task_id(self.schedule, self.generation, slot, spec.run_at(start, entropy))
    }

    fn workflow(&self, spec: &WorkflowSpec, slot: Timestamp, start: Timestamp) -> NewWorkflow {
        let id = slot_workflow_id(self.schedule, self.generation, slot, start);
        let mut ordinals = 0..;
        let tasks = member_tasks(self.tenant, id, spec, self.defaults, |member, latest| {
            let [entropy, random] = self.numbers(slot, Some(&member.key));
            let ordinal = ordinals.next().expect("a workflow has fewer tasks");
            let own = TaskId::mint(member.spec.run_at(start, entropy), ordinal, random);
            // Ids ascend along edges.
            let id = match latest.filter(|parent| *parent >= own) {
                Some(parent) => TaskId::mint(just_after(parent), ordinal, random),
                None => own,
            };
            MintedMember { id, now: start, entropy }
        });
        let mut labels = spec.labels.clone();
        self.mark(&mut labels, slot);
        NewWorkflow {
            id,
            tenant: self.tenant.clone(),
            name: spec.name.clone(),
            labels,
            fail_fast: spec.fail_fast,
            idempotency: None,
            tasks: tasks.into_iter().map(at_its_time).collect(),
        }
    }

    /// Numbers that look random and are always the same: for the slot, or for one task of its workflow.
    fn numbers(&self, slot: Timestamp, key: Option<&str>) -> [u64; 2] {
        let mut hasher = Sha256::new();
        hasher.update(self.schedule.as_bytes());
        hasher.update(self.generation.to_be_bytes());
        hasher.update(slot.millis().to_be_bytes());
        hasher.update(key.unwrap_or_default());
        let digest: [u8; 32] = hasher.finalize().into();
        let (numbers, _) = digest.as_chunks::<8>();
        [u64::from_be_bytes(numbers[0]), u64::from_be_bytes(numbers[1])]
    }

    fn mark(&self, labels: &mut BTreeMap<String, String>, slot: Timestamp) {
        labels.insert(SCHEDULE_LABEL.to_owned(), self.name.to_string());
        labels.insert(SLOT_LABEL.to_owned(), slot.to_string());
    }
}

impl<'a> SlotRunner<'a> {
    /// For a schedule that was read.
    pub(crate) fn of(view: &'a ScheduleView, defaults: &'a Settings) -> Self {
        let ScheduleView { schedule, template, .. } = view;
        Self {
            schedule: schedule.id,
            generation: schedule.generation,
            tenant: &schedule.tenant,
            name: &schedule.name,
            template,
            defaults,
        }
    }
}

/// A task whose delay counts from its slot, and not from the moment at which it is stored.
fn at_its_time(task: NewTask) -> NewTask {
    NewTask { delay: None, ..task }
}
