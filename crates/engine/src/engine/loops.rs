//! Starts the loops of a node.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use duly_core::id::NodeId;
use duly_core::ports::store::Store;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Inner;
use crate::attached_sessions::AttachedSessions;
use crate::cascade::Cascade;
use crate::coordinator::Coordinator;
use crate::events::{Keeper, Relay, pass_event_hints};
use crate::keep_alive::KeepAlive;
use crate::leader::Candidate;
use crate::observer::Observer;
use crate::renewal::Renewal;
use crate::retention::{self, Sweeper};
use crate::submitter::{Inbox, Submission, Submitter};
use crate::task_poll::TaskPoll;

impl Inner {
    pub(super) fn start_loops(&self, inbox: mpsc::UnboundedReceiver<Submission>) {
        let submitter = Submitter {
            store: Arc::clone(&self.store),
            inbox: Arc::new(Inbox::new(inbox)),
            backlog: Arc::clone(&self.backlog),
            claim_slots: Arc::clone(&self.sessions.claim_slots),
            deadlines: Arc::clone(&self.deadlines),
            rates: Arc::clone(&self.sessions.rates),
            task_waiters: Arc::clone(&self.task_waiters),
            cascade_bell: Arc::clone(&self.sessions.cascade_bell),
            shutdown: self.stop.clone(),
        };
        for _ in 0..self.store.submits_at_once() {
            self.loops.spawn(submitter.clone().run());
        }
        let (store, sessions) = (Arc::clone(&self.store), Arc::clone(&self.sessions));
        self.loops.spawn(pass_hints(store, sessions, self.stop.clone()));
        let (store, written) = (Arc::clone(&self.store), Arc::clone(&self.written));
        self.loops.spawn(pass_event_hints(store, written, self.stop.clone()));
        let (store, waiters) = (Arc::clone(&self.store), Arc::clone(&self.task_waiters));
        self.loops.spawn(TaskPoll::new(store, waiters).run(self.stop.clone()));
        self.loops.spawn(Arc::clone(&self.key_cache).note_uses(self.stop.clone()));
        self.loops.spawn(Arc::clone(&self.key_watches).run(self.stop.clone()));
        let refused = Arc::<AtomicBool>::default();
        // Without other nodes, none needs a sign of life.
        if self.store.node() != NodeId::ONLY {
            self.start_keeping_alive(Arc::clone(&refused));
        }
        let observer = Observer {
            store: Arc::clone(&self.store),
            random: Arc::clone(&self.random),
            ttl: self.config.session_ttl,
            is_scheduler: self.config.is_scheduler,
            sessions: Arc::clone(&self.sessions),
            task_waiters: Arc::clone(&self.task_waiters),
            deadlines: Arc::clone(&self.deadlines),
            heartbeats: HashMap::new(),
            last_read: None,
            steady_since: None,
            refused,
        };
        self.loops.spawn(observer.run(self.stop.clone()));
        if self.config.is_scheduler {
            self.start_leading();
            self.start_relaying();
            let (store, sessions) = (Arc::clone(&self.store), Arc::clone(&self.sessions));
            self.loops.spawn(Cascade { store, sessions }.run(self.stop.clone()));
        }
    }

    fn start_keeping_alive(&self, refused: Arc<AtomicBool>) {
        let keep_alive = KeepAlive {
            renewal: Renewal { ttl: self.config.session_ttl },
            store: Arc::clone(&self.store),
            sessions: Arc::clone(&self.sessions),
            settings: Arc::clone(&self.settings),
            tenants: Arc::clone(&self.tenants),
            introduced: Arc::clone(&self.introduced),
            absent: false,
            refused,
        };
        self.loops.spawn(keep_alive.run(self.stop.clone()));
    }

    fn start_relaying(&self) {
        let relay = Relay {
            store: Arc::clone(&self.store),
            sinks: Arc::clone(&self.sinks),
            written: Arc::clone(&self.written),
            renewal: Renewal { ttl: self.config.session_ttl },
        };
        self.loops.spawn(relay.run(self.stop.clone()));
        let keeper = Keeper { store: Arc::clone(&self.store), sinks: Arc::clone(&self.sinks) };
        self.loops.spawn(keeper.run(self.leadership.clone(), self.stop.clone()));
    }

    /// Starts the campaign for leadership and the loops that only the leader runs.
    fn start_leading(&self) {
        let lead = &self.leadership;
        let candidate = Candidate {
            renewal: Renewal { ttl: self.config.session_ttl },
            store: Arc::clone(&self.store),
            lead: lead.clone(),
            until: None,
            leader: None,
        };
        self.loops.spawn(candidate.run(self.stop.clone()));
        let sweeper = Sweeper {
            config: retention::Config::default(),
            store: Arc::clone(&self.store),
            settings: Arc::clone(&self.settings),
            tenants: Arc::clone(&self.tenants),
        };
        self.loops.spawn(sweeper.run(lead.clone(), self.stop.clone()));
        let coordinator = Coordinator {
            store: Arc::clone(&self.store),
            settings: Arc::clone(&self.settings),
            tenants: Arc::clone(&self.tenants),
            sessions: Arc::clone(&self.sessions),
            bell: Arc::clone(&self.schedule_bell),
        };
        self.loops.spawn(coordinator.run(lead.clone(), self.stop.clone()));
    }
}

/// Passes the store's hints to the attached sessions that they concern, and to the cascade.
async fn pass_hints(
    store: Arc<dyn Store>,
    sessions: Arc<AttachedSessions>,
    stop: CancellationToken,
) {
    loop {
        let hint = tokio::select! {
            () = stop.cancelled() => return,
            hint = store.hint() => hint,
        };
        sessions.cascade_bell.ring_soon();
        let slots = sessions.claim_slots.read();
        for slot in slots.iter().filter(|slot| hint.concerns(slot.session())) {
            slot.hint(hint.due);
        }
    }
}
