//! Open sessions: which lanes each serves, how far its claims have come, and what it last said.

use duly_core::id::{NodeId, SessionId, TaskId};
use duly_core::name::{Lane, QueueName, TenantName, TypeName};
use duly_core::ports::store::{Home, OpenSession, OpenedSession, WorkerState};
use duly_core::time::Timestamp;
use foldhash::{HashMap, HashSet};
use rusqlite::types::Value;
use rusqlite::{Connection, Row, params};

use super::grants::{Batch, Grants, Quarantining};
use super::lanes::{LaneId, Lanes};
use crate::sqlite::error::{Fault, Result};

#[derive(Debug)]
pub(in crate::sqlite) struct Session {
    opened: OpenSession,
    types: HashSet<TypeName>,
    queues: HashSet<QueueName>,
    /// The lanes it serves, those of paused queues aside.
    lanes: HashSet<LaneId>,
    /// The highest claim seen, and whether it was granted something.
    sequence: u64,
    granted: bool,
    /// Whether the session has said that it got what that claim was granted.
    pub(in crate::sqlite) acknowledged: bool,
    /// Counts signs of life.
    pub(in crate::sqlite) beat: u64,
    /// When the last one came.
    pub(in crate::sqlite) beat_at: Timestamp,
    /// Whether it is to be granted nothing more.
    pub(in crate::sqlite) draining: bool,
    /// What it holds and has not started, as it last said.
    pub(in crate::sqlite) unstarted: HashSet<TaskId>,
    /// The quarantined task for which it takes nothing more until it holds nothing.
    pub(in crate::sqlite) waits_for: Option<TaskId>,
    /// Whether what it holds is a quarantined task.
    pub(in crate::sqlite) alone: bool,
}

impl Session {
    pub(in crate::sqlite) fn serves(&self, lane: LaneId) -> bool {
        self.lanes.contains(&lane)
    }

    /// Whether a claim may be granted tasks: it is a new one, or the newest and came back empty,
    /// or what it was granted was taken back before its caller had acknowledged it. An older one is a
    /// late echo whose caller no longer listens.
    pub(in crate::sqlite) fn admits(&self, sequence: u64, grants: &Grants) -> bool {
        let batch = Batch { session: self.opened.id, sequence };
        sequence > self.sequence
            || (sequence == self.sequence
                && (!self.granted || (!self.acknowledged && !grants.holds(batch))))
    }

    pub(in crate::sqlite) fn note(&mut self, sequence: u64, granted: bool) {
        self.sequence = sequence;
        self.granted = granted;
        self.acknowledged = false;
    }

    pub(in crate::sqlite) fn is_remote(&self) -> bool {
        self.opened.home == Home::Remote
    }

    pub(in crate::sqlite) fn tenant(&self) -> Option<&TenantName> {
        self.opened.tenant.as_ref()
    }

    pub(in crate::sqlite) fn name(&self) -> &str {
        &self.opened.name
    }

    /// The newest claim.
    pub(in crate::sqlite) fn newest(&self) -> u64 {
        self.sequence
    }

    fn wants(&self, lane: &Lane) -> bool {
        self.types.contains(&lane.task_type)
            && (self.queues.is_empty() || self.queues.contains(&lane.queue))
            && self.opened.tenant.as_ref().is_none_or(|tenant| *tenant == lane.tenant)
    }
}

#[derive(Debug, Default)]
pub(in crate::sqlite) struct Sessions {
    open: HashMap<SessionId, Session>,
    /// Ids of rows that cannot be read, as they stand there.
    damaged: Vec<Value>,
}

impl Sessions {
    /// Makes the remote sessions known that the file holds and memory does not:
    /// after a restart, or after the end of one was rolled back.
    pub(super) fn load(&mut self, connection: &Connection, now: Timestamp) -> Result<()> {
        let mut statement = connection.prepare(
            "SELECT id, name, tenant, types, queues, owner, draining FROM session
             WHERE ended_at IS NULL AND home = 1",
        )?;
        let mut rows = statement.query([])?;
        let mut stored = HashSet::default();
        self.damaged.clear();
        while let Some(row) = rows.next()? {
            let session = opened(row).and_then(|session| Ok((session, row.get(6)?)));
            match session {
                Ok((session, draining)) => {
                    stored.insert(session.id);
                    if !self.open.contains_key(&session.id) {
                        self.open(&session, &Lanes::default(), now);
                        let session = self.open.get_mut(&session.id).expect("it was just opened");
                        // How often it has beaten is forgotten: no number of before may come again.
                        session.beat = now.millis().unsigned_abs();
                    }
                    if let Some(session) = self.open.get_mut(&session.id) {
                        session.draining = draining;
                    }
                }
                // Its leases are taken back like those of an earlier process.
                Err(fault) if fault.is_bad_row() => {
                    tracing::error!(%fault, table = "session", "a session cannot be read; it is over");
                    self.damaged.push(row.get(0)?);
                }
                Err(fault) => return Err(fault),
            }
        }
        // One whose opening was rolled back is not there.
        self.open.retain(|id, session| !session.is_remote() || stored.contains(id));
        Ok(())
    }

    /// Ends those that cannot be read.
    pub(in crate::sqlite) fn end_damaged(
        &mut self,
        connection: &Connection,
        now: Timestamp,
    ) -> Result<()> {
        for id in self.damaged.drain(..) {
            let end = "UPDATE session SET ended_at = ? WHERE id = ?";
            connection.execute(end, params![now.millis(), id])?;
        }
        Ok(())
    }

    pub(in crate::sqlite) fn open(&mut self, session: &OpenSession, lanes: &Lanes, now: Timestamp) {
        let mut state = Session {
            opened: session.clone(),
            types: session.types.iter().cloned().collect(),
            queues: session.queues.iter().cloned().collect(),
            lanes: HashSet::default(),
            sequence: 0,
            granted: false,
            acknowledged: false,
            beat: 0,
            beat_at: now,
            draining: false,
            unstarted: HashSet::default(),
            waits_for: None,
            alone: false,
        };
        let served = lanes.open().filter(|(_, lane)| state.wants(lane)).map(|(id, _)| id);
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

    /// The remote sessions.
    pub(in crate::sqlite) fn remote(&self) -> impl Iterator<Item = (SessionId, &Session)> {
        self.open.iter().filter(|(_, it)| it.is_remote()).map(|(id, session)| (*id, session))
    }

    pub(in crate::sqlite) fn opened(&self) -> Vec<OpenedSession> {
        let opened = |(_, it): (_, &Session)| OpenedSession {
            opened: it.opened.clone(),
            beat: it.beat,
            draining: it.draining,
        };
        self.remote().map(opened).collect()
    }

    /// All of them, as people look at them.
    pub(in crate::sqlite) fn workers(&self, grants: &Grants, now: Timestamp) -> Vec<WorkerState> {
        let state = |(id, it): (&SessionId, &Session)| WorkerState {
            opened: it.opened.clone(),
            node: (!it.is_remote()).then_some(NodeId::ONLY),
            draining: it.draining,
            beat_at: if it.is_remote() { it.beat_at } else { now },
            leases: u32::try_from(grants.held(*id)).unwrap_or(u32::MAX),
        };
        self.open.iter().map(state).collect()
    }

    /// Whether another session takes nothing more until it can take this quarantined
    /// task. A session that holds nothing does not wait: it takes the task with its next claim.
    pub(in crate::sqlite) fn is_waited_for(
        &self,
        task: TaskId,
        other_than: SessionId,
        grants: &Grants,
    ) -> bool {
        let mut waiting = self.open.iter().filter(|(_, it)| it.waits_for == Some(task));
        waiting.any(|(id, _)| *id != other_than && grants.held(*id) > 0)
    }

    /// The session has said that it got the batch.
    pub(in crate::sqlite) fn acknowledge(&mut self, batch: Batch) {
        if let Some(session) = self.open.get_mut(&batch.session) {
            session.acknowledged |= session.sequence == batch.sequence;
        }
    }

    /// Whether a session gets nothing because of a quarantined task that it holds or waits for.
    pub(in crate::sqlite) fn is_isolating(&self, id: SessionId, grants: &Grants) -> bool {
        let session = self.open.get(&id);
        session.is_some_and(|session| session.alone || session.waits_for.is_some())
            && grants.held(id) > 0
    }

    pub(super) fn add_lane(&mut self, id: LaneId, lane: &Lane) {
        for session in self.open.values_mut().filter(|session| session.wants(lane)) {
            session.lanes.insert(id);
        }
    }

    pub(super) fn remove_lane(&mut self, id: LaneId) {
        for session in self.open.values_mut() {
            session.lanes.remove(&id);
        }
    }

    pub(super) fn match_lanes(&mut self, lanes: &Lanes) {
        for session in self.open.values_mut() {
            let served = lanes.open().filter(|(_, lane)| session.wants(lane)).map(|(id, _)| id);
            session.lanes = served.collect();
        }
    }

    /// After a rollback the newest claim may not have happened: it may then be granted anew. After
    /// a restart the file tells how far the claims had come.
    pub(super) fn recall_claims(&mut self, grants: &Grants, quarantining: &Quarantining) {
        for (id, session) in &mut self.open {
            session.sequence = session.sequence.max(grants.newest(*id));
            session.granted = grants.holds(Batch { session: *id, sequence: session.sequence });
            session.alone = quarantining.contains(id);
        }
    }
}

/// Reads id, name, tenant, types, queues and owner of a remote session.
pub(in crate::sqlite) fn opened(row: &Row<'_>) -> Result<OpenSession> {
    let id = SessionId::from_bytes(row.get(0)?);
    let damaged = |column| Fault::Corrupt { table: "session", column, id: id.to_string() };
    let list = |index, column| -> Result<Vec<String>> {
        let text: String = row.get(index)?;
        serde_json::from_str(&text).map_err(|_| damaged(column))
    };
    let types: std::result::Result<_, _> =
        list(3, "types")?.iter().map(|name| TypeName::new(name)).collect();
    let queues: std::result::Result<_, _> =
        list(4, "queues")?.iter().map(|name| QueueName::new(name)).collect();
    let tenant = row.get::<_, Option<String>>(2)?.map(|name| TenantName::new(&name)).transpose();
    Ok(OpenSession {
        id,
        name: row.get(1)?,
        tenant: tenant.map_err(|_| damaged("tenant"))?,
        types: types.map_err(|_| damaged("types"))?,
        queues: queues.map_err(|_| damaged("queues"))?,
        home: Home::Remote,
        owner: row.get::<_, Option<String>>(5)?.map(Into::into),
    })
}
