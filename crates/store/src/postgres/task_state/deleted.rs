//! Hook `deleted`: ended tasks go with all rows about them, by their ids or as a whole day.

use std::collections::BTreeSet;

use deadpool_postgres::{GenericClient as _, Transaction};
use duly_core::event::EventKind;
use foldhash::{HashMap, HashSet};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::leases::{Batches, end_batches};
use crate::postgres::days::{self, Day};
use crate::postgres::error::Result;
use crate::postgres::outbox::ToldTask;
use crate::postgres::partitions;
use crate::postgres::verb::Scope;

/// Other tables with rows about tasks, each with how they are deleted by id and by day. A table that holds
/// something about tasks has its line here, unless a row of it may outlive its task, as idempotency keys
/// may.
const OTHER_TABLES: [(&str, &str); 7] = [
    (
        "/* delete.dead_letters */ DELETE FROM duly.dlq WHERE task = ANY($1)",
        "/* drop_day.dead_letters */ DELETE FROM duly.dlq WHERE task >= $1 AND task < $2",
    ),
    (
        "/* delete.attempts */ DELETE FROM duly.attempt WHERE task = ANY($1)",
        "/* drop_day.attempts */ DELETE FROM duly.attempt WHERE task >= $1 AND task < $2",
    ),
    (
        "/* delete.progress */ DELETE FROM duly.progress WHERE task = ANY($1)",
        "/* drop_day.progress */ DELETE FROM duly.progress WHERE task >= $1 AND task < $2",
    ),
    (
        "/* delete.logs */ DELETE FROM duly.log WHERE task = ANY($1)",
        "/* drop_day.logs */ DELETE FROM duly.log WHERE task >= $1 AND task < $2",
    ),
    (
        "/* delete.edges_from */ DELETE FROM duly.edge WHERE parent = ANY($1)",
        "/* drop_day.edges_from */ DELETE FROM duly.edge WHERE parent >= $1 AND parent < $2",
    ),
    (
        "/* delete.edges_to */ DELETE FROM duly.edge WHERE child = ANY($1)",
        "/* drop_day.edges_to */ DELETE FROM duly.edge WHERE child >= $1 AND child < $2",
    ),
    (
        "/* delete.doomed */ DELETE FROM duly.doomed WHERE child = ANY($1)",
        "/* drop_day.doomed */ DELETE FROM duly.doomed WHERE child >= $1 AND child < $2",
    ),
];

/// Deletes tasks that have ended and are locked, in the order of their ids; answers how many.
pub(in crate::postgres) async fn delete_tasks(
    scope: &mut Scope<'_>,
    tasks: &[Uuid],
) -> Result<u64> {
    if tasks.is_empty() {
        return Ok(0);
    }
    let delete = "/* delete */ DELETE FROM duly.task WHERE id = ANY($1) AND status IN (3, 4, 5)
        RETURNING CASE WHEN sequence < 0 THEN session END, ~sequence, workflow, id, lane, run, epoch";
    let deleted = scope.query(delete, &[&tasks]).await?;
    assert_eq!(deleted.len(), tasks.len(), "locked tasks stay as they were read");
    // No worker will acknowledge leases that their handlers' transactions have ended.
    let (mut batches, mut workflows) = (Batches::new(), BTreeSet::new());
    for row in &deleted {
        if let Some(session) = row.try_get(0)? {
            *batches.entry((session, row.try_get(1)?)).or_default() += 1;
        }
        workflows.extend(row.try_get::<_, Option<Uuid>>(2)?);
        let (id, lane) = (row.try_get(3)?, row.try_get(4)?);
        let told = ToldTask { id, lane, run: row.try_get(5)?, epoch: row.try_get(6)? };
        scope.told.tell(EventKind::TaskDeleted, told);
    }
    end_batches(scope, batches, true).await?;
    let by_id = "/* delete.members */ DELETE FROM duly.member m
        USING unnest($1::uuid[]) w(id), unnest($2::uuid[]) t(id)
        WHERE m.workflow = w.id AND m.task = t.id";
    leave_workflows(scope.transaction(), workflows, by_id, &[&tasks]).await?;
    for (by_id, _) in OTHER_TABLES {
        scope.execute(by_id, &[&tasks]).await?;
    }
    Ok(deleted.len() as u64)
}

/// Drops the partition of a day, of which the caller knows that all tasks may go, and that no sink wants to
/// be told of each. The caller holds the day's lock.
pub(in crate::postgres) async fn drop_day(transaction: &Transaction<'_>, day: Day) -> Result<()> {
    let ids = day.ids();
    let select = format!(
        "/* drop_day.workflows */ SELECT DISTINCT workflow FROM {} WHERE workflow IS NOT NULL",
        day.table()
    );
    let mut workflows = BTreeSet::new();
    for row in transaction.query(&select, &[]).await? {
        workflows.insert(row.try_get(0)?);
    }
    let by_day = "/* drop_day.members */ DELETE FROM duly.member
        WHERE workflow = ANY($1) AND task >= $2 AND task < $3";
    leave_workflows(transaction, workflows, by_day, &[&ids.start, &ids.end]).await?;
    for (_, by_day) in OTHER_TABLES {
        transaction.execute(by_day, &[&ids.start, &ids.end]).await?;
    }
    let drop = "/* sweep.drop_day */ SELECT duly.drop_day($1)";
    transaction.execute(drop, &[&partitions::day(day.start)]).await?;
    Ok(())
}

/// Deletes members of workflows, and the workflows that have none left. `delete` takes the workflows first.
async fn leave_workflows(
    transaction: &Transaction<'_>,
    workflows: BTreeSet<Uuid>,
    delete: &str,
    which: &[&(dyn ToSql + Sync)],
) -> Result<()> {
    if workflows.is_empty() {
        return Ok(());
    }
    let workflows: Vec<_> = workflows.into_iter().collect();
    // Another transaction may delete the other members: one of the two is the last.
    let lock = "/* delete.workflows_lock */ SELECT FROM duly.workflow WHERE id = ANY($1)
        ORDER BY id FOR UPDATE";
    transaction.execute(lock, &[&workflows]).await?;
    let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&workflows];
    parameters.extend(which);
    transaction.execute(delete, &parameters).await?;
    let forget = "/* delete.workflows */ DELETE FROM duly.workflow w WHERE w.id = ANY($1)
        AND NOT EXISTS (SELECT FROM duly.member m WHERE m.workflow = w.id)";
    transaction.execute(forget, &[&workflows]).await?;
    Ok(())
}

/// Those of these tasks on which others depend that have not ended. They are locked, so that no more
/// depend on them.
pub(in crate::postgres) async fn with_open_children(
    scope: &Scope<'_>,
    parents: Vec<Uuid>,
) -> Result<HashSet<Uuid>> {
    let mut needed = HashSet::default();
    if parents.is_empty() {
        return Ok(needed);
    }
    let select = "/* delete.children */ SELECT parent, child FROM duly.edge WHERE parent = ANY($1)";
    let mut children = HashMap::<Uuid, Vec<Uuid>>::default();
    for row in scope.query(select, &[&parents]).await? {
        children.entry(row.try_get(1)?).or_default().push(row.try_get(0)?);
    }
    let select = "/* delete.open_children */ SELECT id FROM duly.task
        WHERE id = ANY($1) AND status IN (0, 1, 2)";
    for part in days::apart(children.keys().copied()) {
        for row in scope.query(select, &[&part]).await? {
            needed.extend(&children[&row.try_get::<_, Uuid>(0)?]);
        }
    }
    Ok(needed)
}

/// Whether tasks of other days that have not ended depend on tasks of this one. Takes its ids.
pub(in crate::postgres) const IS_NEEDED: &str = "/* drop_day.is_needed */ SELECT FROM duly.edge e
    JOIN duly.task t ON t.id = e.child
    WHERE e.parent >= $1 AND e.parent < $2 AND NOT (e.child >= $1 AND e.child < $2)
      AND t.status IN (0, 1, 2) LIMIT 1";
