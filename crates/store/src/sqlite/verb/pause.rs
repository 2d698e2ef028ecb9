//! Pause a queue, and let it go on.

use duly_core::event::Event;
use duly_core::name::{QueueName, TenantName};
use duly_core::ports::store::PauseQueue;
use duly_core::time::Timestamp;
use rusqlite::params;

use super::{Scope, Verb};
use crate::audited::{self, Audited, Subject};
use crate::sqlite::error::Result;
use crate::sqlite::queues;

impl Verb for PauseQueue {
    type Answer = bool;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<bool> {
        let Self { tenant, queue, note } = self;
        if !scope.index.may_pause(tenant, queue) {
            return Ok(false);
        }
        let known = queues::paused(scope.connection, tenant, queue)?;
        if known.is_none_or(|known| known.note != *note) {
            scope.emit(&Event::queue_paused(tenant, queue, note, scope.now));
        }
        scope.connection.execute(
            "/* queue.pause */ INSERT INTO pause (tenant, queue, since, note) VALUES (?, ?, ?, ?)
             ON CONFLICT (tenant, queue) DO UPDATE SET note = excluded.note",
            params![tenant.as_str(), queue.as_str(), scope.now.millis(), note],
        )?;
        scope.index.pause(tenant, queue);
        Ok(true)
    }

    fn audited(&self) -> Vec<Subject> {
        Audited::audited(self)
    }
}

/// A queue that goes on.
pub(in crate::sqlite) struct ResumeQueue {
    pub(in crate::sqlite) tenant: TenantName,
    pub(in crate::sqlite) queue: QueueName,
}

impl Verb for ResumeQueue {
    type Answer = bool;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<bool> {
        let Self { tenant, queue } = self;
        if !scope.index.has_queue(tenant, queue) {
            return Ok(false);
        }
        let was_paused = scope.connection.execute(
            "/* queue.resume */ DELETE FROM pause WHERE tenant = ? AND queue = ?",
            params![tenant.as_str(), queue.as_str()],
        )?;
        if was_paused > 0 {
            scope.emit(&Event::queue_resumed(tenant, queue, scope.now));
        }
        if let Some(due) = scope.index.resume(tenant, queue) {
            scope.hint_at(Timestamp::clamped(due));
        }
        Ok(true)
    }

    fn audited(&self) -> Vec<Subject> {
        audited::resume_queue(&self.tenant, &self.queue)
    }
}
