//! Delete: ended tasks with everything about them. Whatever removes tasks does it here.

use std::collections::BTreeMap;

use duly_core::id::TaskId;
use duly_core::name::TenantName;
use duly_core::ports::store::{Controlled, DeleteTasks, PurgeTasks};
use duly_core::state::Status;
use foldhash::HashMap;
use tokio_postgres::Row;
use uuid::Uuid;

use super::ledger::end_leases;
use super::{Scope, Verb};
use crate::postgres::error::Result;
use crate::postgres::row;

impl Verb for PurgeTasks {
    type Answer = Vec<Controlled>;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<Vec<Controlled>> {
        let failed = |ended: Ended| ended.status == Status::Failed;
        if_so(scope, &self.tenant, &self.tasks, failed).await
    }
}

impl Verb for DeleteTasks {
    type Answer = Vec<Controlled>;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<Vec<Controlled>> {
        let before = self.before.map(|before| before.millis());
        let early = |ended: Ended| {
            let early = |at: i64| before.is_none_or(|before| at < before);
            ended.status.is_terminal() && ended.at.is_some_and(early)
        };
        if_so(scope, &self.tenant, &self.tasks, early).await
    }
}

/// When a task ended, and how, if it did.
#[derive(Clone, Copy)]
struct Ended {
    status: Status,
    at: Option<i64>,
}

/// Deletes those of a tenant's tasks that may be. One that is not there is gone, which is what was
/// asked for.
async fn if_so(
    scope: &Scope<'_>,
    tenant: &TenantName,
    tasks: &[TaskId],
    may_be: impl Fn(Ended) -> bool,
) -> Result<Vec<Controlled>> {
    let select = "/* delete.lock */ SELECT task.id, task.status, task.finished_at
        FROM duly.task JOIN duly.lane ON lane.id = task.lane
        WHERE task.id = ANY($1) AND lane.tenant = $2 ORDER BY task.id FOR UPDATE OF task";
    let ids: Vec<_> = tasks.iter().map(|task| row::uuid(*task)).collect();
    let mut found: HashMap<Uuid, Ended> = HashMap::default();
    for row in scope.query(select, &[&ids, &tenant.as_str()]).await? {
        let id = row.try_get(0)?;
        let status = row::decode_status(row.try_get(1)?, id)?;
        found.insert(id, Ended { status, at: row.try_get(2)? });
    }
    let mut doomed: Vec<_> =
        found.iter().filter(|(_, ended)| may_be(**ended)).map(|(id, _)| *id).collect();
    doomed.sort_unstable();
    delete(scope, &doomed).await?;
    let answer = |id| match found.get(id) {
        Some(ended) if !may_be(*ended) => Controlled::Conflict { status: ended.status },
        _ => Controlled::Done,
    };
    Ok(ids.iter().map(answer).collect())
}

/// What goes with tasks, one statement per table. A table that holds something about tasks has its
/// line here, unless a row of it may outlive its task, as idempotency keys may.
const BESIDES: [&str; 4] = [
    "/* delete.dead_letters */ DELETE FROM duly.dlq WHERE task = ANY($1)",
    "/* delete.attempts */ DELETE FROM duly.attempt WHERE task = ANY($1)",
    "/* delete.progress */ DELETE FROM duly.progress WHERE task = ANY($1)",
    "/* delete.logs */ DELETE FROM duly.log WHERE task = ANY($1)",
];

/// Deletes tasks that have ended and are locked, in the order of their ids; how many there were.
pub(super) async fn delete(scope: &Scope<'_>, tasks: &[Uuid]) -> Result<u64> {
    if tasks.is_empty() {
        return Ok(0);
    }
    let delete = "/* delete */ DELETE FROM duly.task WHERE id = ANY($1) AND status IN (3, 4, 5)
        RETURNING CASE WHEN sequence < 0 THEN session END, ~sequence";
    let deleted = scope.query(delete, &[&tasks]).await?;
    assert_eq!(deleted.len(), tasks.len(), "locked tasks stay as they were read");
    tell(scope, &deleted).await?;
    for statement in BESIDES {
        scope.execute(statement, &[&tasks]).await?;
    }
    Ok(deleted.len() as u64)
}

/// Leases that have ended in transactions of their handlers: nobody else tells their batches now.
async fn tell(scope: &Scope<'_>, deleted: &[Row]) -> Result<()> {
    let mut batches: BTreeMap<(Uuid, i64), i32> = BTreeMap::new();
    for row in deleted {
        if let Some(session) = row.try_get(0)? {
            *batches.entry((session, row.try_get(1)?)).or_default() += 1;
        }
    }
    end_leases(scope, batches, true).await
}

/// The same for a range of ids whose tasks went with their partition.
pub(in crate::postgres) const BESIDES_RANGE: [&str; 4] = [
    "/* drop_day.dead_letters */ DELETE FROM duly.dlq WHERE task >= $1 AND task < $2",
    "/* drop_day.attempts */ DELETE FROM duly.attempt WHERE task >= $1 AND task < $2",
    "/* drop_day.progress */ DELETE FROM duly.progress WHERE task >= $1 AND task < $2",
    "/* drop_day.logs */ DELETE FROM duly.log WHERE task >= $1 AND task < $2",
];
