//! Open sessions: which lanes each serves and how far its claims have come.

use duly_core::id::SessionId;
use duly_core::name::{Lane, QueueName, TypeName};
use duly_core::ports::store::OpenSession;

use super::grants::{Batch, Grants};
use super::lanes::{LaneId, Lanes};
use foldhash::{HashMap, HashSet};

#[derive(Debug)]
pub(in crate::sqlite) struct Session {
    types: HashSet<TypeName>,
    queues: HashSet<QueueName>,
    lanes: HashSet<LaneId>,
    /// The highest claim seen, and whether it was granted something.
    sequence: u64,
    granted: bool,
}

impl Session {
    pub(in crate::sqlite) fn serves(&self, lane: LaneId) -> bool {
        self.lanes.contains(&lane)
    }

    /// Whether a claim may be granted tasks: it is a new one, or the newest and came back empty.
    /// An older one is a late echo whose caller no longer listens.
    pub(in crate::sqlite) fn admits(&self, sequence: u64) -> bool {
        sequence > self.sequence || (sequence == self.sequence && !self.granted)
    }

    pub(in crate::sqlite) fn note(&mut self, sequence: u64, granted: bool) {
        self.sequence = sequence;
        self.granted = granted;
    }

    fn wants(&self, lane: &Lane) -> bool {
        self.types.contains(&lane.task_type)
            && (self.queues.is_empty() || self.queues.contains(&lane.queue))
    }
}

#[derive(Debug, Default)]
pub(in crate::sqlite) struct Sessions {
    open: HashMap<SessionId, Session>,
}

impl Sessions {
    pub(in crate::sqlite) fn open(&mut self, session: &OpenSession, lanes: &Lanes) {
        let mut state = Session {
            types: session.types.iter().cloned().collect(),
            queues: session.queues.iter().cloned().collect(),
            lanes: HashSet::default(),
            sequence: 0,
            granted: false,
        };
        let served = lanes.iter().filter(|(_, lane)| state.wants(lane)).map(|(id, _)| id);
        state.lanes = served.collect();
        self.open.insert(session.id, state);
    }

    pub(in crate::sqlite) fn end(&mut self, id: SessionId) {
        self.open.remove(&id);
    }

    pub(in crate::sqlite) fn get(&self, id: SessionId) -> Option<&Session> {
        self.open.get(&id)
    }

    pub(in crate::sqlite) fn get_mut(&mut self, id: SessionId) -> Option<&mut Session> {
        self.open.get_mut(&id)
    }

    pub(super) fn add_lane(&mut self, id: LaneId, lane: &Lane) {
        for session in self.open.values_mut().filter(|session| session.wants(lane)) {
            session.lanes.insert(id);
        }
    }

    pub(super) fn match_lanes(&mut self, lanes: &Lanes) {
        for session in self.open.values_mut() {
            let served = lanes.iter().filter(|(_, lane)| session.wants(lane)).map(|(id, _)| id);
            session.lanes = served.collect();
        }
    }

    /// After a rollback the newest claim may not have happened: it may then be granted anew.
    pub(super) fn recall_claims(&mut self, grants: &Grants) {
        for (id, session) in &mut self.open {
            session.granted = grants.holds(Batch { session: *id, sequence: session.sequence });
        }
    }
}
