//! Sessions of workers elsewhere that claim through this node, and those of its own.

use std::collections::HashMap;
use std::sync::Arc;

use duly_core::id::{NodeId, SessionId};
use duly_core::name::{Lane, TenantName};
use duly_core::ports::store::{self, Home, OpenSession, Report, Reported, Store};
use duly_core::ports::work_source::TakenBack;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::deadlines::Deadlines;
use crate::desk::{Desk, Desks};
use crate::dispatcher::Dispatcher;
use crate::outcomes::Outcomes;
use crate::rates::Rates;
use crate::served::Served;
use crate::source::FinishCall;

/// What a dispatcher needs.
pub(crate) struct Remotes {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) desks: Desks,
    pub(crate) outcomes: Arc<Outcomes>,
    pub(crate) deadlines: Arc<Deadlines>,
    pub(crate) rates: Arc<Rates>,
    pub(crate) served: Arc<Served>,
    pub(crate) stop: CancellationToken,
    pub(crate) loops: TaskTracker,
    pub(crate) attached: Mutex<HashMap<SessionId, Arc<Attached>>>,
    /// Sessions of workers in this process.
    pub(crate) local: Mutex<HashMap<SessionId, Arc<Attached>>>,
}

/// A session that claims through this node.
pub(crate) struct Attached {
    pub(crate) desk: Arc<Desk>,
    pub(crate) finishes: mpsc::UnboundedSender<FinishCall>,
    stop: CancellationToken,
    dispatcher: Mutex<Option<JoinHandle<()>>>,
}

impl Attached {
    /// Stops its dispatcher, which commits what is left.
    pub(crate) async fn stopped(&self) {
        self.stop.cancel();
        let dispatcher = self.dispatcher.lock().take();
        if let Some(dispatcher) = dispatcher {
            dispatcher.await.ok();
        }
    }
}

impl Remotes {
    /// Starts a desk and a dispatcher for a session, unless it has them.
    pub(crate) fn attach(&self, session: &OpenSession) -> Arc<Attached> {
        let mut attached = self.attached.lock();
        let known = attached.entry(session.id);
        Arc::clone(known.or_insert_with(|| Arc::new(self.start(session))))
    }

    /// A session that claims through this node already, if it is this tenant's.
    pub(crate) fn find(&self, tenant: &TenantName, id: SessionId) -> Option<Arc<Attached>> {
        let attached = self.attached.lock();
        attached.get(&id).filter(|it| it.desk.session().tenant.as_ref() == Some(tenant)).cloned()
    }

    /// Forgets a session. Its claim is answered with nothing.
    pub(crate) fn detach(&self, id: SessionId) -> Option<Arc<Attached>> {
        let attached = self.attached.lock().remove(&id)?;
        self.dismiss(id, &attached);
        Some(attached)
    }

    /// Starts a desk and a dispatcher for a worker in this process.
    pub(crate) fn attach_local(&self, session: &OpenSession) -> Arc<Attached> {
        let attached = Arc::new(self.start(session));
        self.local.lock().insert(session.id, Arc::clone(&attached));
        attached
    }

    /// Forgets a session of this process that has ended. Its source closes.
    pub(crate) fn close_local(&self, id: SessionId) {
        let attached = self.local.lock().remove(&id);
        if let Some(attached) = attached {
            self.dismiss(id, &attached);
        }
    }

    /// The sessions of workers in this process.
    pub(crate) fn local_ids(&self) -> Vec<SessionId> {
        self.local.lock().keys().copied().collect()
    }

    /// Says whether a session drains, if it claims through this node.
    pub(crate) fn set_draining(&self, id: SessionId, draining: bool) {
        if let Some(desk) = self.desk_of(id) {
            desk.set_draining(draining);
        }
    }

    /// Waits until no claim of a session is being granted through this node.
    pub(crate) async fn await_claims(&self, id: SessionId) {
        if let Some(desk) = self.desk_of(id).filter(|desk| desk.is_draining()) {
            desk.claims_ended().await;
        }
    }

    fn desk_of(&self, id: SessionId) -> Option<Arc<Desk>> {
        self.desks.read().iter().find(|desk| desk.session().id == id).cloned()
    }

    fn dismiss(&self, id: SessionId, attached: &Attached) {
        attached.stop.cancel();
        attached.desk.close();
        self.desks.write().retain(|desk| desk.session().id != id);
        self.served.remove(id);
    }

    /// The sessions that claim through this node.
    pub(crate) fn ids(&self) -> Vec<SessionId> {
        self.attached.lock().keys().copied().collect()
    }

    /// Whether another session than this one waits for tasks of this lane. Where nodes share the
    /// store, one of another node may wait, which this node cannot see.
    pub(crate) fn is_wanted(&self, lane: &Lane, not_by: SessionId) -> bool {
        if self.store.node() != NodeId::ONLY {
            return true;
        }
        let desks = self.desks.read();
        let mut others = desks.iter().filter(|desk| desk.session().id != not_by);
        others.any(|desk| desk.has_claim_for(lane))
    }

    /// Tells a worker that a lease is gone.
    pub(crate) fn take_back(&self, session: SessionId, lease: TakenBack) {
        let desks = self.desks.read();
        if let Some(desk) = desks.iter().find(|desk| desk.session().id == session) {
            desk.take_back(lease);
        }
    }

    /// Keeps what attempts tell, and wakes those who wait for it.
    pub(crate) async fn report(&self, report: Report) -> store::Result<Vec<Reported>> {
        let tasks: Vec<_> = report.items.iter().map(|item| item.task).collect();
        let answers = self.store.report(report).await?;
        let told = tasks.into_iter().zip(&answers);
        let told = told.filter(|(_, answer)| **answer == Reported::Done);
        self.outcomes.announce_reports(told.map(|(task, _)| task));
        Ok(answers)
    }

    /// The dispatcher of a session, and the two ways to it.
    fn start(&self, session: &OpenSession) -> Attached {
        let desk = Arc::new(Desk::new(session.clone()));
        let (finishes, inbox) = mpsc::unbounded_channel();
        let dispatcher = Dispatcher {
            store: Arc::clone(&self.store),
            session: session.id,
            desk: Arc::clone(&desk),
            inbox,
            outcomes: Arc::clone(&self.outcomes),
            deadlines: Arc::clone(&self.deadlines),
            rates: Arc::clone(&self.rates),
            patient: session.home == Home::Local,
        };
        let stop = self.stop.child_token();
        let dispatcher = self.loops.spawn(dispatcher.run(stop.clone()));
        self.served.add(session.id, session.types.clone());
        self.desks.write().push(Arc::clone(&desk));
        let dispatcher = Mutex::new(Some(dispatcher));
        Attached { desk, finishes, stop, dispatcher }
    }
}
