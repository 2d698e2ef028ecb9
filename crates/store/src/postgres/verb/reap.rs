//! Reap: take back leases that are overdue or unacknowledged, batch by batch.

use duly_core::ports::store::{Reap, Reaped};
use duly_core::ports::work_source::{TakenBack, Why};
use duly_core::task::Failure;

use super::finish::retry;
use super::take_back::{Batch, Reason, TakeBack, take_back};
use super::{Scope, Verb};
use crate::postgres::PostgresStore;
use crate::postgres::error::Result;
use crate::postgres::row;
use crate::postgres::task_state::changes::Changes;
use crate::postgres::task_state::state::TaskState;

/// Batches that one call looks at.
const BATCHES: i64 = 1_000;

type Taken = Vec<(duly_core::id::SessionId, TakenBack)>;

impl PostgresStore {
    pub(super) async fn reap_all(&self, reap: &Reap) -> Result<Reaped> {
        let mut reaped = Reaped::default();
        for (batch, orphaned) in self.overdue().await? {
            let taken = self.take_overdue(batch, orphaned, reap.entropy).await;
            reaped.taken_back.extend(unless_blocked(taken)?);
        }
        let before = reap.unacknowledged_before.millis();
        for batch in self.unacknowledged(before).await? {
            let taken = self.run(&Release { batch, before }).await;
            reaped.taken_back.extend(unless_blocked(taken)?);
        }
        reaped.next_deadline = self.next_deadline().await?.map(row::instant);
        Ok(reaped)
    }

    async fn take_overdue(&self, batch: Batch, orphaned: bool, entropy: u64) -> Result<Taken> {
        if orphaned {
            // The node died before it had taken back everything.
            self.run(&TakeBack(batch)).await?;
            return Ok(Vec::new());
        }
        self.run(&TimeOut { batch, entropy }).await
    }

    /// Batches with leases that may be overdue, each with whether its session has ended.
    async fn overdue(&self) -> Result<Vec<(Batch, bool)>> {
        let select = "/* reap.overdue */ SELECT g.session, g.sequence,
                s.id IS NULL OR s.ended_at IS NOT NULL
            FROM duly.grant_log g LEFT JOIN duly.session s ON s.id = g.session
            WHERE g.deadline <= duly.now() ORDER BY g.deadline LIMIT $1";
        let rows = self.pool.query(select, &[&BATCHES]).await?;
        rows.iter().map(|row| Ok((Batch::read(row)?, row.try_get(2)?))).collect()
    }

    /// Batches that their sessions have not acknowledged.
    async fn unacknowledged(&self, before: i64) -> Result<Vec<Batch>> {
        let select = format!(
            "/* reap.unacknowledged */ SELECT g.session, g.sequence {UNACKNOWLEDGED} LIMIT {BATCHES}"
        );
        self.pool.query(&select, &[&before]).await?.iter().map(Batch::read).collect()
    }

    /// When to look for overdue leases next.
    async fn next_deadline(&self) -> Result<Option<i64>> {
        let select = "/* reap.next */ SELECT deadline FROM duly.grant_log
            WHERE deadline < 9223372036854775807 ORDER BY deadline LIMIT 1";
        let rows = self.pool.query(select, &[]).await?;
        Ok(rows.first().map(|row| row.try_get(0)).transpose()?)
    }
}

/// A handler is about to finish in its own transaction; the other batches do not wait for it.
pub(super) fn unless_blocked<T: Default>(taken: Result<T>) -> Result<T> {
    match taken {
        Err(fault) if fault.is_blocked() => {
            tracing::debug!(%fault, "leases are left for later");
            Ok(T::default())
        }
        taken => taken,
    }
}

/// Ends the leases of a batch that are late, each as a failed attempt; the batch is looked at again
/// when the next one is.
struct TimeOut {
    batch: Batch,
    entropy: u64,
}

impl Verb for TimeOut {
    type Answer = Taken;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<Taken> {
        let (mut changes, mut taken, mut next) = (Changes::default(), Vec::new(), i64::MAX);
        for mut state in self.batch.lock(scope).await? {
            if state.deadline() > scope.now.millis() {
                next = next.min(state.deadline());
                continue;
            }
            taken.push(taken_back(self.batch, &state));
            changes.end_lease(&state, false);
            let policy = state.policy().unwrap_or_default();
            let task = row::task_id(state.id);
            let wait = policy.wait_for(task, state.charged + 1, self.entropy);
            let run_at = scope.now.plus(wait).millis();
            changes.record_attempt(&state, &Failure::overdue());
            state.session = None;
            retry(scope, &mut state, &Failure::overdue(), run_at, &mut changes);
        }
        changes.write(scope).await?;
        // Unless its session has ended meanwhile, or has got something else under this number.
        let update = "/* reap.look_again */ UPDATE duly.grant_log SET deadline = $3
            WHERE session = $1 AND sequence = $2 AND deadline > 0 AND deadline <= $4";
        let session = row::session_uuid(self.batch.session);
        let now = scope.now.millis();
        scope.execute(update, &[&session, &self.batch.sequence, &next, &now]).await?;
        Ok(taken)
    }
}

/// Only the newest batch of a remote session can be unacknowledged: the next claim acknowledges the one
/// before.
const UNACKNOWLEDGED: &str = "FROM duly.grant_log g
    JOIN duly.session s ON s.id = g.session AND s.newest <= g.sequence
    WHERE NOT g.received AND g.served_at < $1 AND g.live > 0
      AND NOT EXISTS (SELECT FROM duly.grant_log later
                      WHERE later.session = g.session AND later.sequence > g.sequence)
      AND s.ended_at IS NULL AND s.node IS NULL";

/// Releases a batch if it is still unacknowledged.
struct Release {
    batch: Batch,
    before: i64,
}

impl Verb for Release {
    type Answer = Taken;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<Taken> {
        let session = row::session_uuid(self.batch.session);
        // No claim of the session can come between. One that was faster is seen by the statement
        // after this one, and not by this one itself, which began before.
        let lock = "/* reap.hold */ SELECT FROM duly.session WHERE id = $1 FOR NO KEY UPDATE";
        scope.query(lock, &[&session]).await?;
        let select = format!(
            "/* reap.release */ SELECT {UNACKNOWLEDGED} AND g.session = $2 AND g.sequence = $3"
        );
        let key = [&self.before as _, &session as _, &self.batch.sequence as _];
        if scope.query(&select, &key).await?.is_empty() {
            return Ok(Vec::new());
        }
        let (mut changes, mut taken) = (Changes::default(), Vec::new());
        for mut state in self.batch.lock(scope).await? {
            taken.push(taken_back(self.batch, &state));
            take_back(scope, &mut state, Reason::Release, u32::MAX, &mut changes);
        }
        changes.write(scope).await?;
        Ok(taken)
    }
}

fn taken_back(batch: Batch, state: &TaskState) -> (duly_core::id::SessionId, TakenBack) {
    let epoch = state.epoch.unsigned_abs();
    (batch.session, TakenBack { task: row::task_id(state.id), epoch, why: Why::Lost })
}
