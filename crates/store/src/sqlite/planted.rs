//! The planted bugs of the embedded store.

use std::sync::{Arc, OnceLock};

use duly_core::id::{ScheduleId, SessionId, TaskId};
use duly_core::lease::{Finish, Lease};
use duly_core::ports::store::{OpenedSession, SlotOrder};
use duly_core::schedule::slot_task_id;
use duly_core::state::Status;
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, params};

use super::error::Result;
use super::index::grants::{Batch, Granted};
use super::index::heads::Range;
use super::index::sessions::opened;
use super::task_state::Held;
use super::task_state::granted::granted_again;
use super::task_state::settled::{EndedLinked, Resolved};
use super::verb::Scope;
use crate::planted::PlantedBug;

/// The one that is switched on, if any.
pub(super) type Planted = Arc<OnceLock<PlantedBug>>;

/// [`PlantedBug::FinishWithoutEpoch`]: the outcome as its task's holder would send it.
pub(super) fn forge(scope: &Scope<'_>, item: &Finish) -> Result<Option<(SessionId, Finish)>> {
    if scope.bug != Some(PlantedBug::FinishWithoutEpoch) {
        return Ok(None);
    }
    let mut holder = scope
        .connection
        .prepare_cached("SELECT epoch, session FROM task WHERE id = ? AND status = 2")?;
    let held = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let held = holder.query_row([item.task.as_bytes()], held).optional()?;
    let forged = |epoch| Finish { epoch, ..item.clone() };
    Ok(held.map(|(epoch, session)| (SessionId::from_bytes(session), forged(epoch))))
}

/// [`PlantedBug::ReapById`]: what others hold of the tasks that this session once failed.
pub(super) fn inherited(
    scope: &Scope<'_>,
    session: SessionId,
) -> Result<Vec<(SessionId, Granted)>> {
    if scope.bug != Some(PlantedBug::ReapById) {
        return Ok(Vec::new());
    }
    let mut statement = scope.connection.prepare_cached(
        "SELECT DISTINCT task.session, task.id, task.epoch FROM task
         JOIN attempt ON attempt.task = task.id
         WHERE attempt.session = ?1 AND task.status = 2 AND task.session <> ?1",
    )?;
    let leases = statement.query_map([session.as_bytes()], |row| {
        let lease = Granted { task: TaskId::from_bytes(row.get(1)?), epoch: row.get(2)? };
        Ok((SessionId::from_bytes(row.get(0)?), lease))
    })?;
    Ok(leases.collect::<rusqlite::Result<_>>()?)
}

/// [`PlantedBug::EpochResetOnRetry`]: a task that waits again forgets its last grant.
pub(super) fn reset_epoch(scope: &Scope<'_>, task: TaskId) -> Result<()> {
    if scope.bug == Some(PlantedBug::EpochResetOnRetry) {
        let reset = "UPDATE task SET epoch = epoch - 1 WHERE id = ? AND status = 1";
        scope.connection.prepare_cached(reset)?.execute([task.as_bytes()])?;
    }
    Ok(())
}

/// [`PlantedBug::BeatAfterEnd`]: a session that died is open again, with the leases it died with.
pub(super) fn resurrect(scope: &mut Scope<'_>, session: SessionId) -> Result<()> {
    let gone = scope.index.sessions.get(session).is_none();
    if scope.bug != Some(PlantedBug::BeatAfterEnd) || !gone {
        return Ok(());
    }
    let open = "UPDATE session SET ended_at = NULL WHERE id = ? AND home = 1";
    if scope.connection.execute(open, [session.as_bytes()])? == 0 {
        return Ok(());
    }
    let (leases, mut granted) = (lost(scope.connection, session)?, Vec::new());
    for (lease, range, run_at) in leases {
        scope.index.grants.end(scope.connection, lease.task)?;
        let due = "DELETE FROM due WHERE lane = ? AND rank = ? AND run_at = ? AND task = ?";
        let key = params![range.lane, range.rank, run_at, lease.task.as_bytes()];
        scope.connection.execute(due, key)?;
        scope.index.heads.refresh(scope.connection, range)?;
        granted_again(scope, Held { session, lease })?;
        granted.push(lease);
    }
    if !granted.is_empty() {
        // Claims count from 1, so this number is free.
        let batch = Batch { session, sequence: 0 };
        let granted = (granted, i64::MAX);
        scope.index.grants.add(scope.connection, batch, scope.now.millis(), granted)?;
    }
    let now = scope.now;
    scope.index.load(scope.connection, now)
}

/// [`PlantedBug::BeatAfterEnd`]: sessions that died lately and are listed all the same, or no server
/// would take their beats.
pub(super) fn ghosts(scope: &Scope<'_>) -> Result<Vec<OpenedSession>> {
    if scope.bug != Some(PlantedBug::BeatAfterEnd) {
        return Ok(Vec::new());
    }
    let mut statement = scope.connection.prepare(
        "SELECT id, name, tenant, types, queues, owner FROM session
         WHERE home = 1 AND ended_at > ? - 60000",
    )?;
    let mut rows = statement.query([scope.now.millis()])?;
    let mut ghosts = Vec::new();
    while let Some(row) = rows.next()? {
        ghosts.push(OpenedSession { opened: opened(row)?, beat: 0, draining: false });
    }
    Ok(ghosts)
}

/// The leases that a session has lost and that were not finished since.
fn lost(connection: &Connection, session: SessionId) -> Result<Vec<(Granted, Range, i64)>> {
    let mut statement = connection.prepare(
        "SELECT task.id, max(attempt.epoch), lane, rank, run_at FROM attempt
         JOIN task ON task.id = attempt.task AND task.run = attempt.run
         WHERE attempt.session = ? AND task.status IN (1, 2)
           AND attempt.error LIKE '%WORKER_LOST%'
         GROUP BY task.id",
    )?;
    let leases = statement.query_map([session.as_bytes()], |row| {
        let lease = Granted { task: TaskId::from_bytes(row.get(0)?), epoch: row.get(1)? };
        Ok((lease, Range { lane: row.get(2)?, rank: row.get(3)? }, row.get(4)?))
    })?;
    Ok(leases.collect::<rusqlite::Result<_>>()?)
}

/// [`PlantedBug::SwallowDiskFull`]: whether this failure of a commit is not to be told.
pub(super) fn swallows(planted: &Planted, error: &rusqlite::Error) -> bool {
    planted.get() == Some(&PlantedBug::SwallowDiskFull)
        && error.sqlite_error_code() == Some(ErrorCode::DiskFull)
}

/// [`PlantedBug::CountParentsOnce`]: how many edges to a child were satisfied.
pub(super) fn count_once(scope: &Scope<'_>, resolved: Resolved) -> Resolved {
    match scope.bug {
        Some(PlantedBug::CountParentsOnce) => {
            Resolved { satisfied: resolved.satisfied.min(1), ..resolved }
        }
        _ => resolved,
    }
}

/// [`PlantedBug::ReleaseBeforeCommit`]: the leases count as successes for the tasks' children.
pub(super) fn release_children(scope: &mut Scope<'_>, leases: &[Lease]) {
    if scope.bug == Some(PlantedBug::ReleaseBeforeCommit) {
        scope.ended.extend(leases.iter().map(|lease| EndedLinked {
            task: lease.task,
            status: Status::Success,
            has_children: true,
            workflow: None,
        }));
    }
}

/// [`PlantedBug::SlotIdWithoutGeneration`]: the task has the id that it has in every generation.
pub(super) fn same_id(scope: &Scope<'_>, schedule: ScheduleId, order: &SlotOrder) -> SlotOrder {
    let mut order = order.clone();
    if let (Some(PlantedBug::SlotIdWithoutGeneration), SlotOrder::Task(task)) =
        (scope.bug, &mut order)
    {
        task.id = slot_task_id(schedule, 0, task.run_at, task.run_at);
    }
    order
}
