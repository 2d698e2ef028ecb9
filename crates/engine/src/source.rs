//! The work source of local workers.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use duly_core::id::SessionId;
use duly_core::lease::{Finish, Finished, Lease, Outcome};
use duly_core::name::Lane;
use duly_core::ports::store::{Report, ReportItem, Reported};
use duly_core::ports::work_source::{Closed, ReportFailed, TakenBack, WorkSource};
use duly_core::task::Failure;
use tokio::sync::{mpsc, oneshot};

use crate::attached_sessions::AttachedSessions;
use crate::claim_slot::ClaimSlot;

/// How long to wait after the store did not answer.
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// Outcomes on their way to the dispatcher.
pub(crate) struct FinishCall {
    pub(crate) batch: Vec<Finish>,
    pub(crate) reply: oneshot::Sender<Vec<Finished>>,
}

/// The work source of one session.
pub(crate) struct LocalSource {
    pub(crate) claim_slot: Arc<ClaimSlot>,
    pub(crate) finishes: mpsc::UnboundedSender<FinishCall>,
    pub(crate) sessions: Arc<AttachedSessions>,
}

#[async_trait]
impl WorkSource for LocalSource {
    fn session(&self) -> Option<SessionId> {
        Some(self.claim_slot.session().id)
    }

    async fn claim(&self, max: usize) -> Result<Vec<Lease>, Closed> {
        let leases = self.claim_slot.place(max).ok_or(Closed)?;
        let mut call = ClaimCall { leases, finishes: &self.finishes };
        (&mut call.leases).await.map_err(|_| Closed)
    }

    fn widen(&self, max: usize) {
        self.claim_slot.widen(max);
    }

    fn is_wanted(&self, lane: &Lane) -> bool {
        self.sessions.is_wanted(lane, self.claim_slot.session().id)
    }

    async fn taken_back(&self) -> Vec<TakenBack> {
        self.claim_slot.taken_back().await
    }

    async fn report(&self, items: Vec<ReportItem>) -> Result<Vec<Reported>, ReportFailed> {
        let report = Report { session: self.claim_slot.session().id, items };
        self.sessions.report(report).await.map_err(|error| {
            tracing::debug!(%error, "the store did not take a report");
            ReportFailed
        })
    }

    async fn finish(&self, batch: Vec<Finish>) -> Result<Vec<Finished>, Closed> {
        let mut batch = batch;
        self.add_tasks(&mut batch).await;
        let (reply, answers) = oneshot::channel();
        self.finishes.send(FinishCall { batch, reply }).map_err(|_| Closed)?;
        answers.await.map_err(|_| Closed)
    }
}

impl LocalSource {
    /// Fills in the tasks that outcomes add. Waits while the store is away, as outcomes do.
    async fn add_tasks(&self, batch: &mut [Finish]) {
        while let Err(error) = self.sessions.adder.fill(batch).await {
            if !error.is_retryable() {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "tasks of an outcome cannot be added"
                );
                for finish in batch.iter_mut().filter(|it| it.added.is_some() && it.then.is_none())
                {
                    let error = Failure::new("STORE_FAILED", error.to_string());
                    finish.outcome = Outcome::Fail { error };
                }
                return;
            }
            tokio::select! {
                () = self.sessions.stop.cancelled() => return,
                () = tokio::time::sleep(RETRY_DELAY) => {}
            }
        }
    }
}

/// A claim that waits. Leases that arrive while it is dropped are released.
struct ClaimCall<'a> {
    leases: oneshot::Receiver<Vec<Lease>>,
    finishes: &'a mpsc::UnboundedSender<FinishCall>,
}

impl Drop for ClaimCall<'_> {
    fn drop(&mut self) {
        self.leases.close();
        let Ok(leases) = self.leases.try_recv() else { return };
        let (reply, _) = oneshot::channel();
        let batch = leases.iter().map(Lease::release).collect();
        // If the dispatcher has stopped, the end of the session releases them.
        self.finishes.send(FinishCall { batch, reply }).ok();
    }
}
