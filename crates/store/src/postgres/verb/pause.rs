//! Pause a queue, and let it go on.

use duly_core::event::{Event, EventKind};
use duly_core::limits::PAUSED_QUEUES;
use duly_core::name::{QueueName, TenantName};
use duly_core::ports::store::PauseQueue;

use super::{Scope, Verb};
use crate::audited::{self, Audited, Subject};
use crate::postgres::error::Result;
use crate::postgres::queues::KNOWN;

impl Verb for PauseQueue {
    type Answer = bool;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<bool> {
        let insert = "/* queue.pause */ INSERT INTO duly.pause (tenant, queue, since, note)
            SELECT $1, $2, $3, $4
            WHERE EXISTS (SELECT FROM duly.lane WHERE tenant = $1 AND queue = $2)
               OR EXISTS (SELECT FROM duly.pause WHERE tenant = $1 AND queue = $2)
               OR (SELECT count(*) FROM duly.pause WHERE queue <> '') < $5
            ON CONFLICT (tenant, queue) DO UPDATE SET note = excluded.note";
        let known = "/* queue.was_paused */ SELECT FROM duly.pause
            WHERE tenant = $1 AND queue = $2 AND note = $3 FOR NO KEY UPDATE";
        let is_so = scope.told.wants(EventKind::QueuePaused)
            && scope
                .execute(known, &[&self.tenant.as_str(), &self.queue.as_str(), &self.note])
                .await?
                > 0;
        if !is_so {
            let event = Event::queue_paused(&self.tenant, &self.queue, &self.note, scope.now);
            scope.told.emit(&event);
        }
        let Self { tenant, queue, note } = self;
        let (tenant, queue, now) = (tenant.as_str(), queue.as_str(), scope.now.millis());
        let most = i64::from(PAUSED_QUEUES);
        Ok(scope.execute(insert, &[&tenant, &queue, &now, note, &most]).await? > 0)
    }

    fn audited(&self) -> Vec<Subject> {
        Audited::audited(self)
    }
}

/// A queue that goes on.
pub(in crate::postgres) struct ResumeQueue<'a> {
    pub(in crate::postgres) tenant: &'a TenantName,
    pub(in crate::postgres) queue: &'a QueueName,
}

impl Verb for ResumeQueue<'_> {
    type Answer = bool;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<bool> {
        let (tenant, queue) = (self.tenant.as_str(), self.queue.as_str());
        if scope.query(KNOWN, &[&tenant, &queue]).await?.is_empty() {
            return Ok(false);
        }
        let delete = "/* queue.resume */ DELETE FROM duly.pause WHERE tenant = $1 AND queue = $2";
        if scope.execute(delete, &[&tenant, &queue]).await? > 0 {
            // Something may have waited all along.
            scope.wakes.anywhere(scope.now);
            scope.told.emit(&Event::queue_resumed(self.tenant, self.queue, scope.now));
        }
        Ok(true)
    }

    fn audited(&self) -> Vec<Subject> {
        audited::resume_queue(self.tenant, self.queue)
    }
}
