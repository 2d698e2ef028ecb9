//! What orders of people share: finding their tasks, and taking a task out of the due table.

use duly_core::id::TaskId;
use duly_core::name::TenantName;
use duly_core::ports::store::Controlled;
use duly_core::state::Status;
use rusqlite::{Row, params};

use super::Scope;
use crate::sqlite::error::Result;
use crate::sqlite::index::heads::Range;
use crate::sqlite::row;

/// A task that an order is about.
#[derive(Clone, Copy, Debug)]
pub(in crate::sqlite) struct Found {
    pub(in crate::sqlite) task: TaskId,
    pub(in crate::sqlite) status: Status,
    pub(in crate::sqlite) epoch: u32,
    pub(super) run: u32,
    pub(super) charged: u32,
    pub(in crate::sqlite) range: Range,
    pub(super) run_at: i64,
    /// The columns `links` and `workflow`.
    pub(in crate::sqlite) links: (Option<i64>, Option<[u8; 16]>),
}

/// Finds a tenant's task.
pub(super) fn find(scope: &Scope<'_>, tenant: &TenantName, task: TaskId) -> Result<Option<Found>> {
    let mut statement = scope.connection.prepare_cached(
        "/* control.find */ SELECT status, epoch, charged, lane, rank, run_at, run, links, workflow
         FROM task JOIN lane ON lane.id = task.lane WHERE task.id = ? AND lane.tenant = ?",
    )?;
    let mut rows = statement.query(params![task.as_bytes(), tenant.as_str()])?;
    rows.next()?.map(|row| read(row, task)).transpose()
}

/// Finds a task of any tenant.
pub(super) fn find_any(scope: &Scope<'_>, task: TaskId) -> Result<Option<Found>> {
    let mut statement = scope.connection.prepare_cached(
        "/* control.find_any */ SELECT status, epoch, charged, lane, rank, run_at, run, links, workflow
         FROM task WHERE id = ?",
    )?;
    let mut rows = statement.query([task.as_bytes()])?;
    rows.next()?.map(|row| read(row, task)).transpose()
}

fn read(row: &Row<'_>, task: TaskId) -> Result<Found> {
    Ok(Found {
        task,
        status: row::decode_status(row.get(0)?, task.as_bytes())?,
        epoch: row.get(1)?,
        charged: row.get(2)?,
        range: Range { lane: row.get(3)?, rank: row.get(4)? },
        run_at: row.get(5)?,
        run: row.get(6)?,
        links: (row.get(7)?, row.get(8)?),
    })
}

/// Carries an order out for each of a tenant's tasks.
pub(super) fn each(
    scope: &mut Scope<'_>,
    tenant: &TenantName,
    tasks: &[TaskId],
    mut order: impl FnMut(&mut Scope<'_>, &Found) -> Result<Controlled>,
) -> Result<Vec<Controlled>> {
    let mut answers = Vec::with_capacity(tasks.len());
    for task in tasks {
        answers.push(match find(scope, tenant, *task)? {
            None => Controlled::Unknown,
            Some(found) => order(scope, &found)?,
        });
    }
    Ok(answers)
}

/// Takes a waiting task out of the due table.
pub(in crate::sqlite) fn stop_waiting(scope: &mut Scope<'_>, found: &Found) -> Result<()> {
    scope
        .connection
        .prepare_cached(
            "/* control.stop_waiting */ DELETE FROM due
             WHERE lane = ? AND rank = ? AND run_at = ? AND task = ?",
        )?
        .execute(params![
            found.range.lane,
            found.range.rank,
            found.run_at,
            found.task.as_bytes()
        ])?;
    scope.index.heads.refresh(scope.connection, found.range)
}
