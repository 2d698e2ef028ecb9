//! Sessions open, beat and end.

use duly_core::id::{SessionId, TaskId};
use duly_core::name::{QueueName, TenantName, TypeName};
use duly_core::ports::store::{Ending, Heartbeat, Home, OpenSession, OpenedSession, WorkerState};
use rusqlite::params;

use super::reclaim::{Reason, take_back};
use super::{Scope, Verb};
use crate::audited::{self, Subject};
use crate::sqlite::error::Result;
use crate::sqlite::index::grants::Batch;

impl Verb for OpenSession {
    type Answer = ();

    fn apply(&self, scope: &mut Scope<'_>) -> Result<()> {
        let remote = self.home == Home::Remote;
        let kept = |json: String| remote.then_some(json);
        let new = scope.connection.execute(
            "/* session.open */ INSERT INTO session (id, name, opened_at, home, tenant, types, queues, owner)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
            params![
                self.id.as_bytes(),
                self.name,
                scope.now.millis(),
                remote,
                self.tenant.as_ref().filter(|_| remote).map(TenantName::as_str),
                kept(names(self.types.iter().map(TypeName::as_str))),
                kept(names(self.queues.iter().map(QueueName::as_str))),
                self.owner.as_deref().filter(|_| remote),
            ],
        )?;
        // One that has ended stays so: an echo of its opening must not bring it back.
        if new > 0 {
            scope.index.sessions.open(self, &scope.index.lanes, scope.now);
        }
        Ok(())
    }
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    serde_json::to_string(&names.collect::<Vec<_>>()).expect("strings are JSON")
}

/// Beats are kept in memory: after a restart a session has its full time to beat again.
impl Verb for Heartbeat {
    type Answer = bool;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<bool> {
        #[cfg(feature = "planted-bugs")]
        crate::sqlite::planted::resurrect(scope, self.session)?;
        let Some(session) = scope.index.sessions.get_mut(self.session) else { return Ok(false) };
        session.beat += 1;
        session.beat_at = scope.now;
        session.unstarted = self.unstarted.iter().copied().collect();
        for sequence in &self.received {
            let batch = Batch { session: self.session, sequence: *sequence };
            scope.index.grants.receive(batch);
            scope.index.sessions.acknowledge(batch);
        }
        Ok(true)
    }
}

/// Lists the remote sessions.
pub(in crate::sqlite) struct ListSessions;

impl Verb for ListSessions {
    type Answer = Vec<OpenedSession>;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<Vec<OpenedSession>> {
        #[cfg(feature = "planted-bugs")]
        let ghosts = crate::sqlite::planted::ghosts(scope)?;
        #[cfg(not(feature = "planted-bugs"))]
        let ghosts = Vec::new();
        Ok(scope.index.sessions.opened().into_iter().chain(ghosts).collect())
    }
}

/// Lists all sessions for people.
pub(in crate::sqlite) struct ListWorkers;

impl Verb for ListWorkers {
    type Answer = Vec<WorkerState>;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<Vec<WorkerState>> {
        Ok(scope.index.sessions.workers(&scope.index.grants, scope.now))
    }
}

/// Says whether a session drains.
pub(in crate::sqlite) struct Drain {
    pub(in crate::sqlite) session: SessionId,
    pub(in crate::sqlite) draining: bool,
}

impl Verb for Drain {
    type Answer = bool;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<bool> {
        let Some(session) = scope.index.sessions.get_mut(self.session) else { return Ok(false) };
        session.draining = self.draining;
        scope.connection.execute(
            "/* session.drain */ UPDATE session SET draining = ? WHERE id = ?",
            params![self.draining, self.session.as_bytes()],
        )?;
        Ok(true)
    }

    fn audited(&self) -> Vec<Subject> {
        audited::drain(self.session, self.draining)
    }
}

/// Ends a session and puts back what it holds.
pub(in crate::sqlite) struct EndSession {
    pub(in crate::sqlite) session: SessionId,
    pub(in crate::sqlite) ending: Ending,
}

impl Verb for EndSession {
    type Answer = Vec<TaskId>;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<Vec<TaskId>> {
        let session = scope.index.sessions.get(self.session);
        let beat = session.map(|session| session.beat);
        if matches!(self.ending, Ending::Died { beat: last } if beat.is_some_and(|it| it != last)) {
            return Ok(Vec::new());
        }
        let unstarted = session.map(|session| session.unstarted.clone()).unwrap_or_default();
        if session.is_some_and(|session| session.waits_for.is_some()) {
            // Other sessions have passed by the quarantined task that it waited for.
            scope.hint_at(scope.now);
        }
        let held = scope.index.grants.leases(|session| session == self.session);
        #[cfg(feature = "planted-bugs")]
        let held = [held, crate::sqlite::planted::inherited(scope, self.session)?].concat();
        for (session, lease) in &held {
            let spared = self.ending == Ending::Closed || unstarted.contains(&lease.task);
            let reason = if spared { Reason::Release } else { Reason::Death };
            take_back(scope, *session, *lease, reason)?;
        }
        scope.connection.execute(
            "/* session.end */ UPDATE session SET ended_at = ? WHERE id = ? AND ended_at IS NULL",
            params![scope.now.millis(), self.session.as_bytes()],
        )?;
        scope.index.sessions.end(self.session);
        Ok(held.into_iter().map(|(_, lease)| lease.task).collect())
    }
}
