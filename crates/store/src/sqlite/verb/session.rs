//! Sessions open and end.

use duly_core::id::SessionId;
use duly_core::ports::store::OpenSession;
use rusqlite::params;

use super::reclaim::{Reason, take_back};
use super::{Scope, Verb};
use crate::sqlite::error::Result;

impl Verb for OpenSession {
    type Answer = ();

    fn apply(&self, scope: &mut Scope<'_>) -> Result<()> {
        scope.connection.execute(
            "/* session.open */ INSERT INTO session (id, name, opened_at) VALUES (?, ?, ?)
             ON CONFLICT (id) DO NOTHING",
            params![self.id.as_bytes(), self.name, scope.now.millis()],
        )?;
        if scope.index.sessions.get(self.id).is_none() {
            scope.index.sessions.open(self, &scope.index.lanes);
        }
        Ok(())
    }
}

/// Ends a session and puts back what it holds.
pub(in crate::sqlite) struct EndSession(pub(in crate::sqlite) SessionId);

impl Verb for EndSession {
    type Answer = ();

    fn apply(&self, scope: &mut Scope<'_>) -> Result<()> {
        for (session, lease) in scope.index.grants.leases(Some(self.0)) {
            take_back(scope, session, lease, Reason::Release)?;
        }
        scope.connection.execute(
            "/* session.end */ UPDATE session SET ended_at = ? WHERE id = ? AND ended_at IS NULL",
            params![scope.now.millis(), self.0.as_bytes()],
        )?;
        scope.index.sessions.end(self.0);
        Ok(())
    }
}
