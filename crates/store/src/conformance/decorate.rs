//! A store around another one: a [`Layer`] says what happens at every call, so that a fault is
//! written once and not once per command.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use duly_core::id::{NodeId, SessionId, TaskId};
use duly_core::name::{Lane, QueueName, TenantName};
use duly_core::ports::store::{
    Beat, Bulk, BulkStep, CancelTasks, Control, Controlled, CopyProgress, CountTasks, DeadGroups,
    DeadLetters, DeadList, DeleteTasks, EditTask, Ending, Exchange, Exchanged, Expiry,
    ExtendLeases, Extended, GroupDead, Hint, JoinNode, Leader, Leadership, Leases, ListDead,
    ListQueues, ListSettings, ListTasks, LogPage, NodeState, Nodes, OpenSession, OpenedSession,
    PauseQueue, Place, Pulse, PurgeTasks, Put, PutSettings, QueueList, QueueState, Queues,
    ReadLogs, Reap, Reaped, ReplayTasks, Report, Reported, Reports, Result, RetryTasks, Sessions,
    SettingsLog, Snapshot, Snapshots, Store, Submit, Submitted, Sweep, Swept, TaskCount, TaskList,
    Tasks, VersionedSettings, WorkerState,
};
use duly_core::ports::work_source::TakenBack;
use duly_core::task::{Attempt, Task};
use duly_core::time::Timestamp;
use futures_util::future::BoxFuture;

/// What is done with every call.
pub trait Layer: Send + Sync {
    /// Answers a call; `inner` makes it, each time with the same arguments.
    fn call<'a, T, F>(&'a self, inner: F) -> impl Future<Output = Result<T>> + Send + 'a
    where
        T: Send + 'a,
        F: Fn() -> BoxFuture<'a, Result<T>> + Send + Sync + 'a;

    /// Waits for a hint.
    fn hint<'a>(&'a self, inner: &'a dyn Store) -> BoxFuture<'a, Hint> {
        inner.hint()
    }
}

/// A store whose every call goes through a layer.
pub struct Decorated<L> {
    layer: L,
    inner: Arc<dyn Store>,
}

impl<L: Layer> Decorated<L> {
    /// Around a store.
    pub fn new(layer: L, inner: Arc<dyn Store>) -> Self {
        Self { layer, inner }
    }
}

#[async_trait]
impl<L: Layer> Tasks for Decorated<L> {
    async fn submit(&self, batch: Submit) -> Result<Vec<Submitted>> {
        self.layer.call(|| self.inner.submit(batch.clone())).await
    }

    async fn get(&self, tenant: &TenantName, id: TaskId) -> Result<Option<Task>> {
        self.layer.call(|| self.inner.get(tenant, id)).await
    }

    async fn list(&self, page: ListTasks) -> Result<TaskList> {
        self.layer.call(|| self.inner.list(page.clone())).await
    }

    async fn attempts(&self, tenant: &TenantName, id: TaskId) -> Result<Option<Vec<Attempt>>> {
        self.layer.call(|| self.inner.attempts(tenant, id)).await
    }
}

#[async_trait]
impl<L: Layer> Sessions for Decorated<L> {
    async fn open_session(&self, session: OpenSession) -> Result<()> {
        self.layer.call(|| self.inner.open_session(session.clone())).await
    }

    async fn beat(&self, beat: Beat) -> Result<bool> {
        self.layer.call(|| self.inner.beat(beat.clone())).await
    }

    async fn keep_alive(&self, sessions: Vec<SessionId>) -> Result<Vec<SessionId>> {
        self.layer.call(|| self.inner.keep_alive(sessions.clone())).await
    }

    async fn sessions(&self) -> Result<Vec<OpenedSession>> {
        self.layer.call(|| self.inner.sessions()).await
    }

    async fn workers(&self) -> Result<Vec<WorkerState>> {
        self.layer.call(|| self.inner.workers()).await
    }

    async fn drain(&self, session: SessionId, draining: bool) -> Result<bool> {
        self.layer.call(|| self.inner.drain(session, draining)).await
    }

    async fn draining(&self, sessions: Vec<SessionId>) -> Result<Vec<SessionId>> {
        self.layer.call(|| self.inner.draining(sessions.clone())).await
    }

    async fn serving(&self, lane: &Lane) -> Result<Vec<SessionId>> {
        self.layer.call(|| self.inner.serving(lane)).await
    }

    async fn end_session(&self, session: SessionId, ending: Ending) -> Result<Vec<TaskId>> {
        self.layer.call(|| self.inner.end_session(session, ending)).await
    }

    async fn revoked(&self, sessions: Vec<SessionId>) -> Result<Vec<(SessionId, TakenBack)>> {
        self.inner.revoked(sessions).await
    }

    async fn revocation(&self) {
        self.inner.revocation().await;
    }

    async fn reap(&self, reap: Reap) -> Result<Reaped> {
        self.layer.call(|| self.inner.reap(reap)).await
    }
}

#[async_trait]
impl<L: Layer> Leases for Decorated<L> {
    async fn exchange(&self, exchange: Exchange) -> Result<Exchanged> {
        self.layer.call(|| self.inner.exchange(exchange.clone())).await
    }

    async fn extend(&self, order: ExtendLeases) -> Result<Vec<Extended>> {
        self.layer.call(|| self.inner.extend(order.clone())).await
    }
}

#[async_trait]
impl<L: Layer> Reports for Decorated<L> {
    async fn report(&self, report: Report) -> Result<Vec<Reported>> {
        self.layer.call(|| self.inner.report(report.clone())).await
    }

    async fn logs(&self, read: ReadLogs) -> Result<Option<LogPage>> {
        self.layer.call(|| self.inner.logs(read.clone())).await
    }
}

#[async_trait]
impl<L: Layer> Control for Decorated<L> {
    async fn cancel(&self, order: CancelTasks) -> Result<Vec<Controlled>> {
        self.layer.call(|| self.inner.cancel(order.clone())).await
    }

    async fn replay(&self, order: ReplayTasks) -> Result<Vec<Controlled>> {
        self.layer.call(|| self.inner.replay(order.clone())).await
    }

    async fn retry(&self, order: RetryTasks) -> Result<Vec<Controlled>> {
        self.layer.call(|| self.inner.retry(order.clone())).await
    }

    async fn edit(&self, order: EditTask) -> Result<Controlled> {
        self.layer.call(|| self.inner.edit(order.clone())).await
    }
}

#[async_trait]
impl<L: Layer> DeadLetters for Decorated<L> {
    async fn dead_letters(&self, page: ListDead) -> Result<DeadList> {
        self.layer.call(|| self.inner.dead_letters(page.clone())).await
    }

    async fn dead_groups(&self, which: GroupDead) -> Result<DeadGroups> {
        self.layer.call(|| self.inner.dead_groups(which.clone())).await
    }

    async fn purge(&self, order: PurgeTasks) -> Result<Vec<Controlled>> {
        self.layer.call(|| self.inner.purge(order.clone())).await
    }
}

#[async_trait]
impl<L: Layer> Queues for Decorated<L> {
    async fn queues(&self, page: ListQueues) -> Result<QueueList> {
        self.layer.call(|| self.inner.queues(page.clone())).await
    }

    async fn queue(&self, tenant: &TenantName, queue: &QueueName) -> Result<Option<QueueState>> {
        self.layer.call(|| self.inner.queue(tenant, queue)).await
    }

    async fn pause_queue(&self, order: PauseQueue) -> Result<bool> {
        self.layer.call(|| self.inner.pause_queue(order.clone())).await
    }

    async fn resume_queue(&self, tenant: &TenantName, queue: &QueueName) -> Result<bool> {
        self.layer.call(|| self.inner.resume_queue(tenant, queue)).await
    }

    async fn place(&self, tenant: &TenantName, id: TaskId) -> Result<Option<Place>> {
        self.layer.call(|| self.inner.place(tenant, id)).await
    }
}

#[async_trait]
impl<L: Layer> SettingsLog for Decorated<L> {
    async fn settings(&self) -> Result<VersionedSettings> {
        self.layer.call(|| self.inner.settings()).await
    }

    async fn put_settings(&self, put: PutSettings) -> Result<Put> {
        self.layer.call(|| self.inner.put_settings(put.clone())).await
    }

    async fn settings_history(&self, page: ListSettings) -> Result<Vec<VersionedSettings>> {
        self.layer.call(|| self.inner.settings_history(page)).await
    }
}

#[async_trait]
impl<L: Layer> Expiry for Decorated<L> {
    async fn sweep(&self, sweep: Sweep) -> Result<Swept> {
        self.layer.call(|| self.inner.sweep(sweep)).await
    }

    async fn forget_sessions(&self, before: Timestamp) -> Result<u32> {
        self.layer.call(|| self.inner.forget_sessions(before)).await
    }
}

#[async_trait]
impl<L: Layer> Bulk for Decorated<L> {
    async fn count(&self, which: CountTasks) -> Result<TaskCount> {
        self.layer.call(|| self.inner.count(which.clone())).await
    }

    async fn delete(&self, order: DeleteTasks) -> Result<Vec<Controlled>> {
        self.layer.call(|| self.inner.delete(order.clone())).await
    }

    async fn carry_out(&self, step: BulkStep) -> Result<Option<Vec<Controlled>>> {
        self.layer.call(|| self.inner.carry_out(step.clone())).await
    }
}

#[async_trait]
impl<L: Layer> Leadership for Decorated<L> {
    async fn lead(&self, node: NodeId, ttl: Duration) -> Result<Leader> {
        self.layer.call(|| self.inner.lead(node, ttl)).await
    }

    async fn resign(&self, node: NodeId) -> Result<()> {
        self.layer.call(|| self.inner.resign(node)).await
    }

    async fn leader(&self) -> Result<Option<Leader>> {
        self.layer.call(|| self.inner.leader()).await
    }
}

#[async_trait]
impl<L: Layer> Nodes for Decorated<L> {
    fn node(&self) -> NodeId {
        self.inner.node()
    }

    async fn join(&self, node: JoinNode) -> Result<()> {
        self.layer.call(|| self.inner.join(node.clone())).await
    }

    async fn nodes(&self) -> Result<Vec<NodeState>> {
        self.layer.call(|| self.inner.nodes()).await
    }

    async fn leave(&self) -> Result<()> {
        self.layer.call(|| self.inner.leave()).await
    }
}

#[async_trait]
impl<L: Layer> Snapshots for Decorated<L> {
    async fn snapshot(&self) -> Result<Option<Snapshot>> {
        self.layer.call(|| self.inner.snapshot()).await
    }

    fn copy_progress(&self) -> Option<CopyProgress> {
        self.inner.copy_progress()
    }
}

#[async_trait]
impl<L: Layer> Pulse for Decorated<L> {
    async fn now(&self) -> Result<Timestamp> {
        self.layer.call(|| self.inner.now()).await
    }

    async fn check(&self) -> Result<()> {
        self.layer.call(|| self.inner.check()).await
    }

    async fn hint(&self) -> Hint {
        self.layer.hint(&*self.inner).await
    }
}
