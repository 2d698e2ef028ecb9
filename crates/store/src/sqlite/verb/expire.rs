//! Expire: delete tasks that a reader found to have ended long ago, if it is still so, and sessions.

use duly_core::id::TaskId;
use duly_core::limits::STORE_BATCH;
use duly_core::state::Status;
use duly_core::time::Timestamp;
use rusqlite::params;

use super::{Scope, Verb};
use crate::sqlite::error::Result;
use crate::sqlite::task_state::deleted::deleted;

/// What a reader found. Answers how many are gone.
pub(in crate::sqlite) struct Expire {
    pub(in crate::sqlite) tasks: Vec<Ended>,
}

/// A task that has ended in this state before this time.
pub(in crate::sqlite) struct Ended {
    pub(in crate::sqlite) task: TaskId,
    pub(in crate::sqlite) status: Status,
    pub(in crate::sqlite) before: Timestamp,
}

impl Verb for Expire {
    type Answer = u32;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<u32> {
        let mut gone = 0;
        for Ended { task, status, before } in &self.tasks {
            gone += u32::from(deleted(scope, *task, *status, Some(*before))?);
        }
        Ok(gone)
    }
}

/// Forgets sessions that ended before this time. Answers how many.
pub(in crate::sqlite) struct ForgetSessions {
    pub(in crate::sqlite) before: Timestamp,
}

/// An id begins with the time at which its session opened: what lies beyond is newer and not read.
const FORGET_SESSIONS: &str = "/* session.forget */ DELETE FROM session WHERE id IN (
         SELECT id FROM session WHERE id < ?1 AND ended_at < ?2
             AND NOT EXISTS (SELECT 1 FROM grant_log WHERE grant_log.session = session.id)
         ORDER BY id LIMIT ?3)";

impl Verb for ForgetSessions {
    type Answer = u32;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<u32> {
        let opened_before = TaskId::first_of(self.before);
        let parameters = params![opened_before.as_bytes(), self.before.millis(), STORE_BATCH];
        let forgotten = scope.connection.prepare_cached(FORGET_SESSIONS)?.execute(parameters)?;
        Ok(u32::try_from(forgotten).unwrap_or(u32::MAX))
    }
}
