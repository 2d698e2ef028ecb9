//! The sessions that claim through this node.

use std::collections::HashMap;
use std::sync::Arc;

use duly_core::id::{NodeId, SessionId, TaskId};
use duly_core::name::Lane;
use duly_core::ports::store::{self, Home, OpenSession, Report, Reported, Store};
use duly_core::ports::work_source::{TakenBack, Why};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::cascade::CascadeBell;
use crate::claim_slot::{ClaimSlot, ClaimSlots};
use crate::command::then::Adder;
use crate::deadlines::Deadlines;
use crate::dispatcher::Dispatcher;
use crate::rates::Rates;
use crate::served_types::ServedTypes;
use crate::source::FinishCall;
use crate::task_waiters::TaskWaiters;

/// The sessions that claim through this node: those of its local workers, and those of remote
/// workers whose requests it answers. Each has a claim slot and a dispatcher.
pub(crate) struct AttachedSessions {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) claim_slots: ClaimSlots,
    pub(crate) task_waiters: Arc<TaskWaiters>,
    pub(crate) deadlines: Arc<Deadlines>,
    pub(crate) rates: Arc<Rates>,
    pub(crate) served_types: Arc<ServedTypes>,
    pub(crate) cascade_bell: Arc<CascadeBell>,
    pub(crate) adder: Adder,
    pub(crate) stop: CancellationToken,
    pub(crate) loops: TaskTracker,
    pub(crate) remote: Mutex<HashMap<SessionId, Arc<AttachedSession>>>,
    pub(crate) local: Mutex<HashMap<SessionId, Arc<AttachedSession>>>,
}

/// A session that claims through this node.
pub(crate) struct AttachedSession {
    pub(crate) claim_slot: Arc<ClaimSlot>,
    pub(crate) finishes: mpsc::UnboundedSender<FinishCall>,
    stop: CancellationToken,
    dispatcher: Mutex<Option<JoinHandle<()>>>,
}

impl AttachedSession {
    /// Stops the dispatcher and waits until it has committed the outcomes it holds.
    pub(crate) async fn stop_dispatcher(&self) {
        self.stop.cancel();
        let dispatcher = self.dispatcher.lock().take();
        if let Some(dispatcher) = dispatcher {
            dispatcher.await.ok();
        }
    }
}

impl AttachedSessions {
    /// Starts a dispatcher for a remote worker's session, unless it has one.
    pub(crate) fn attach_remote(&self, session: &OpenSession) -> Arc<AttachedSession> {
        let mut remote = self.remote.lock();
        let known = remote.entry(session.id);
        Arc::clone(known.or_insert_with(|| Arc::new(self.start(session))))
    }

    /// A remote worker's session that is attached already.
    pub(crate) fn find_remote(&self, id: SessionId) -> Option<Arc<AttachedSession>> {
        self.remote.lock().get(&id).cloned()
    }

    /// Removes a remote worker's session. Its waiting claim ends without leases.
    pub(crate) fn detach_remote(&self, id: SessionId) {
        let attached = self.remote.lock().remove(&id);
        if let Some(attached) = attached {
            self.detach(id, &attached);
        }
    }

    /// Starts a dispatcher for a local worker's session.
    pub(crate) fn attach_local(&self, session: &OpenSession) -> Arc<AttachedSession> {
        let attached = Arc::new(self.start(session));
        self.local.lock().insert(session.id, Arc::clone(&attached));
        attached
    }

    /// Removes a local worker's session that has ended. Its work source closes.
    pub(crate) fn detach_local(&self, id: SessionId) {
        let attached = self.local.lock().remove(&id);
        if let Some(attached) = attached {
            self.detach(id, &attached);
        }
    }

    pub(crate) fn local_ids(&self) -> Vec<SessionId> {
        self.local.lock().keys().copied().collect()
    }

    pub(crate) fn remote_ids(&self) -> Vec<SessionId> {
        self.remote.lock().keys().copied().collect()
    }

    /// Starts or ends the drain of a session, if it is attached.
    pub(crate) fn set_draining(&self, id: SessionId, draining: bool) {
        if let Some(slot) = self.slot_of(id) {
            slot.set_draining(draining);
        }
    }

    /// Waits until no claim of a draining session is being granted through this node.
    pub(crate) async fn wait_for_taken_claims(&self, id: SessionId) {
        if let Some(slot) = self.slot_of(id).filter(|slot| slot.is_draining()) {
            slot.taken_claims_ended().await;
        }
    }

    fn slot_of(&self, id: SessionId) -> Option<Arc<ClaimSlot>> {
        self.claim_slots.read().iter().find(|slot| slot.session().id == id).cloned()
    }

    fn detach(&self, id: SessionId, attached: &AttachedSession) {
        attached.stop.cancel();
        attached.claim_slot.close();
        self.claim_slots.write().retain(|slot| slot.session().id != id);
        self.served_types.remove(id);
    }

    /// Whether another session than this one waits for tasks of this lane. On a shared store the
    /// answer is always yes: a session of another node may wait, which this node cannot see.
    pub(crate) fn is_wanted(&self, lane: &Lane, not_by: SessionId) -> bool {
        if self.store.node() != NodeId::ONLY {
            return true;
        }
        let slots = self.claim_slots.read();
        let mut others = slots.iter().filter(|slot| slot.session().id != not_by);
        others.any(|slot| slot.has_claim_for(lane))
    }

    /// Tells a worker that one of its leases is gone, if its session is attached.
    pub(crate) fn take_back(&self, session: SessionId, lease: TakenBack) {
        if let Some(slot) = self.slot_of(session) {
            slot.take_back(lease);
        }
    }

    /// Tells of tasks that were cancelled, with the session that held each and the epoch of its lease:
    /// their workers, if they are attached, and the callers that wait for them.
    pub(crate) fn tell_cancelled(&self, cancelled: Vec<(TaskId, Option<(SessionId, u32)>)>) {
        self.task_waiters.notify_changed(cancelled.iter().map(|(task, _)| *task));
        for (task, holder) in cancelled {
            if let Some((session, epoch)) = holder {
                self.take_back(session, TakenBack { task, epoch, why: Why::Cancelled });
            }
        }
    }

    /// Stores progress and log lines of attempts, and wakes the callers that wait for them.
    pub(crate) async fn report(&self, report: Report) -> store::Result<Vec<Reported>> {
        let tasks: Vec<_> = report.items.iter().map(|item| item.task).collect();
        let answers = self.store.report(report).await?;
        let stored = tasks.into_iter().zip(&answers);
        let stored = stored.filter(|(_, answer)| **answer == Reported::Done);
        self.task_waiters.notify_reported(stored.map(|(task, _)| task));
        Ok(answers)
    }

    fn start(&self, session: &OpenSession) -> AttachedSession {
        let claim_slot = Arc::new(ClaimSlot::new(session.clone()));
        let (finishes, inbox) = mpsc::unbounded_channel();
        let dispatcher = Dispatcher {
            store: Arc::clone(&self.store),
            session: session.id,
            claim_slot: Arc::clone(&claim_slot),
            inbox,
            task_waiters: Arc::clone(&self.task_waiters),
            deadlines: Arc::clone(&self.deadlines),
            rates: Arc::clone(&self.rates),
            cascade_bell: Arc::clone(&self.cascade_bell),
            keeps_outcomes: session.home == Home::Local,
        };
        let stop = self.stop.child_token();
        let dispatcher = self.loops.spawn(dispatcher.run(stop.clone()));
        self.served_types.add(session.id, session.types.clone());
        self.claim_slots.write().push(Arc::clone(&claim_slot));
        let dispatcher = Mutex::new(Some(dispatcher));
        AttachedSession { claim_slot, finishes, stop, dispatcher }
    }
}
