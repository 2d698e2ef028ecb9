//! Queries on the dead-letter queue.

use duly_core::error_group::ErrorGroup;
use duly_core::id::TaskId;
use duly_core::name::{QueueName, TypeName};
use duly_core::ports::store::{DeadGroup, DeadList, DeadPlace, GroupDead, ListDead};
use duly_core::state::Status;
use duly_core::time::Timestamp;
use rusqlite::{Connection, Row, named_params};

use super::error::{Fault, Result};
use super::filter::{self, DEAD_VERDICT};
use super::page::{self, Page};
use super::row;

/// All dead letters of the file, last failure first. One upper bound and not two (a cursor and a
/// time), since the planner would pick one of them, perhaps that of the first page.
pub(super) fn newest() -> String {
    format!(
        "/* dlq.list */ SELECT dlq.task, {DEAD_VERDICT}, failed_at
         FROM dlq LEFT JOIN lane ON lane.id = dlq.lane
         WHERE failed_at >= :since AND (failed_at, dlq.task) < (:failed_at, :task)
         ORDER BY failed_at DESC, dlq.task DESC"
    )
}

/// A tenant's dead letters by lane and group. Counts need every row, so this has no bound but
/// the number of dead letters.
pub(super) fn counted() -> String {
    format!(
        "/* dlq.groups */ SELECT lane.queue, lane.type, error_group, count(*), min(failed_at),
                max(failed_at), dlq.lane
         FROM lane CROSS JOIN dlq
         WHERE lane.tenant = :tenant AND dlq.lane = lane.id
           AND failed_at >= :since AND failed_at < :until AND ({DEAD_VERDICT}) = 2
         GROUP BY dlq.lane, error_group
         ORDER BY count(*) DESC, max(failed_at) DESC LIMIT :limit"
    )
}

/// The newest of a group that the filter lets through.
pub(super) fn sample() -> String {
    format!(
        "/* dlq.sample */ SELECT dlq.task, task.error
         FROM dlq CROSS JOIN lane ON lane.id = dlq.lane CROSS JOIN task ON task.id = dlq.task
         WHERE dlq.lane = :lane AND error_group = :of AND failed_at = :last
           AND ({DEAD_VERDICT}) = 2
         ORDER BY dlq.task DESC LIMIT 1"
    )
}

pub(super) fn list(connection: &Connection, page: &ListDead) -> Result<DeadList> {
    let Page { tasks, next_before, scanned, partial } = find(connection, page)?;
    Ok(DeadList { tasks, next_before, scanned, partial })
}

fn find(connection: &Connection, page: &ListDead) -> Result<Page<DeadPlace>> {
    let ListDead { tenant, filter, before, limit } = page;
    if !filter.allows(Status::Failed) || !filter::has_lane(connection, tenant, filter)? {
        return Ok(Page::empty());
    }
    let end = |until| DeadPlace { failed_at: until, task: TaskId::from_bytes([0; 16]) };
    let end = filter.until.map(end);
    let below = [*before, end].into_iter().flatten().min();
    let mut statement = connection.prepare_cached(&newest())?;
    filter::bind(&mut statement, tenant, filter)?;
    let range = named_params! {
        ":since": filter.since.map_or(i64::MIN, Timestamp::millis),
        ":failed_at": below.map_or(i64::MAX, |below| below.failed_at.millis()),
        ":task": below.map_or([0xff; 16], |below| *below.task.as_bytes()),
    };
    filter::put(&mut statement, range)?;
    page::fill(connection, tenant, *limit, statement.raw_query(), |row, task| {
        Ok(DeadPlace { failed_at: Timestamp::clamped(row.get(2)?), task })
    })
}

pub(super) fn groups(connection: &Connection, which: &GroupDead) -> Result<Vec<DeadGroup>> {
    let GroupDead { tenant, filter, limit } = which;
    if !filter.allows(Status::Failed) {
        return Ok(Vec::new());
    }
    let mut statement = connection.prepare_cached(&counted())?;
    filter::bind(&mut statement, tenant, filter)?;
    let range = named_params! {
        ":since": filter.since.map_or(i64::MIN, Timestamp::millis),
        ":until": filter.until.map_or(i64::MAX, Timestamp::millis),
        ":limit": limit,
    };
    filter::put(&mut statement, range)?;
    let mut rows = statement.raw_query();
    let mut groups = Vec::new();
    while let Some(row) = rows.next()? {
        match group_of(connection, which, row) {
            Ok(group) => groups.push(group),
            // One damaged row must not hide the others.
            Err(fault) if fault.is_bad_row() => tracing::error!(%fault, "a group cannot be shown"),
            Err(fault) => return Err(fault),
        }
    }
    Ok(groups)
}

fn group_of(connection: &Connection, which: &GroupDead, row: &Row<'_>) -> Result<DeadGroup> {
    let lane: i64 = row.get(6)?;
    let damaged = |column| Fault::Corrupt { table: "lane", column, id: lane.to_string() };
    let (bits, last): (i64, i64) = (row.get(2)?, row.get(5)?);
    let mut newest = connection.prepare_cached(&sample())?;
    filter::bind(&mut newest, &which.tenant, &which.filter)?;
    filter::put(&mut newest, named_params! { ":lane": lane, ":of": bits, ":last": last })?;
    let mut newest = newest.raw_query();
    // Both statements read the same moment, so what was counted is there, unless it is damaged.
    let missing = || Fault::Corrupt { table: "dlq", column: "task", id: lane.to_string() };
    let found = newest.next()?.ok_or_else(missing)?;
    let sample: [u8; 16] = found.get(0)?;
    Ok(DeadGroup {
        group: ErrorGroup::from_bits(bits),
        queue: QueueName::new(&row.get::<_, String>(0)?).map_err(|_| damaged("queue"))?,
        task_type: TypeName::new(&row.get::<_, String>(1)?).map_err(|_| damaged("type"))?,
        count: row.get(3)?,
        first_failed_at: Timestamp::clamped(row.get(4)?),
        last_failed_at: Timestamp::clamped(last),
        sample: TaskId::from_bytes(sample),
        error: row::decode_failure(found.get_ref(1)?, "task", &sample)?,
    })
}
