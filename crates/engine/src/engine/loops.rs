//! Starting the loops of a node.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use duly_core::id::NodeId;
use duly_core::ports::store::Store;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Inner;
use crate::desk::Desks;
use crate::keep_alive::KeepAlive;
use crate::leader::{Candidate, Lead};
use crate::observer::Observer;
use crate::pace::Pace;
use crate::retention::{self, Sweeper};
use crate::submitter::{Inbox, Submission, Submitter};

impl Inner {
    /// All that this node does by itself.
    pub(super) fn start_loops(&self, inbox: mpsc::UnboundedReceiver<Submission>) {
        let submitter = Submitter {
            store: Arc::clone(&self.store),
            inbox: Arc::new(Inbox::new(inbox)),
            backlog: Arc::clone(&self.backlog),
            desks: Arc::clone(&self.remotes.desks),
            deadlines: Arc::clone(&self.deadlines),
            rates: Arc::clone(&self.remotes.rates),
        };
        for _ in 0..self.store.submits_at_once() {
            self.loops.spawn(submitter.clone().run());
        }
        let (store, desks) = (Arc::clone(&self.store), Arc::clone(&self.remotes.desks));
        self.loops.spawn(pass_hints(store, desks, self.stop.clone()));
        let refused = Arc::<AtomicBool>::default();
        // A process that has the store for itself is missed by nobody.
        if self.store.node() != NodeId::ONLY {
            self.start_keeping_alive(Arc::clone(&refused));
        }
        let observer = Observer {
            store: Arc::clone(&self.store),
            random: Arc::clone(&self.random),
            ttl: self.config.session_ttl,
            judges: self.config.is_scheduler,
            remotes: Arc::clone(&self.remotes),
            outcomes: Arc::clone(&self.outcomes),
            deadlines: Arc::clone(&self.deadlines),
            seen: HashMap::new(),
            last_read: None,
            steady_since: None,
            refused,
        };
        self.loops.spawn(observer.run(self.stop.clone()));
        if self.config.is_scheduler {
            self.start_leading();
        }
    }

    fn start_keeping_alive(&self, refused: Arc<AtomicBool>) {
        let keep_alive = KeepAlive {
            pace: Pace { ttl: self.config.session_ttl },
            store: Arc::clone(&self.store),
            remotes: Arc::clone(&self.remotes),
            settings: Arc::clone(&self.settings),
            introduced: Arc::clone(&self.introduced),
            absent: false,
            refused,
        };
        self.loops.spawn(keep_alive.run(self.stop.clone()));
    }

    /// Stands for leader, and starts what only the leader does.
    fn start_leading(&self) {
        let lead = Lead::default();
        let candidate = Candidate {
            pace: Pace { ttl: self.config.session_ttl },
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
        };
        self.loops.spawn(sweeper.run(lead, self.stop.clone()));
    }
}

/// Tells the sessions of this node what the store hints at, as far as it concerns them.
async fn pass_hints(store: Arc<dyn Store>, desks: Desks, stop: CancellationToken) {
    loop {
        let hint = tokio::select! {
            () = stop.cancelled() => return,
            hint = store.hint() => hint,
        };
        for desk in desks.read().iter().filter(|desk| hint.concerns(desk.session())) {
            desk.hint(hint.due);
        }
    }
}
