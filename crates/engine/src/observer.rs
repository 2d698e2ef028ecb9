//! The loop that watches the sessions of other processes, and the deadlines of leases.
//!
//! A session is dead when its heartbeat count has not changed for the whole TTL, measured by this
//! process's monotonic clock over an unbroken series of reads. After a pause of this process or
//! of the store, or while the store can be read but not written, every session gets the full TTL
//! again. Deadlines are compared with the store's clock.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use duly_core::id::{NodeId, SessionId};
use duly_core::ports::random::Random;
use duly_core::ports::store::{self, Ending, OpenedSession, Reap, Store};
use duly_core::time::Timestamp;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::attached_sessions::AttachedSessions;
use crate::deadlines::Deadlines;
use crate::task_waiters::TaskWaiters;

/// How often the loop looks when nothing is due: another node may have granted leases.
const SAFETY_POLL: Duration = Duration::from_secs(60);
/// How long it waits after the store did not answer.
const BACK_OFF: Duration = Duration::from_secs(1);

pub(crate) struct Observer {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) ttl: Duration,
    /// Whether this node ends dead sessions and takes overdue leases back. Otherwise it only
    /// notices sessions that have ended.
    pub(crate) is_scheduler: bool,
    pub(crate) sessions: Arc<AttachedSessions>,
    pub(crate) task_waiters: Arc<TaskWaiters>,
    pub(crate) deadlines: Arc<Deadlines>,
    /// The last heartbeat count of each session, and since when it has not changed.
    pub(crate) heartbeats: HashMap<SessionId, (u64, Instant)>,
    /// When the sessions were last read.
    pub(crate) last_read: Option<Instant>,
    /// Since when they have been read without a gap.
    pub(crate) steady_since: Option<Instant>,
    /// Whether the store refused this node's sign of life since the last look: it may have refused
    /// the heartbeats of other processes too.
    pub(crate) refused: Arc<AtomicBool>,
}

impl Observer {
    /// Runs until shutdown.
    pub(crate) async fn run(mut self, shutdown: CancellationToken) {
        loop {
            let pause = match self.run_once().await {
                Ok(()) => self.pause().await,
                Err(error) => {
                    tracing::debug!(%error, "the store is unavailable; no session is ended");
                    self.last_read = None;
                    BACK_OFF
                }
            };
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = self.sleep(pause) => {}
                () = self.deadlines.woken() => {}
            }
        }
    }

    /// Sleeps, for a shorter time if a lease with an earlier deadline is granted meanwhile.
    async fn sleep(&self, pause: Duration) {
        let mut pause = pause;
        while tokio::time::timeout(pause, self.deadlines.changed()).await.is_ok() {
            pause = self.pause().await;
        }
    }

    /// One look at all sessions and deadlines.
    async fn run_once(&mut self) -> store::Result<()> {
        // Read before the store's list, which therefore has every attached session that is open.
        let attached = self.sessions.remote_ids();
        let open = self.store.sessions().await?;
        self.sessions.served_types.update_other(&open, &attached);
        for session in &open {
            // The drain may have been requested through another node.
            self.sessions.set_draining(session.opened.id, session.draining);
        }
        for id in attached {
            if open.iter().all(|session| session.opened.id != id) {
                self.sessions.detach_remote(id);
            }
        }
        let dead = self.find_dead(&open, Instant::now());
        if !self.is_scheduler {
            return Ok(());
        }
        for (session, beat) in dead {
            let known = open.iter().find(|it| it.opened.id == session);
            let worker = known.map_or("", |it| it.opened.name.as_str());
            tracing::warn!(
                session.id = %session, worker.name = worker,
                "a worker sends no heartbeats; its leases are taken back"
            );
            // A heartbeat that arrived meanwhile keeps the session open. If it ends, the next look
            // detaches it.
            let tasks = self.store.end_session(session, Ending::Died { beat }).await?;
            self.task_waiters.notify_changed(tasks);
            self.sessions.cascade_bell.ring();
        }
        let now = self.store.now().await?;
        // After a gap every worker has the full time again, also to acknowledge its leases.
        let steady = self.steady_since.is_some_and(|since| since.elapsed() >= self.ttl);
        let unacknowledged_before = if steady { now.minus(self.ttl) } else { Timestamp::EPOCH };
        let reap = Reap { unacknowledged_before, entropy: self.random.next() };
        self.deadlines.clear();
        let reaped = self.store.reap(reap).await?;
        for (session, lease) in reaped.taken_back {
            self.sessions.take_back(session, lease);
            self.task_waiters.notify_changed([lease.task]);
            self.sessions.cascade_bell.ring();
        }
        if let Some(next) = reaped.next_deadline {
            self.deadlines.set_stored(next);
        }
        Ok(())
    }

    /// The sessions that are dead, with their last heartbeat count.
    fn find_dead(&mut self, open: &[OpenedSession], now: Instant) -> Vec<(SessionId, u64)> {
        let refused = self.refused.swap(false, Ordering::Relaxed);
        let has_gap = refused || self.last_read.is_none_or(|last| now - last > self.ttl / 2);
        if has_gap {
            self.heartbeats.clear();
            self.steady_since = Some(now);
        }
        self.last_read = Some(now);
        let mut heartbeats = HashMap::with_capacity(open.len());
        let mut dead = Vec::new();
        for OpenedSession { opened, beat, .. } in open {
            let known = self.heartbeats.get(&opened.id).filter(|(last, _)| last == beat);
            let since = known.map_or(now, |(_, since)| *since);
            if now - since >= self.ttl {
                dead.push((opened.id, *beat));
            }
            heartbeats.insert(opened.id, (*beat, since));
        }
        self.heartbeats = heartbeats;
        dead
    }

    /// How long until the next look.
    async fn pause(&self) -> Duration {
        let deadline = self.deadlines.next().filter(|_| self.is_scheduler);
        let overdue_in = match (deadline, self.store.now().await) {
            (Some(next), Ok(now)) => next.since(now).max(Duration::from_millis(1)),
            _ => SAFETY_POLL,
        };
        // On a shared store another node may have opened a session meanwhile.
        let alone = self.store.node() == NodeId::ONLY;
        let most = if alone && self.heartbeats.is_empty() { SAFETY_POLL } else { self.ttl / 4 };
        overdue_in.min(most)
    }
}
