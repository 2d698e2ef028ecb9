//! The source of work for workers in this process.

use std::sync::Arc;

use async_trait::async_trait;
use duly_core::id::SessionId;
use duly_core::lease::{Finish, Finished, Lease};
use duly_core::name::Lane;
use duly_core::ports::store::{Report, ReportItem, Reported};
use duly_core::ports::work_source::{Closed, TakenBack, Unheard, WorkSource};
use tokio::sync::{mpsc, oneshot};

use crate::desk::Desk;
use crate::remotes::Remotes;

/// Outcomes on their way to the dispatcher.
pub(crate) struct FinishCall {
    pub(crate) batch: Vec<Finish>,
    pub(crate) reply: oneshot::Sender<Vec<Finished>>,
}

/// One session's end of the dispatcher.
pub(crate) struct LocalSource {
    pub(crate) desk: Arc<Desk>,
    pub(crate) finishes: mpsc::UnboundedSender<FinishCall>,
    pub(crate) remotes: Arc<Remotes>,
}

#[async_trait]
impl WorkSource for LocalSource {
    fn session(&self) -> Option<SessionId> {
        Some(self.desk.session().id)
    }

    async fn claim(&self, max: usize) -> Result<Vec<Lease>, Closed> {
        let leases = self.desk.place(max).ok_or(Closed)?;
        let mut call = ClaimCall { leases, finishes: &self.finishes };
        (&mut call.leases).await.map_err(|_| Closed)
    }

    fn widen(&self, max: usize) {
        self.desk.widen(max);
    }

    fn is_wanted(&self, lane: &Lane) -> bool {
        self.remotes.is_wanted(lane, self.desk.session().id)
    }

    async fn taken_back(&self) -> Vec<TakenBack> {
        self.desk.taken_back().await
    }

    async fn report(&self, items: Vec<ReportItem>) -> Result<Vec<Reported>, Unheard> {
        let report = Report { session: self.desk.session().id, items };
        self.remotes.report(report).await.map_err(|error| {
            tracing::debug!(%error, "a report was not taken");
            Unheard
        })
    }

    async fn finish(&self, batch: Vec<Finish>) -> Result<Vec<Finished>, Closed> {
        let (reply, answers) = oneshot::channel();
        self.finishes.send(FinishCall { batch, reply }).map_err(|_| Closed)?;
        answers.await.map_err(|_| Closed)
    }
}

/// A claim that waits. Leases that arrive as it is dropped are given back.
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
        // A dispatcher that is gone has ended the session, which gives everything back.
        self.finishes.send(FinishCall { batch, reply }).ok();
    }
}
