//! The loop that watches sessions of processes elsewhere, and deadlines.
//!
//! A session is dead when its beat has not changed for the whole TTL, measured by this process's
//! monotonic clock over an unbroken series of reads: after a pause of this process, or of the
//! store, or while the store can be read and not written, everybody gets the full time again.
//! Deadlines are judged by the store's clock.

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

use crate::deadlines::Deadlines;
use crate::outcomes::Outcomes;
use crate::remotes::Remotes;

/// How often the loop looks while nothing asks for it: another node may have granted leases.
const SAFETY_POLL: Duration = Duration::from_secs(60);
/// How long it waits for a store that does not answer.
const BACK_OFF: Duration = Duration::from_secs(1);

pub(crate) struct Observer {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) ttl: Duration,
    /// Whether it ends sessions and takes leases back; else it only sees who has ended.
    pub(crate) judges: bool,
    pub(crate) remotes: Arc<Remotes>,
    pub(crate) outcomes: Arc<Outcomes>,
    pub(crate) deadlines: Arc<Deadlines>,
    /// The last beat of each session, and since when it is the last.
    pub(crate) seen: HashMap<SessionId, (u64, Instant)>,
    /// When the sessions were last read.
    pub(crate) last_read: Option<Instant>,
    /// Since when they have been read without a gap.
    pub(crate) steady_since: Option<Instant>,
    /// Whether the store refused a sign of life of this process since the last look: it may have
    /// refused those of others too.
    pub(crate) refused: Arc<AtomicBool>,
}

impl Observer {
    /// Watches until shut down.
    pub(crate) async fn run(mut self, shutdown: CancellationToken) {
        loop {
            let pause = match self.run_once().await {
                Ok(()) => self.pause().await,
                Err(error) => {
                    tracing::debug!(%error, "the store is away; sessions are not judged meanwhile");
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

    /// Sleeps, less if a lease with an earlier deadline is granted meanwhile.
    async fn sleep(&self, pause: Duration) {
        let mut pause = pause;
        while tokio::time::timeout(pause, self.deadlines.changed()).await.is_ok() {
            pause = self.pause().await;
        }
    }

    /// One look at all sessions and deadlines.
    async fn run_once(&mut self) -> store::Result<()> {
        let attached = self.remotes.ids();
        let sessions = self.store.sessions().await?;
        self.remotes.served.learn(&sessions);
        for session in &sessions {
            // Another node may have been told.
            self.remotes.set_draining(session.opened.id, session.draining);
        }
        for id in attached {
            // It ended while somebody used it.
            if sessions.iter().all(|session| session.opened.id != id) {
                self.remotes.detach(id);
            }
        }
        let dead = self.judge(&sessions, Instant::now());
        if !self.judges {
            return Ok(());
        }
        for (session, beat) in dead {
            let known = sessions.iter().find(|it| it.opened.id == session);
            let worker = known.map_or("", |it| it.opened.name.as_str());
            tracing::warn!(
                session.id = %session, worker.name = worker,
                "a worker is silent; its leases are taken back"
            );
            // Should it have beaten meanwhile, it goes on; else the next look detaches it.
            let tasks = self.store.end_session(session, Ending::Died { beat }).await?;
            self.outcomes.announce(tasks);
        }
        let now = self.store.now().await?;
        // After a gap everybody has the full time again, to acknowledge too.
        let steady = self.steady_since.is_some_and(|since| since.elapsed() >= self.ttl);
        let unacknowledged_before = if steady { now.minus(self.ttl) } else { Timestamp::EPOCH };
        let reap = Reap { unacknowledged_before, entropy: self.random.next() };
        self.deadlines.forget();
        let reaped = self.store.reap(reap).await?;
        for (session, lease) in reaped.taken_back {
            self.remotes.take_back(session, lease);
            self.outcomes.announce([lease.task]);
        }
        if let Some(next) = reaped.next_deadline {
            self.deadlines.learn(next);
        }
        Ok(())
    }

    /// The sessions that are dead, with their last beat.
    fn judge(&mut self, sessions: &[OpenedSession], now: Instant) -> Vec<(SessionId, u64)> {
        let refused = self.refused.swap(false, Ordering::Relaxed);
        let broken = refused || self.last_read.is_none_or(|last| now - last > self.ttl / 2);
        if broken {
            self.seen.clear();
            self.steady_since = Some(now);
        }
        self.last_read = Some(now);
        let mut seen = HashMap::with_capacity(sessions.len());
        let mut dead = Vec::new();
        for OpenedSession { opened, beat, .. } in sessions {
            let known = self.seen.get(&opened.id).filter(|(last, _)| last == beat);
            let since = known.map_or(now, |(_, since)| *since);
            if now - since >= self.ttl {
                dead.push((opened.id, *beat));
            }
            seen.insert(opened.id, (*beat, since));
        }
        self.seen = seen;
        dead
    }

    /// How long until the next look.
    async fn pause(&self) -> Duration {
        let deadline = self.deadlines.next().filter(|_| self.judges);
        let overdue_in = match (deadline, self.store.now().await) {
            (Some(next), Ok(now)) => next.since(now).max(Duration::from_millis(1)),
            _ => SAFETY_POLL,
        };
        // Where others share the store, one of them may have opened a session meanwhile.
        let alone = self.store.node() == NodeId::ONLY;
        let most = if alone && self.seen.is_empty() { SAFETY_POLL } else { self.ttl / 4 };
        overdue_in.min(most)
    }
}
