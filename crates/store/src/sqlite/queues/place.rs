//! Where a task stands in its queue.

use duly_core::id::TaskId;
use duly_core::limits::{AGEING_PER_LEVEL, COUNT_ROWS};
use duly_core::name::{Lane, TenantName};
use duly_core::ports::store::QueuePosition;
use duly_core::state::Status;
use duly_core::task::claim_order;
use duly_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::count::{Count, ranges};
use super::{Lanes, paused};
use crate::sqlite::error::Result;
use crate::sqlite::index::lanes::LaneId;
use crate::sqlite::reader;

pub(super) fn place(
    connection: &Connection,
    tenant: &TenantName,
    id: TaskId,
    now: Timestamp,
) -> Result<Option<QueuePosition>> {
    let Some(task) = reader::get(connection, tenant, id)? else { return Ok(None) };
    if task.status != Status::Pending {
        return Ok(None);
    }
    let own = claim_order(task.run_at, task.priority);
    let ageing = i64::try_from(AGEING_PER_LEVEL.as_millis()).unwrap_or(i64::MAX);
    let lanes = Lanes::of(connection, tenant, &task.lane.queue)?;
    let own_lane = lane(connection, &task.lane)?;
    let others = lanes.ids.iter().copied().filter(|lane| Some(*lane) != own_lane);
    let mut ahead = Count::to(COUNT_ROWS);
    for lane in own_lane.into_iter().chain(others) {
        if ahead.is_full() {
            break;
        }
        for (range, _) in ranges(connection, lane)? {
            let Some(priority) = range.priority() else { continue };
            // A task of this level stands at the same place if it has this run time.
            let alike = own.saturating_add(i64::from(priority.level()) * ageing);
            let before = params![range.lane, range.rank, now.millis(), alike, id.as_bytes()];
            let rows =
                "due WHERE lane = ? AND rank = ? AND run_at <= ? AND (run_at, task) < (?, ?)";
            ahead.add(connection, rows, before)?;
        }
    }
    let paused = paused(connection, tenant, &task.lane.queue)?;
    Ok(Some(QueuePosition { paused, ahead: ahead.counted(lanes.more) }))
}

fn lane(connection: &Connection, lane: &Lane) -> Result<Option<LaneId>> {
    let mut statement = connection.prepare_cached(
        "/* queue.lane */ SELECT id FROM lane WHERE tenant = ? AND queue = ? AND type = ?",
    )?;
    let key = [lane.tenant.as_str(), lane.queue.as_str(), lane.task_type.as_str()];
    Ok(statement.query_row(key, |row| row.get(0)).optional()?)
}
