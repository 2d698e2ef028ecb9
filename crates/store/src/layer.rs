//! A store around another store. A [`Layer`] sees every call with its name, so that a fault, a metric
//! or a span is written once and not once per call.
//!
//! The arguments of a call are cloned for each time it is made; payloads are shared. A store that is
//! not wrapped costs nothing.

mod outbox;

use std::any::Any;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use duly_core::access::TenantGrant;
use duly_core::audit::{AuditEntry, Author};
use duly_core::id::{KeyId, NodeId, ScheduleId, SessionId, TaskId, WorkflowId};
use duly_core::key::{ApiKey, KeyHash};
use duly_core::name::{Lane, QueueName, ScheduleName, TenantName};
use duly_core::ports::store::{
    AuditLog, Bulk, BulkStep, CancelTasks, Cascaded, Control, Controlled, CopyProgress, CountTasks,
    Counted, DeadGroups, DeadLetters, DeadList, Decide, Decided, DeleteSchedule, DeleteTasks,
    EditTask, Ending, Exchange, Exchanged, Expiry, ExtendLeases, Extended, Graph, GroupDead,
    Heartbeat, Hint, JoinNode, Keys, Leader, Leadership, Leases, ListAudit, ListDead, ListKeys,
    ListQueues, ListSchedules, ListSettings, ListTasks, ListWorkflows, LogPage, NewKey, NodeState,
    Nodes, OpenSession, OpenedSession, Parent, PauseQueue, Put, PutSchedule, PutSettings,
    PutTenant, QueueList, QueuePosition, QueueState, Queues, ReadLogs, Reap, Reaped, ReplayTasks,
    ReplayedDownstream, Report, Reported, Reports, Result, RetryTasks, ScheduleChange,
    ScheduleList, Schedules, Sessions, SettingsLog, SlotRecord, Snapshot, Snapshots, Store,
    StoreHealth, Submit, Submitted, SubmittedWorkflow, Sweep, Swept, SwitchSchedule, TaskCount,
    TaskList, Tasks, TenantChange, TenantRecords, Usage, VersionedSettings, WorkerState,
    WorkflowChange, WorkflowList, WorkflowState, Workflows,
};
use duly_core::ports::work_source::TakenBack;
use duly_core::schedule::Schedule;
use duly_core::settings::OwnRetention;
use duly_core::task::{Attempt, Task};
use duly_core::tenant::TenantRecord;
use duly_core::time::Timestamp;
use duly_core::workflow::NewWorkflow;

/// A future in a box, as `async_trait` makes them.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One call of a store.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The name of the method, such as `submit`.
    pub name: &'static str,
    argument: &'a (dyn Any + Send + Sync),
}

impl<'a> Call<'a> {
    fn new(name: &'static str, argument: &'a (dyn Any + Send + Sync)) -> Self {
        Self { name, argument }
    }

    /// A call without an argument, or with more than one.
    fn named(name: &'static str) -> Self {
        Self::new(name, &())
    }

    /// The argument, if the call has exactly one and it is of this type:
    /// `call.argument::<Submit>()` answers for `submit` alone.
    pub fn argument<T: 'static>(&self) -> Option<&'a T> {
        self.argument.downcast_ref()
    }
}

/// What is done with every call.
pub trait Layer: Send + Sync {
    /// Answers a call. `inner` makes it, each time with the same arguments.
    fn call<'a, T, F>(
        &'a self,
        call: Call<'a>,
        inner: F,
    ) -> impl Future<Output = Result<T>> + Send + 'a
    where
        T: Send + 'static,
        F: Fn() -> BoxFuture<'a, Result<T>> + Send + Sync + 'a;

    /// Waits for a hint; see [`StoreHealth::hint`].
    fn hint<'a>(&'a self, inner: &'a dyn Store) -> BoxFuture<'a, Hint> {
        inner.hint()
    }

    /// Waits for a hint that a lease was revoked; see [`Sessions::revocation`].
    fn revocation<'a>(&'a self, inner: &'a dyn Store) -> BoxFuture<'a, ()> {
        inner.revocation()
    }

    /// Waits for a hint that events were written; see [`duly_core::ports::store::Outbox::event_hint`].
    fn event_hint<'a>(&'a self, inner: &'a dyn Store) -> BoxFuture<'a, ()> {
        inner.event_hint()
    }
}

/// A layer that its owner keeps a handle to.
impl<L: Layer> Layer for Arc<L> {
    fn call<'a, T, F>(
        &'a self,
        call: Call<'a>,
        inner: F,
    ) -> impl Future<Output = Result<T>> + Send + 'a
    where
        T: Send + 'static,
        F: Fn() -> BoxFuture<'a, Result<T>> + Send + Sync + 'a,
    {
        L::call(self, call, inner)
    }

    fn hint<'a>(&'a self, inner: &'a dyn Store) -> BoxFuture<'a, Hint> {
        L::hint(self, inner)
    }

    fn revocation<'a>(&'a self, inner: &'a dyn Store) -> BoxFuture<'a, ()> {
        L::revocation(self, inner)
    }

    fn event_hint<'a>(&'a self, inner: &'a dyn Store) -> BoxFuture<'a, ()> {
        L::event_hint(self, inner)
    }
}

/// A store whose every call goes through a layer.
pub struct Layered<L> {
    layer: Arc<L>,
    inner: Arc<dyn Store>,
}

impl<L: Layer> Layered<L> {
    /// Around a store.
    pub fn new(layer: L, inner: Arc<dyn Store>) -> Self {
        Self { layer: Arc::new(layer), inner }
    }
}

#[async_trait]
impl<L: Layer + 'static> Tasks for Layered<L> {
    async fn submit(&self, batch: Submit) -> Result<Vec<Submitted>> {
        self.layer.call(Call::new("submit", &batch), || self.inner.submit(batch.clone())).await
    }

    async fn get(&self, tenant: &TenantName, id: TaskId) -> Result<Option<Task>> {
        self.layer.call(Call::named("get"), || self.inner.get(tenant, id)).await
    }

    async fn list(&self, page: ListTasks) -> Result<TaskList> {
        self.layer.call(Call::new("list", &page), || self.inner.list(page.clone())).await
    }

    async fn attempts(&self, tenant: &TenantName, id: TaskId) -> Result<Option<Vec<Attempt>>> {
        self.layer.call(Call::named("attempts"), || self.inner.attempts(tenant, id)).await
    }
}

#[async_trait]
impl<L: Layer + 'static> Sessions for Layered<L> {
    async fn open_session(&self, session: OpenSession) -> Result<()> {
        self.layer
            .call(Call::new("open_session", &session), || self.inner.open_session(session.clone()))
            .await
    }

    async fn beat(&self, beat: Heartbeat) -> Result<bool> {
        self.layer.call(Call::new("beat", &beat), || self.inner.beat(beat.clone())).await
    }

    async fn keep_alive(&self, sessions: Vec<SessionId>) -> Result<Vec<SessionId>> {
        self.layer
            .call(Call::new("keep_alive", &sessions), || self.inner.keep_alive(sessions.clone()))
            .await
    }

    async fn sessions(&self) -> Result<Vec<OpenedSession>> {
        self.layer.call(Call::named("sessions"), || self.inner.sessions()).await
    }

    async fn workers(&self) -> Result<Vec<WorkerState>> {
        self.layer.call(Call::named("workers"), || self.inner.workers()).await
    }

    async fn drain(&self, session: SessionId, draining: bool) -> Result<bool> {
        self.layer.call(Call::named("drain"), || self.inner.drain(session, draining)).await
    }

    async fn draining(&self, sessions: Vec<SessionId>) -> Result<Vec<SessionId>> {
        self.layer
            .call(Call::new("draining", &sessions), || self.inner.draining(sessions.clone()))
            .await
    }

    async fn serving(&self, lane: &Lane) -> Result<Vec<SessionId>> {
        self.layer.call(Call::named("serving"), || self.inner.serving(lane)).await
    }

    async fn end_session(&self, session: SessionId, ending: Ending) -> Result<Vec<TaskId>> {
        self.layer
            .call(Call::named("end_session"), || self.inner.end_session(session, ending))
            .await
    }

    async fn revoked(&self, sessions: Vec<SessionId>) -> Result<Vec<(SessionId, TakenBack)>> {
        self.layer
            .call(Call::new("revoked", &sessions), || self.inner.revoked(sessions.clone()))
            .await
    }

    async fn revocation(&self) {
        self.layer.revocation(&*self.inner).await;
    }

    async fn reap(&self, reap: Reap) -> Result<Reaped> {
        self.layer.call(Call::new("reap", &reap), || self.inner.reap(reap)).await
    }
}

#[async_trait]
impl<L: Layer + 'static> Leases for Layered<L> {
    async fn exchange(&self, exchange: Exchange) -> Result<Exchanged> {
        self.layer
            .call(Call::new("exchange", &exchange), || self.inner.exchange(exchange.clone()))
            .await
    }

    async fn extend(&self, order: ExtendLeases) -> Result<Vec<Extended>> {
        self.layer.call(Call::new("extend", &order), || self.inner.extend(order.clone())).await
    }
}

#[async_trait]
impl<L: Layer + 'static> Reports for Layered<L> {
    async fn report(&self, report: Report) -> Result<Vec<Reported>> {
        self.layer.call(Call::new("report", &report), || self.inner.report(report.clone())).await
    }

    async fn logs(&self, read: ReadLogs) -> Result<Option<LogPage>> {
        self.layer.call(Call::new("logs", &read), || self.inner.logs(read.clone())).await
    }
}

#[async_trait]
impl<L: Layer + 'static> Control for Layered<L> {
    async fn cancel(&self, order: CancelTasks) -> Result<Vec<Controlled>> {
        self.layer.call(Call::new("cancel", &order), || self.inner.cancel(order.clone())).await
    }

    async fn replay(&self, order: ReplayTasks) -> Result<Vec<Controlled>> {
        self.layer.call(Call::new("replay", &order), || self.inner.replay(order.clone())).await
    }

    async fn retry(&self, order: RetryTasks) -> Result<Vec<Controlled>> {
        self.layer.call(Call::new("retry", &order), || self.inner.retry(order.clone())).await
    }

    async fn edit(&self, order: EditTask) -> Result<Controlled> {
        self.layer.call(Call::new("edit", &order), || self.inner.edit(order.clone())).await
    }
}

#[async_trait]
impl<L: Layer + 'static> DeadLetters for Layered<L> {
    async fn dead_letters(&self, page: ListDead) -> Result<DeadList> {
        self.layer
            .call(Call::new("dead_letters", &page), || self.inner.dead_letters(page.clone()))
            .await
    }

    async fn dead_groups(&self, which: GroupDead) -> Result<DeadGroups> {
        self.layer
            .call(Call::new("dead_groups", &which), || self.inner.dead_groups(which.clone()))
            .await
    }
}

#[async_trait]
impl<L: Layer + 'static> Queues for Layered<L> {
    async fn queues(&self, page: ListQueues) -> Result<QueueList> {
        self.layer.call(Call::new("queues", &page), || self.inner.queues(page.clone())).await
    }

    async fn queue(&self, tenant: &TenantName, queue: &QueueName) -> Result<Option<QueueState>> {
        self.layer.call(Call::named("queue"), || self.inner.queue(tenant, queue)).await
    }

    async fn pause_queue(&self, order: PauseQueue) -> Result<bool> {
        self.layer
            .call(Call::new("pause_queue", &order), || self.inner.pause_queue(order.clone()))
            .await
    }

    async fn resume_queue(&self, tenant: &TenantName, queue: &QueueName) -> Result<bool> {
        self.layer
            .call(Call::named("resume_queue"), || self.inner.resume_queue(tenant, queue))
            .await
    }

    async fn place(&self, tenant: &TenantName, id: TaskId) -> Result<Option<QueuePosition>> {
        self.layer.call(Call::named("place"), || self.inner.place(tenant, id)).await
    }
}

#[async_trait]
impl<L: Layer + 'static> SettingsLog for Layered<L> {
    async fn settings(&self) -> Result<VersionedSettings> {
        self.layer.call(Call::named("settings"), || self.inner.settings()).await
    }

    async fn put_settings(&self, put: PutSettings) -> Result<Put> {
        self.layer
            .call(Call::new("put_settings", &put), || self.inner.put_settings(put.clone()))
            .await
    }

    async fn settings_history(&self, page: ListSettings) -> Result<Vec<VersionedSettings>> {
        self.layer
            .call(Call::new("settings_history", &page), || self.inner.settings_history(page))
            .await
    }
}

#[async_trait]
impl<L: Layer + 'static> Expiry for Layered<L> {
    async fn sweep(&self, sweep: Sweep) -> Result<Swept> {
        self.layer.call(Call::new("sweep", &sweep), || self.inner.sweep(sweep.clone())).await
    }

    async fn forget_sessions(&self, before: Timestamp) -> Result<u32> {
        self.layer
            .call(Call::new("forget_sessions", &before), || self.inner.forget_sessions(before))
            .await
    }
}

#[async_trait]
impl<L: Layer + 'static> Bulk for Layered<L> {
    async fn count(&self, which: CountTasks) -> Result<TaskCount> {
        self.layer.call(Call::new("count", &which), || self.inner.count(which.clone())).await
    }

    async fn delete(&self, order: DeleteTasks) -> Result<Vec<Controlled>> {
        self.layer.call(Call::new("delete", &order), || self.inner.delete(order.clone())).await
    }

    async fn carry_out(&self, step: BulkStep) -> Result<Option<Vec<Controlled>>> {
        self.layer.call(Call::new("carry_out", &step), || self.inner.carry_out(step.clone())).await
    }
}

#[async_trait]
impl<L: Layer + 'static> Leadership for Layered<L> {
    async fn lead(&self, node: NodeId, ttl: Duration) -> Result<Leader> {
        self.layer.call(Call::named("lead"), || self.inner.lead(node, ttl)).await
    }

    async fn resign(&self, node: NodeId) -> Result<()> {
        self.layer.call(Call::new("resign", &node), || self.inner.resign(node)).await
    }

    async fn leader(&self) -> Result<Option<Leader>> {
        self.layer.call(Call::named("leader"), || self.inner.leader()).await
    }
}

#[async_trait]
impl<L: Layer + 'static> Nodes for Layered<L> {
    fn node(&self) -> NodeId {
        self.inner.node()
    }

    async fn join(&self, node: JoinNode) -> Result<()> {
        self.layer.call(Call::new("join", &node), || self.inner.join(node.clone())).await
    }

    async fn nodes(&self) -> Result<Vec<NodeState>> {
        self.layer.call(Call::named("nodes"), || self.inner.nodes()).await
    }

    async fn leave(&self) -> Result<()> {
        self.layer.call(Call::named("leave"), || self.inner.leave()).await
    }
}

#[async_trait]
impl<L: Layer + 'static> Snapshots for Layered<L> {
    async fn snapshot(&self) -> Result<Option<Snapshot>> {
        self.layer.call(Call::named("snapshot"), || self.inner.snapshot()).await
    }

    fn copy_progress(&self) -> Option<CopyProgress> {
        self.inner.copy_progress()
    }
}

#[async_trait]
impl<L: Layer + 'static> Workflows for Layered<L> {
    async fn submit_workflow(&self, workflow: NewWorkflow) -> Result<SubmittedWorkflow> {
        self.layer
            .call(Call::new("submit_workflow", &workflow), || {
                self.inner.submit_workflow(workflow.clone())
            })
            .await
    }

    async fn workflow(&self, tenant: &TenantName, id: WorkflowId) -> Result<Option<WorkflowState>> {
        self.layer.call(Call::named("workflow"), || self.inner.workflow(tenant, id)).await
    }

    async fn workflows(&self, page: ListWorkflows) -> Result<WorkflowList> {
        self.layer.call(Call::new("workflows", &page), || self.inner.workflows(page.clone())).await
    }

    async fn graph(&self, tenant: &TenantName, id: WorkflowId) -> Result<Option<Graph>> {
        self.layer.call(Call::named("graph"), || self.inner.graph(tenant, id)).await
    }

    async fn parents(&self, tasks: Vec<TaskId>) -> Result<Vec<Vec<Parent>>> {
        self.layer.call(Call::new("parents", &tasks), || self.inner.parents(tasks.clone())).await
    }

    async fn cancel_workflow(
        &self,
        tenant: &TenantName,
        id: WorkflowId,
        reason: String,
    ) -> Result<WorkflowChange> {
        self.layer
            .call(Call::named("cancel_workflow"), || {
                self.inner.cancel_workflow(tenant, id, reason.clone())
            })
            .await
    }

    async fn retry_workflow(&self, tenant: &TenantName, id: WorkflowId) -> Result<WorkflowChange> {
        self.layer
            .call(Call::named("retry_workflow"), || self.inner.retry_workflow(tenant, id))
            .await
    }

    async fn replay_downstream(
        &self,
        tenant: &TenantName,
        task: TaskId,
        run: u32,
    ) -> Result<ReplayedDownstream> {
        self.layer
            .call(Call::named("replay_downstream"), || {
                self.inner.replay_downstream(tenant, task, run)
            })
            .await
    }

    async fn cascade(&self, limit: u32) -> Result<Cascaded> {
        self.layer.call(Call::new("cascade", &limit), || self.inner.cascade(limit)).await
    }
}

#[async_trait]
impl<L: Layer + 'static> Schedules for Layered<L> {
    async fn put_schedule(&self, put: PutSchedule) -> Result<ScheduleChange> {
        self.layer
            .call(Call::new("put_schedule", &put), || self.inner.put_schedule(put.clone()))
            .await
    }

    async fn switch_schedule(&self, switch: SwitchSchedule) -> Result<ScheduleChange> {
        self.layer
            .call(Call::new("switch_schedule", &switch), || {
                self.inner.switch_schedule(switch.clone())
            })
            .await
    }

    async fn delete_schedule(&self, delete: DeleteSchedule) -> Result<ScheduleChange> {
        self.layer
            .call(Call::new("delete_schedule", &delete), || {
                self.inner.delete_schedule(delete.clone())
            })
            .await
    }

    async fn schedule(&self, tenant: &TenantName, name: &ScheduleName) -> Result<Option<Schedule>> {
        self.layer.call(Call::named("schedule"), || self.inner.schedule(tenant, name)).await
    }

    async fn schedules(&self, page: ListSchedules) -> Result<ScheduleList> {
        self.layer.call(Call::new("schedules", &page), || self.inner.schedules(page.clone())).await
    }

    async fn schedules_changed(&self, above: u64, limit: u32) -> Result<Vec<Schedule>> {
        self.layer
            .call(Call::named("schedules_changed"), || self.inner.schedules_changed(above, limit))
            .await
    }

    async fn schedule_versions(
        &self,
        after: Option<ScheduleId>,
        limit: u32,
    ) -> Result<Vec<(ScheduleId, u64)>> {
        self.layer
            .call(Call::named("schedule_versions"), || self.inner.schedule_versions(after, limit))
            .await
    }

    async fn schedules_by_id(&self, ids: Vec<ScheduleId>) -> Result<Vec<Schedule>> {
        self.layer
            .call(Call::new("schedules_by_id", &ids), || self.inner.schedules_by_id(ids.clone()))
            .await
    }

    async fn decide_slots(&self, decisions: Vec<Decide>) -> Result<Vec<Decided>> {
        self.layer
            .call(Call::new("decide_slots", &decisions), || {
                self.inner.decide_slots(decisions.clone())
            })
            .await
    }

    async fn slot_records(
        &self,
        tenant: &TenantName,
        name: &ScheduleName,
    ) -> Result<Option<Vec<SlotRecord>>> {
        self.layer.call(Call::named("slot_records"), || self.inner.slot_records(tenant, name)).await
    }
}

#[async_trait]
impl<L: Layer + 'static> AuditLog for Layered<L> {
    fn on_behalf_of(&self, author: Author) -> Arc<dyn Store> {
        let inner = self.inner.on_behalf_of(author);
        Arc::new(Self { layer: Arc::clone(&self.layer), inner })
    }

    async fn audit_log(&self, page: ListAudit) -> Result<Vec<AuditEntry>> {
        self.layer.call(Call::new("audit_log", &page), || self.inner.audit_log(page.clone())).await
    }

    async fn forget_audit(&self, before: Timestamp, limit: u32) -> Result<u32> {
        self.layer
            .call(Call::named("forget_audit"), || self.inner.forget_audit(before, limit))
            .await
    }
}

#[async_trait]
impl<L: Layer + 'static> Keys for Layered<L> {
    async fn create_key(&self, new: NewKey) -> Result<ApiKey> {
        self.layer.call(Call::new("create_key", &new), || self.inner.create_key(new.clone())).await
    }

    async fn find_key(&self, hash: KeyHash) -> Result<Option<ApiKey>> {
        self.layer.call(Call::named("find_key"), || self.inner.find_key(hash)).await
    }

    async fn keys(&self, page: ListKeys) -> Result<Vec<ApiKey>> {
        self.layer.call(Call::new("keys", &page), || self.inner.keys(page.clone())).await
    }

    async fn revoke_key(&self, tenant: Option<TenantGrant>, id: KeyId) -> Result<Option<ApiKey>> {
        self.layer
            .call(Call::named("revoke_key"), || self.inner.revoke_key(tenant.clone(), id))
            .await
    }

    async fn note_key_uses(&self, keys: Vec<KeyId>) -> Result<()> {
        self.layer
            .call(Call::new("note_key_uses", &keys), || self.inner.note_key_uses(keys.clone()))
            .await
    }
}

#[async_trait]
impl<L: Layer + 'static> TenantRecords for Layered<L> {
    async fn tenants(&self, after: Option<TenantName>, limit: u32) -> Result<Vec<TenantRecord>> {
        self.layer.call(Call::named("tenants"), || self.inner.tenants(after.clone(), limit)).await
    }

    async fn tenant(&self, name: &TenantName) -> Result<Option<TenantRecord>> {
        self.layer.call(Call::named("tenant"), || self.inner.tenant(name)).await
    }

    async fn own_retention(&self) -> Result<BTreeMap<TenantName, OwnRetention>> {
        self.layer.call(Call::named("own_retention"), || self.inner.own_retention()).await
    }

    async fn put_tenant(&self, put: PutTenant) -> Result<TenantChange> {
        self.layer.call(Call::new("put_tenant", &put), || self.inner.put_tenant(put.clone())).await
    }

    async fn usage(&self, tenant: &TenantName, of: Usage, up_to: u32) -> Result<Counted> {
        self.layer.call(Call::named("usage"), || self.inner.usage(tenant, of, up_to)).await
    }
}

#[async_trait]
impl<L: Layer + 'static> StoreHealth for Layered<L> {
    async fn now(&self) -> Result<Timestamp> {
        self.layer.call(Call::named("now"), || self.inner.now()).await
    }

    async fn check(&self) -> Result<()> {
        self.layer.call(Call::named("check"), || self.inner.check()).await
    }

    async fn hint(&self) -> Hint {
        self.layer.hint(&*self.inner).await
    }
    fn submits_at_once(&self) -> usize {
        self.inner.submits_at_once()
    }
}
