//! The loop that makes tasks and workflows from schedules, on the leader.
//!
//! The store keeps for each schedule its *position*: up to there its slots are decided, once and for all.
//! The loop knows all schedules, sleeps until the first of them has a slot to decide, and decides it in
//! the store; with that the position moves. What the loop knows may be old, since another node changed a
//! schedule or leads too: the store then answers that the decision is stale, and the loop reads the
//! schedule again. So nothing of what it knows has to be right, and all of it may be lost.

mod book;
mod decide;
mod read;

use std::sync::Arc;
use std::time::Duration;

use duly_core::id::{NodeId, ScheduleId};
use duly_core::ports::store::{self, Store};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::book::Book;
use crate::attached_sessions::AttachedSessions;
use crate::leader::Leadership;
use crate::schedule_bell::ScheduleBell;
use crate::settings::CurrentSettings;
use crate::tenants::Tenants;

/// How often to look for changed schedules without being told: on a store of this process alone, and on
/// a shared one.
const SAFETY_POLL: Duration = Duration::from_secs(60);
const SHARED_POLL: Duration = Duration::from_secs(1);
/// How often to compare all schedules with those of the store: a deletion by another node shows in no
/// other way, nor does a change whose version is lower than one that was committed before it.
const COMPARISON: Duration = Duration::from_secs(24 * 60 * 60);
const SHARED_COMPARISON: Duration = Duration::from_secs(60);
/// How long to wait after the store did not answer.
const BACK_OFF: Duration = Duration::from_secs(1);

pub(crate) struct Coordinator {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) settings: Arc<CurrentSettings>,
    pub(crate) tenants: Arc<Tenants>,
    pub(crate) sessions: Arc<AttachedSessions>,
    pub(crate) bell: Arc<ScheduleBell>,
}

/// What the leader knows.
struct Known {
    book: Book,
    /// Changes up to this version were read.
    seen: u64,
    /// When to look for further changes.
    poll_at: Instant,
    /// When to go on comparing.
    compare_at: Instant,
    /// Up to where schedules were compared; from the beginning if it does not say.
    compared: Option<ScheduleId>,
}

impl Coordinator {
    /// Decides slots while this node leads, until shutdown. A call of the store that has begun completes;
    /// the next leader finds what it decided.
    pub(crate) async fn run(self, lead: Leadership, shutdown: CancellationToken) {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = lead.while_leading(|| self.keep_deciding()) => {}
        }
    }

    async fn keep_deciding(&self) {
        let mut known = self.load_until_loaded().await;
        loop {
            match self.run_once(&mut known).await {
                Ok(wake) => self.wait(&known, wake).await,
                Err(error) => back_off(&error).await,
            }
        }
    }

    async fn load_until_loaded(&self) -> Known {
        loop {
            match self.load().await {
                Ok(known) => return known,
                Err(error) => back_off(&error).await,
            }
        }
    }

    /// Decides what is due, up to a batch, and then reads what was changed, up to a page. Returns when
    /// there is something to decide next.
    async fn run_once(&self, known: &mut Known) -> store::Result<Option<Instant>> {
        let asked = Instant::now();
        let now = self.store.now().await?;
        let decided = self.decide(&mut known.book, now).await;
        self.read_changes(known).await?;
        decided?;
        Ok(known.book.next().map(|next| asked + next.since(now)))
    }

    async fn wait(&self, known: &Known, wake: Option<Instant>) {
        let look = known.poll_at.min(known.compare_at);
        let next = wake.map_or(look, |wake| wake.min(look));
        tokio::select! {
            () = self.bell.rung() => {}
            () = tokio::time::sleep_until(next) => {}
        }
    }

    fn is_alone(&self) -> bool {
        self.store.node() == NodeId::ONLY
    }
}

async fn back_off(error: &store::Error) {
    if error.is_retryable() {
        tracing::debug!(%error, "schedules wait for the store");
    } else {
        tracing::error!(%error, "schedules cannot be read or decided");
    }
    tokio::time::sleep(BACK_OFF).await;
}
