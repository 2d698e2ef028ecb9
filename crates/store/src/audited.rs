//! What the audit log says about changes, the same for every store: which objects an order of a user may
//! change, and how each is shown. When an entry is written is up to the stores: each compares the object
//! before and after the order, in the transaction of the order.

mod view;

use std::sync::Arc;

use duly_core::bulk::BulkOrder;
use duly_core::id::{KeyId, ScheduleId, SessionId, TaskId, WorkflowId};
use duly_core::name::{QueueName, ScheduleName, TenantName, TypeName};
use duly_core::ports::store::{
    CancelTasks, Decide, DeleteSchedule, DeleteTasks, EditTask, NewKey, PauseQueue, PutSchedule,
    PutTenant, ReplayTasks, RetryTasks, Submit, SwitchSchedule,
};
use duly_core::schedule::{BackfillOrder, ScheduleStatus};
use duly_core::task::NewTask;
use serde_json::{Map, Value, json};

pub(crate) use self::view::View;

/// Ids of an order that its entry names.
const IDS: usize = 100;

/// Something that belongs to a user or to the installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Object {
    Settings,
    Queue(TenantName, QueueName),
    Schedule(TenantName, ScheduleName),
    Slot(ScheduleId, duly_core::time::Timestamp),
    Task(TenantName, TaskId),
    Workflow(TenantName, WorkflowId),
    Session(SessionId),
    Key(KeyId),
    Tenant(TenantName),
}

/// An object that an order may change, and what the audit log calls that.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) action: &'static str,
    pub(crate) object: Object,
    /// What the entry says beside how the object is now.
    order: Map<String, Value>,
    /// Named instead of the object.
    target: Option<String>,
    /// Whether it goes by what the order counts, and not by how the object looks.
    is_counted: bool,
}

/// An entry of the audit log, without what the store adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) action: &'static str,
    pub(crate) target: String,
    pub(crate) tenant: Option<TenantName>,
    pub(crate) before: Option<Arc<str>>,
    pub(crate) after: Option<Arc<str>>,
}

impl Subject {
    pub(crate) fn new(action: &'static str, object: Object) -> Self {
        Self { action, object, order: Map::new(), target: None, is_counted: false }
    }

    /// Whether the order itself tells if it has changed anything, whatever the object looks like.
    #[cfg(feature = "postgres")]
    pub(crate) fn is_counted(&self) -> bool {
        self.is_counted
    }

    /// What to write, if the object has changed. `count` is what the order has counted: of a subject that
    /// goes by it, nothing has changed if it is 0.
    pub(crate) fn change(
        self,
        before: Option<View>,
        after: Option<View>,
        count: u64,
    ) -> Option<Change> {
        let has_changed = if self.is_counted { count > 0 } else { before != after };
        let known = before.as_ref().or(after.as_ref()).filter(|_| has_changed)?;
        let action = match self.action {
            "task.cancel" if known.is_of_type(&TypeName::bulk()) => "bulk.abort",
            "tenant.put" => view::switched(before.as_ref(), after.as_ref()).unwrap_or("tenant.put"),
            action => action,
        };
        let target = self.target.unwrap_or_else(|| known.target.clone());
        let tenant = known.tenant.clone();
        let (before, mut after) = view::difference(before, after);
        if let Some(after) = &mut after {
            after.extend(self.order);
            if self.is_counted {
                after.insert("tasks".to_owned(), json!(count));
            }
        }
        let text = |fields: Map<String, Value>| Arc::from(Value::Object(fields).to_string());
        Some(Change { action, target, tenant, before: before.map(text), after: after.map(text) })
    }
}

/// An order of a user that the audit log is to know of.
pub(crate) trait Audited {
    /// What it may change.
    fn audited(&self) -> Vec<Subject>;
}

fn tasks(
    action: &'static str,
    tenant: &TenantName,
    ids: impl IntoIterator<Item = TaskId>,
) -> Vec<Subject> {
    let subject = |id| Subject::new(action, Object::Task(tenant.clone(), id));
    ids.into_iter().map(subject).collect()
}

impl Audited for CancelTasks {
    fn audited(&self) -> Vec<Subject> {
        tasks("task.cancel", &self.tenant, self.tasks.iter().copied())
    }
}

impl Audited for ReplayTasks {
    fn audited(&self) -> Vec<Subject> {
        tasks("task.replay", &self.tenant, self.tasks.iter().map(|replay| replay.task))
    }
}

impl Audited for RetryTasks {
    fn audited(&self) -> Vec<Subject> {
        tasks("task.retry", &self.tenant, self.tasks.iter().copied())
    }
}

impl Audited for EditTask {
    fn audited(&self) -> Vec<Subject> {
        tasks("task.edit", &self.tenant, [self.task])
    }
}

impl Audited for DeleteTasks {
    fn audited(&self) -> Vec<Subject> {
        tasks("task.delete", &self.tenant, self.tasks.iter().copied())
    }
}

/// Of what is submitted, only what starts a bulk action or a backfill.
impl Audited for Submit {
    fn audited(&self) -> Vec<Subject> {
        self.tasks.iter().filter_map(started).collect()
    }
}

fn started(task: &NewTask) -> Option<Subject> {
    let object = Object::Task(task.lane.tenant.clone(), task.id);
    if task.lane.task_type == TypeName::bulk() {
        let order = serde_json::from_str(&task.payload).map(bulk_order).unwrap_or_default();
        return Some(Subject { order, ..Subject::new("bulk.start", object) });
    }
    if task.lane.task_type == TypeName::backfill() {
        let order: BackfillOrder = serde_json::from_str(&task.payload).ok()?;
        let target = Some(order.schedule.to_string());
        let order = Map::from_iter([
            ("task".to_owned(), json!(task.id.to_string())),
            ("from".to_owned(), json!(order.from.to_string())),
            ("to".to_owned(), json!(order.to.to_string())),
            ("slots".to_owned(), json!(order.slots)),
        ]);
        return Some(Subject { order, target, ..Subject::new("schedule.backfill", object) });
    }
    None
}

/// A bulk action in full, but for most ids of a long list.
fn bulk_order(mut order: BulkOrder) -> Map<String, Value> {
    let ids = order.ids.as_mut().map(|ids| {
        let count = ids.len();
        ids.truncate(IDS);
        count
    });
    let mut fields = match serde_json::to_value(&order) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    if let Some(count) = ids {
        fields.insert("idCount".to_owned(), json!(count));
    }
    fields
}

impl Audited for PauseQueue {
    fn audited(&self) -> Vec<Subject> {
        let object = Object::Queue(self.tenant.clone(), self.queue.clone());
        vec![Subject::new("queue.pause", object)]
    }
}

pub(crate) fn resume_queue(tenant: &TenantName, queue: &QueueName) -> Vec<Subject> {
    vec![Subject::new("queue.resume", Object::Queue(tenant.clone(), queue.clone()))]
}

pub(crate) fn put_settings() -> Vec<Subject> {
    vec![Subject::new("settings.put", Object::Settings)]
}

impl Audited for PutSchedule {
    fn audited(&self) -> Vec<Subject> {
        vec![Subject::new("schedule.put", schedule(&self.tenant, &self.name))]
    }
}

impl Audited for SwitchSchedule {
    fn audited(&self) -> Vec<Subject> {
        let action = match self.status {
            ScheduleStatus::Active => "schedule.resume",
            ScheduleStatus::Paused => "schedule.pause",
        };
        vec![Subject::new(action, schedule(&self.tenant, &self.name))]
    }
}

impl Audited for DeleteSchedule {
    fn audited(&self) -> Vec<Subject> {
        vec![Subject::new("schedule.delete", schedule(&self.tenant, &self.name))]
    }
}

fn schedule(tenant: &TenantName, name: &ScheduleName) -> Object {
    Object::Schedule(tenant.clone(), name.clone())
}

/// Slots that a user decides are those that a user asks for: a trigger.
impl Audited for [Decide] {
    fn audited(&self) -> Vec<Subject> {
        let slots = |it: &Decide| {
            let schedule = it.schedule;
            let slot = move |slot| Subject::new("schedule.trigger", Object::Slot(schedule, slot));
            it.slots.iter().map(|(at, _)| slot(*at)).collect::<Vec<_>>()
        };
        self.iter().flat_map(slots).collect()
    }
}

impl Audited for NewKey {
    fn audited(&self) -> Vec<Subject> {
        vec![Subject::new("key.create", Object::Key(self.key.id))]
    }
}

pub(crate) fn revoke_key(id: KeyId) -> Vec<Subject> {
    vec![Subject::new("key.revoke", Object::Key(id))]
}

impl Audited for PutTenant {
    fn audited(&self) -> Vec<Subject> {
        vec![Subject::new("tenant.put", Object::Tenant(self.name.clone()))]
    }
}

pub(crate) fn cancel_workflow(tenant: &TenantName, id: WorkflowId) -> Vec<Subject> {
    vec![Subject::new("workflow.cancel", Object::Workflow(tenant.clone(), id))]
}

/// The state of a workflow may be the same after its failed tasks were told to run again.
pub(crate) fn retry_workflow(tenant: &TenantName, id: WorkflowId) -> Vec<Subject> {
    let subject = Subject::new("workflow.retry", Object::Workflow(tenant.clone(), id));
    vec![Subject { is_counted: true, ..subject }]
}

pub(crate) fn replay_downstream(tenant: &TenantName, task: TaskId) -> Vec<Subject> {
    let downstream = Map::from_iter([("downstream".to_owned(), json!(true))]);
    let subject = Subject::new("task.replay", Object::Task(tenant.clone(), task));
    vec![Subject { order: downstream, ..subject }]
}

pub(crate) fn drain(session: SessionId, draining: bool) -> Vec<Subject> {
    let action = if draining { "worker.drain" } else { "worker.undrain" };
    vec![Subject::new(action, Object::Session(session))]
}

#[cfg(test)]
mod tests;
