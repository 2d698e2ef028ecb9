//! Sessions open, send heartbeats and end.

use async_trait::async_trait;
use duly_core::id::{NodeId, SessionId, TaskId};
use duly_core::name::{Lane, QueueName, TenantName, TypeName};
use duly_core::ports::store::{
    self, Ending, Heartbeat, Home, OpenSession, OpenedSession, Reap, Reaped, Sessions, WorkerState,
};
use duly_core::ports::work_source::{TakenBack, Why};
use uuid::Uuid;

use super::reap::unless_blocked;
use super::take_back::{Batch, TakeBack};
use super::{Scope, Verb};
use crate::audited::{self, Subject};
use crate::postgres::error::Result;
use crate::postgres::sessions::{COLUMNS, opened};
use crate::postgres::{PostgresStore, row, serving};

#[async_trait]
impl Sessions for PostgresStore {
    async fn open_session(&self, session: OpenSession) -> store::Result<()> {
        if self.run(&session).await? {
            self.sessions.remember(session);
        }
        Ok(())
    }

    async fn beat(&self, beat: Heartbeat) -> store::Result<bool> {
        Ok(self.run(&beat).await?)
    }

    async fn keep_alive(&self, sessions: Vec<SessionId>) -> store::Result<Vec<SessionId>> {
        // On a node without readiness checks, only this call checks the schema regularly.
        drop(self.pool.look_at_schema().await?);
        Ok(self.run(&KeepAlive(sessions)).await?)
    }

    async fn sessions(&self) -> store::Result<Vec<OpenedSession>> {
        Ok(self.other_sessions().await?)
    }

    async fn workers(&self) -> store::Result<Vec<WorkerState>> {
        Ok(self.all_workers().await?)
    }

    async fn drain(&self, session: SessionId, draining: bool) -> store::Result<bool> {
        Ok(self.run(&Drain { session, draining }).await?)
    }

    async fn draining(&self, sessions: Vec<SessionId>) -> store::Result<Vec<SessionId>> {
        let ids: Vec<_> = sessions.iter().map(|id| row::session_uuid(*id)).collect();
        let select = "/* session.draining */ SELECT id FROM duly.session
            WHERE id = ANY($1) AND draining AND ended_at IS NULL";
        let rows = self.pool.query(select, &[&ids]).await?;
        let drains = rows.iter().map(|row| Ok(row::session_id(row.try_get::<_, Uuid>(0)?)));
        Ok(drains.collect::<Result<_>>()?)
    }

    async fn serving(&self, lane: &Lane) -> store::Result<Vec<SessionId>> {
        Ok(serving::serving(self, lane).await?)
    }

    async fn end_session(&self, session: SessionId, ending: Ending) -> store::Result<Vec<TaskId>> {
        Ok(self.end(session, ending).await?)
    }

    async fn revoked(
        &self,
        sessions: Vec<SessionId>,
    ) -> store::Result<Vec<(SessionId, TakenBack)>> {
        Ok(self.collect_revoked(&sessions).await?)
    }

    async fn revocation(&self) {
        self.revocations.notified().await;
    }

    async fn reap(&self, reap: Reap) -> store::Result<Reaped> {
        Ok(self.reap_all(&reap).await?)
    }
}

impl PostgresStore {
    /// Open sessions of other processes.
    async fn other_sessions(&self) -> Result<Vec<OpenedSession>> {
        let select = format!(
            "/* session.list */ SELECT {COLUMNS}, beat, draining FROM duly.session
             WHERE ended_at IS NULL AND node IS DISTINCT FROM $1"
        );
        let mut sessions = Vec::new();
        for row in self.pool.query(&select, &[&self.id]).await? {
            match opened(&row) {
                Ok(opened) => {
                    let beat: i64 = row.try_get(7)?;
                    let (beat, draining) = (beat.unsigned_abs(), row.try_get(8)?);
                    sessions.push(OpenedSession { opened, beat, draining });
                }
                Err(fault) => tracing::error!(%fault, "a session cannot be read"),
            }
        }
        let open: foldhash::HashSet<_> = sessions.iter().map(|it| it.opened.id).collect();
        self.sessions.retain(|it| it.home == Home::Local || open.contains(&it.id));
        Ok(sessions)
    }

    /// All open sessions, as people look at them.
    async fn all_workers(&self) -> Result<Vec<WorkerState>> {
        let select = format!(
            "/* session.workers */ SELECT {COLUMNS}, draining, greatest(beat_at, opened_at),
                 (SELECT coalesce(sum(live), 0)::bigint FROM duly.grant_log
                  WHERE grant_log.session = session.id AND live > 0)
             FROM duly.session WHERE ended_at IS NULL"
        );
        let mut workers = Vec::new();
        for row in self.pool.query(&select, &[]).await? {
            match opened(&row) {
                Ok(opened) => {
                    let node: Option<Uuid> = row.try_get(5)?;
                    let leases: i64 = row.try_get(9)?;
                    workers.push(WorkerState {
                        opened,
                        node: node.map(|node| NodeId::from_bytes(node.into_bytes())),
                        draining: row.try_get(7)?,
                        beat_at: row::instant(row.try_get(8)?),
                        leases: u32::try_from(leases).unwrap_or(u32::MAX),
                    });
                }
                Err(fault) => tracing::error!(%fault, "a session cannot be read"),
            }
        }
        Ok(workers)
    }

    /// Takes the leases of these sessions that were taken back off the list.
    async fn collect_revoked(&self, sessions: &[SessionId]) -> Result<Vec<(SessionId, TakenBack)>> {
        let ids: Vec<_> = sessions.iter().map(|id| row::session_uuid(*id)).collect();
        let delete = "/* lease.revoked */ DELETE FROM duly.revocation WHERE session = ANY($1)
            RETURNING session, task, epoch";
        let mut revoked = Vec::new();
        for found in self.pool.query(delete, &[&ids]).await? {
            let (session, task): (Uuid, Uuid) = (found.try_get(0)?, found.try_get(1)?);
            let epoch = row::count("revocation", "epoch", task, found.try_get(2)?)?;
            let task = row::task_id(task);
            let lease = TakenBack { task, epoch, why: Why::Cancelled };
            revoked.push((row::session_id(session), lease));
        }
        Ok(revoked)
    }

    /// Ends a session and takes back what it holds, batch by batch. Should this node die before the
    /// last, the reaper goes on.
    async fn end(&self, session: SessionId, ending: Ending) -> Result<Vec<TaskId>> {
        let mut tasks = Vec::new();
        if !self.run(&End { session, ending }).await? {
            return Ok(tasks);
        }
        self.sessions.forget(session);
        let mut last = None;
        while let Some(batch) = self.batch_after(session, last).await? {
            tasks.extend(unless_blocked(self.run(&TakeBack(batch)).await)?);
            last = Some(batch.sequence);
        }
        Ok(tasks)
    }

    /// The next batch that a session still has; the reaper takes those that are left before.
    async fn batch_after(&self, session: SessionId, last: Option<i64>) -> Result<Option<Batch>> {
        let select = "/* grant.next */ SELECT session, sequence FROM duly.grant_log
            WHERE session = $1 AND sequence > $2 ORDER BY sequence LIMIT 1";
        let after = last.unwrap_or(i64::MIN);
        let rows = self.pool.query(select, &[&row::session_uuid(session), &after]).await?;
        rows.first().map(Batch::read).transpose()
    }
}

/// Answers whether the session is new.
impl Verb for OpenSession {
    type Answer = bool;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<bool> {
        // One that has ended stays so: an echo of its opening must not bring it back.
        let insert = "/* session.open */ INSERT INTO duly.session
                (id, node, name, tenant, types, queues, opened_at, owner)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (id) DO NOTHING";
        let node = (self.home == Home::Local).then_some(scope.store.id);
        let types: Vec<_> = self.types.iter().map(TypeName::as_str).collect();
        let queues: Vec<_> = self.queues.iter().map(QueueName::as_str).collect();
        let tenant = self.tenant.as_ref().map(TenantName::as_str);
        let (id, now) = (row::session_uuid(self.id), scope.now.millis());
        let owner = self.owner.as_deref();
        let new = scope
            .execute(insert, &[&id, &node, &self.name, &tenant, &types, &queues, &now, &owner])
            .await?;
        Ok(new > 0)
    }
}

impl Verb for Heartbeat {
    type Answer = bool;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<bool> {
        let session = row::session_uuid(self.session);
        let unstarted: Vec<_> = self.unstarted.iter().map(|task| row::uuid(*task)).collect();
        let update = "/* session.beat */ UPDATE duly.session SET beat = beat + 1, unstarted = $2,
                beat_at = $3
            WHERE id = $1 AND ended_at IS NULL";
        if scope.execute(update, &[&session, &unstarted, &scope.now.millis()]).await? == 0 {
            return Ok(false);
        }
        if !self.received.is_empty() {
            let received: Vec<_> =
                self.received.iter().map(|it| row::encode_sequence(*it)).collect();
            let update = "/* grant.receive */ UPDATE duly.grant_log SET received = true
                WHERE session = $1 AND sequence = ANY($2) AND NOT received";
            scope.execute(update, &[&session, &received]).await?;
        }
        Ok(true)
    }
}

/// Heartbeats, of this node too; answers with the sessions that have ended.
struct KeepAlive(Vec<SessionId>);

impl Verb for KeepAlive {
    type Answer = Vec<SessionId>;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<Vec<SessionId>> {
        let mut ids: Vec<_> = self.0.iter().map(|id| row::session_uuid(*id)).collect();
        ids.sort_unstable();
        let update = "/* node.beat */ UPDATE duly.node SET checked_at = $2 WHERE id = $1";
        scope.execute(update, &[&scope.store.id, &scope.now.millis()]).await?;
        let update =
            "/* session.keep_alive */ UPDATE duly.session SET beat = beat + 1, beat_at = $2
            WHERE id = ANY($1) AND ended_at IS NULL RETURNING id";
        let mut alive = Vec::new();
        for row in scope.query(update, &[&ids, &scope.now.millis()]).await? {
            alive.push(row::session_id(row.try_get::<_, Uuid>(0)?));
        }
        Ok(self.0.iter().filter(|id| !alive.contains(id)).copied().collect())
    }
}

/// Says whether a session drains. Answers whether it is open.
struct Drain {
    session: SessionId,
    draining: bool,
}

impl Verb for Drain {
    type Answer = bool;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<bool> {
        let update = "/* session.drain */ UPDATE duly.session SET draining = $2
            WHERE id = $1 AND ended_at IS NULL";
        let id = row::session_uuid(self.session);
        Ok(scope.execute(update, &[&id, &self.draining]).await? > 0)
    }

    fn audited(&self) -> Vec<Subject> {
        audited::drain(self.session, self.draining)
    }
}

/// Lets a session claim no more. Answers whether it has ended, now or before.
struct End {
    session: SessionId,
    ending: Ending,
}

impl Verb for End {
    type Answer = bool;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<bool> {
        let id = row::session_uuid(self.session);
        let (died, beat) = match self.ending {
            Ending::Closed => (false, None),
            Ending::Died { beat } => (true, Some(i64::try_from(beat).unwrap_or(-1))),
        };
        let update = "/* session.end */ UPDATE duly.session SET ended_at = $2, died = $3
            WHERE id = $1 AND ended_at IS NULL AND ($4::bigint IS NULL OR beat = $4)
            RETURNING waits_for IS NOT NULL";
        let ended = scope.query(update, &[&id, &scope.now.millis(), &died, &beat]).await?;
        let Some(row) = ended.first() else {
            let select = "/* session.has_ended */ SELECT FROM duly.session
                WHERE id = $1 AND ended_at IS NOT NULL";
            return Ok(!scope.query(select, &[&id]).await?.is_empty());
        };
        if row.try_get(0)? {
            // Other sessions have skipped the quarantined task that it waited for.
            scope.wakes.anywhere(scope.now);
        }
        let delete = "/* lease.forget_revoked */ DELETE FROM duly.revocation WHERE session = $1";
        scope.execute(delete, &[&id]).await?;
        // From now on its batches are overdue.
        let update = "/* grant.orphan */ UPDATE duly.grant_log SET deadline = 0
            WHERE session = $1 AND live > 0";
        scope.execute(update, &[&id]).await?;
        let delete = "/* grant.forget */ DELETE FROM duly.grant_log
            WHERE session = $1 AND live <= 0";
        scope.execute(delete, &[&id]).await?;
        Ok(true)
    }
}
