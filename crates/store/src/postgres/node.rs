//! What this node knows of the shared store, and how it learns it. All of it but its id is derived from
//! the database: outdated knowledge costs time, never correctness.

use std::sync::Arc;

use duly_core::id::SessionId;
use duly_core::name::{QueueName, TenantName};
use duly_core::ports::store::{Claim, Hint, LaneFilter, Rules};
use tokio::sync::Notify;
use uuid::Uuid;

use super::clock::Estimate;
use super::error::Result;
use super::heads::{self, Heads};
use super::lanes::Lanes;
use super::notifier::{Notification, Notifier};
use super::pauses::Pauses;
use super::pool::Pool;
use super::range::LaneId;
use super::row;
use super::server_errors::ServerErrors;
use super::sessions::{Session, Sessions};
use super::wakes::Wakes;
use super::weights::Weights;
use crate::hints::Hints;

/// A claim looks this much before the store's time, since commits may become visible late.
const LATE_MS: i64 = 200;

/// One process that has the store open.
pub struct Node {
    /// New with every opening.
    pub(super) id: Uuid,
    pub(super) pool: Pool,
    pub(super) rules: Rules,
    pub(super) lanes: Lanes,
    pub(super) heads: Heads,
    pub(super) sessions: Sessions,
    pub(super) pauses: Pauses,
    pub(super) clock: Estimate,
    pub(super) weights: Weights,
    pub(super) hints: Hints,
    pub(super) notifier: Notifier,
    pub(super) server_errors: ServerErrors,
    /// Notified when holders of leases are to learn that they are revoked.
    pub(super) revocations: Notify,
    /// Notified when events were written.
    pub(super) events_written: Notify,
    /// Whether [`crate::planted::PlantedBug::EventsByNumber`] is switched on.
    #[cfg(feature = "planted-bugs")]
    reads_events_by_number: std::sync::atomic::AtomicBool,
}

impl Node {
    /// Registers this process as a node, and polls the store for the first time.
    pub(super) async fn join(pool: Pool, rules: Rules) -> Result<Self> {
        let client = pool.get().await?;
        let insert = "/* node.join */ INSERT INTO duly.node (started_at, checked_at)
            VALUES (duly.now(), duly.now()) RETURNING id, started_at";
        let row = client.query_one(insert, &[]).await?;
        drop(client);
        let node = Self {
            id: row.try_get(0)?,
            pool,
            rules,
            lanes: Lanes::default(),
            heads: Heads::default(),
            sessions: Sessions::default(),
            pauses: Pauses::default(),
            clock: Estimate::new(row.try_get(1)?),
            weights: Weights::default(),
            hints: Hints::default(),
            notifier: Notifier::default(),
            server_errors: ServerErrors::default(),
            revocations: Notify::new(),
            events_written: Notify::new(),
            #[cfg(feature = "planted-bugs")]
            reads_events_by_number: false.into(),
        };
        node.make_next_days().await?;
        node.poll().await?;
        Ok(node)
    }

    /// Whether events are read behind the last number alone: only where that bug is planted.
    pub(super) fn reads_events_by_number(&self) -> bool {
        #[cfg(feature = "planted-bugs")]
        return self.reads_events_by_number.load(std::sync::atomic::Ordering::Relaxed);
        #[cfg(not(feature = "planted-bugs"))]
        false
    }

    #[cfg(feature = "planted-bugs")]
    pub(super) fn plant_events_by_number(&self) {
        self.reads_events_by_number.store(true, std::sync::atomic::Ordering::Relaxed);
    }

    /// About what time it is on the server.
    pub(super) fn estimate(&self) -> i64 {
        self.pool.clock().map_or_else(|| self.clock.now(), |clock| clock.now().millis())
    }

    /// Since when a task may be due in a range that is believed to be empty.
    pub(super) fn probed_since(&self, now: i64) -> i64 {
        now - LATE_MS
    }

    /// Whether a session may be granted tasks of a lane, by this claim if there is one.
    pub(super) fn claimable(
        &self,
        session: &Session,
        claim: Option<&Claim>,
    ) -> impl Fn(LaneId) -> bool {
        let serves = session.serves(&self.lanes);
        let only = claim.and_then(|claim| claim.only.clone());
        let accepts = move |lane| {
            let passes =
                |only: &LaneFilter| self.lanes.get(lane).is_some_and(|it| only.accepts(&it));
            only.as_deref().is_none_or(passes)
        };
        let paused = !self.pauses.is_empty();
        let is_paused = |lane| self.lanes.get(lane).is_some_and(|it| self.pauses.is_paused(&it));
        move |lane| serves(lane) && accepts(lane) && !(paused && is_paused(lane))
    }

    /// A session; nothing if it is not open.
    pub(super) async fn session(&self, id: SessionId) -> Result<Option<Arc<Session>>> {
        if let Some(session) = self.sessions.get(id) {
            return Ok(Some(session));
        }
        let client = self.pool.get().await?;
        self.sessions.fetch(&client, id).await
    }

    /// A queue is paused, or is not any more, since a commit.
    pub(super) fn paused_changed(&self, tenant: &TenantName, queue: &QueueName, paused: bool) {
        self.pauses.set(tenant, queue, paused);
    }

    /// Makes what a committed transaction has changed known, here and to other nodes.
    pub(super) fn wake(&self, mut wakes: Wakes) {
        for (lane, id) in wakes.take_lanes() {
            self.lanes.remember(id, lane);
        }
        for (range, at) in wakes.unseen() {
            self.heads.add(range, at);
        }
        if wakes.has_revoked() {
            self.notifier.notify(|it| it.revoked = true);
            self.revocations.notify_one();
        }
        if wakes.has_told() {
            self.notifier.notify(|it| it.told = true);
            self.events_written.notify_one();
        }
        let Some(hint) = self.hint(&wakes) else { return };
        self.notifier.notify(|notification| {
            wakes.ranges().for_each(|(range, at)| notification.add(range, at));
            wakes.any().into_iter().for_each(|due| notification.anywhere(due.millis()));
        });
        self.hints.send(hint);
    }

    /// Applies a notification of another node.
    pub(super) async fn receive(&self, notification: Notification) -> Result<()> {
        self.notifier.set_has_listeners(true);
        if notification.revoked {
            self.revocations.notify_one();
        }
        if notification.told {
            self.events_written.notify_one();
        }
        let mut wakes = Wakes::default();
        let unknown = |lane| self.lanes.get(lane).is_none();
        if notification.ranges.keys().any(|range| unknown(range.lane)) {
            let client = self.pool.get().await?;
            self.lanes.load(&client).await?;
        }
        for (range, at) in notification.ranges {
            self.heads.add(range, at);
            wakes.add(range, at);
        }
        if let Some(due) = notification.anywhere {
            self.poll().await?;
            wakes.anywhere(row::instant(due));
        }
        self.hint(&wakes).into_iter().for_each(|hint| self.hints.send(hint));
        Ok(())
    }

    fn hint(&self, wakes: &Wakes) -> Option<Hint> {
        let name = |id| {
            let lane = self.lanes.get(id)?;
            (!self.pauses.is_paused(&lane)).then(|| (*lane).clone())
        };
        wakes.hint(name)
    }

    /// Reads all lanes and where each range starts. Sends a hint for what no notification has named.
    pub(super) async fn poll(&self) -> Result<()> {
        let client = self.pool.get().await?;
        let moment = self.heads.moment_of_list();
        let starts = heads::list(&client).await?;
        // Afterwards, so that every range is in a known lane.
        self.lanes.load(&client).await?;
        let found = self.heads.learn(moment, &starts);
        if let Some(earliest) = found {
            self.hints.send(Hint::anywhere(row::instant(earliest)));
        }
        Ok(())
    }
}
