//! Tasks that wait or run, where they are few among many: found through the due index and through
//! the batches of leases, instead of by a look at every task.

use std::ops::Range;

use duly_core::id::{SessionId, TaskId};
use duly_core::ports::store::ListTasks;
use duly_core::state::Status;
use rusqlite::{Connection, named_params, params};

use crate::sqlite::error::Result;
use crate::sqlite::index::grants;

/// Of more than these, some are soon found among all tasks; to look up each would take longer.
const FEW: usize = 5_000;
/// Lanes that are asked for what waits in them.
const FEW_LANES: usize = 1_000;

/// The tasks of this range that a list can hold, newest id first, and perhaps some that it cannot.
/// Nothing if it asks for other states, or if there are too many.
pub(super) fn newest_first(
    connection: &Connection,
    page: &ListTasks,
    range: &Range<TaskId>,
) -> Result<Option<Vec<TaskId>>> {
    let statuses = &page.filter.statuses;
    let is_kept =
        |status: &Status| matches!(status, Status::Blocked | Status::Pending | Status::Running);
    if statuses.is_empty() || !statuses.iter().all(is_kept) {
        return Ok(None);
    }
    let mut ids = Vec::new();
    let (pending, blocked) =
        (statuses.contains(&Status::Pending), statuses.contains(&Status::Blocked));
    let found_all = (!pending || waiting(connection, page, WAITING, &mut ids)?)
        && (!blocked || waiting(connection, page, BLOCKED, &mut ids)?)
        && (!statuses.contains(&Status::Running) || leased(connection, &mut ids)?);
    if !found_all {
        return Ok(None);
    }
    ids.retain(|id| range.contains(id));
    ids.sort_unstable_by(|a, b| b.cmp(a));
    // What was leased in an earlier batch may wait again or be leased in a later one.
    ids.dedup();
    Ok(Some(ids))
}

/// Adds what waits in the lanes asked for; answers whether that is all.
fn waiting(
    connection: &Connection,
    page: &ListTasks,
    text: &str,
    ids: &mut Vec<TaskId>,
) -> Result<bool> {
    let lanes = lanes(connection, page)?;
    if lanes.len() > FEW_LANES {
        return Ok(false);
    }
    let mut statement = connection.prepare_cached(text)?;
    for lane in lanes {
        let room = FEW + 1 - ids.len();
        let mut rows = statement.query(params![lane, room])?;
        while let Some(row) = rows.next()? {
            ids.push(TaskId::from_bytes(row.get(0)?));
        }
        if ids.len() > FEW {
            return Ok(false);
        }
    }
    Ok(true)
}

pub(super) const WAITING: &str = "/* due.few */ SELECT task FROM due WHERE lane = ? LIMIT ?";

pub(super) const BLOCKED: &str =
    "/* blocked.few */ SELECT task FROM blocked WHERE lane = ? LIMIT ?";

pub(super) const LANES: &str = "/* lane.few */ SELECT id FROM lane WHERE tenant = :tenant
    AND (:queue IS NULL OR queue = :queue) AND (:type IS NULL OR type = :type) LIMIT :limit";

fn lanes(connection: &Connection, page: &ListTasks) -> Result<Vec<i64>> {
    let ListTasks { tenant, filter, .. } = page;
    let mut statement = connection.prepare_cached(LANES)?;
    let mut rows = statement.query(named_params! {
        ":tenant": tenant.as_str(),
        ":queue": filter.queue.as_ref().map(|queue| queue.as_str()),
        ":type": filter.task_type.as_ref().map(|name| name.as_str()),
        ":limit": FEW_LANES + 1,
    })?;
    let mut lanes = Vec::new();
    while let Some(row) = rows.next()? {
        lanes.push(row.get(0)?);
    }
    Ok(lanes)
}

/// Adds what was leased, also what has ended since; answers whether that is all.
fn leased(connection: &Connection, ids: &mut Vec<TaskId>) -> Result<bool> {
    let text = "/* grant.few */ SELECT session, leases FROM grant_log";
    let mut statement = connection.prepare_cached(text)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let session = SessionId::from_bytes(row.get(0)?);
        match grants::unpack(session, row.get_ref(1)?.as_blob().unwrap_or_default()) {
            Ok(granted) => ids.extend(granted.iter().map(|lease| lease.task)),
            // One damaged row must not hide the others.
            Err(fault) => tracing::error!(%fault, "a batch of leases cannot be read"),
        }
        if ids.len() > FEW {
            return Ok(false);
        }
    }
    Ok(true)
}
