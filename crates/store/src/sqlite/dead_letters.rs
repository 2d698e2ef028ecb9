//! Queries on the dead-letter queue.

use duly_core::error_group::ErrorGroup;
use duly_core::id::TaskId;
use duly_core::limits::PAGE_BYTES;
use duly_core::name::{QueueName, TypeName};
use duly_core::ports::store::{DeadFilter, DeadGroup, DeadList, DeadPlace, GroupDead, ListDead};
use duly_core::time::Timestamp;
use rusqlite::{Connection, Row, named_params};

use super::error::{Fault, Result};
use super::row;

/// The parts of a filter, as conditions on `dlq` and `lane`.
const FILTER: &str = "lane.tenant = :tenant
    AND (:queue IS NULL OR lane.queue = :queue) AND (:type IS NULL OR lane.type = :type)
    AND (:group IS NULL OR error_group = :group)
    AND failed_at >= :since AND failed_at < :until";

pub(super) fn list(connection: &Connection, page: &ListDead) -> Result<DeadList> {
    let (columns, tables) = (row::TASK_COLUMNS, row::TASK_TABLES);
    let mut statement = connection.prepare_cached(&format!(
        "/* dlq.list */ SELECT {columns} FROM dlq CROSS JOIN {tables}
         WHERE task.id = dlq.task AND {FILTER}
           AND failed_at <= :failed_at AND (failed_at, dlq.task) < (:failed_at, :task)
         ORDER BY failed_at DESC, dlq.task DESC LIMIT :limit"
    ))?;
    let DeadFilter { queue, task_type, group, since, until } = &page.filter;
    let most = page.limit as usize;
    let mut rows = statement.query(named_params! {
        ":tenant": page.tenant.as_str(),
        ":queue": queue.as_ref().map(QueueName::as_str),
        ":type": task_type.as_ref().map(TypeName::as_str),
        ":group": group.map(ErrorGroup::to_bits),
        ":since": since.map_or(i64::MIN, Timestamp::millis),
        ":until": until.map_or(i64::MAX, Timestamp::millis),
        ":failed_at": page.before.map_or(i64::MAX, |before| before.failed_at.millis()),
        ":task": page.before.map_or([0xff; 16], |before| *before.task.as_bytes()),
        // One more than asked for tells whether there is a next page.
        ":limit": most + 1,
    })?;
    let (mut tasks, mut bytes, mut last) = (Vec::new(), 0, None);
    while let Some(row) = rows.next().map_err(Fault::from)? {
        if tasks.len() == most {
            return Ok(DeadList { tasks, next_before: last });
        }
        let place = place(row)?;
        match row::task(row) {
            Ok(task) => {
                bytes += task.bytes();
                if bytes > PAGE_BYTES && !tasks.is_empty() {
                    return Ok(DeadList { tasks, next_before: last });
                }
                tasks.push(task);
            }
            // One damaged row must not hide the others.
            Err(fault) if fault.is_bad_row() => tracing::error!(%fault, "a task cannot be shown"),
            Err(fault) => return Err(fault),
        }
        last = Some(place);
    }
    Ok(DeadList { tasks, next_before: None })
}

fn place(row: &Row<'_>) -> Result<DeadPlace> {
    let failed_at = Timestamp::clamped(row.get("finished_at")?);
    Ok(DeadPlace { failed_at, task: TaskId::from_bytes(row.get(0)?) })
}

pub(super) fn groups(connection: &Connection, which: &GroupDead) -> Result<Vec<DeadGroup>> {
    let mut statement = connection.prepare_cached(&format!(
        "/* dlq.groups */ SELECT lane.queue, lane.type, error_group, count(*), min(failed_at),
                max(failed_at), dlq.lane
         FROM lane CROSS JOIN dlq WHERE dlq.lane = lane.id AND {FILTER}
         GROUP BY dlq.lane, error_group
         ORDER BY count(*) DESC, max(failed_at) DESC LIMIT :limit"
    ))?;
    let DeadFilter { queue, task_type, group, since, until } = &which.filter;
    let mut rows = statement.query(named_params! {
        ":tenant": which.tenant.as_str(),
        ":queue": queue.as_ref().map(QueueName::as_str),
        ":type": task_type.as_ref().map(TypeName::as_str),
        ":group": group.map(ErrorGroup::to_bits),
        ":since": since.map_or(i64::MIN, Timestamp::millis),
        ":until": until.map_or(i64::MAX, Timestamp::millis),
        ":limit": which.limit,
    })?;
    let mut groups = Vec::new();
    while let Some(row) = rows.next()? {
        groups.push(group_of(connection, row)?);
    }
    Ok(groups)
}

fn group_of(connection: &Connection, row: &Row<'_>) -> Result<DeadGroup> {
    let lane: i64 = row.get(6)?;
    let damaged = |column| Fault::Corrupt { table: "lane", column, id: lane.to_string() };
    let (bits, last): (i64, i64) = (row.get(2)?, row.get(5)?);
    let mut newest = connection.prepare_cached(
        "/* dlq.sample */ SELECT dlq.task, task.error FROM dlq JOIN task ON task.id = dlq.task
         WHERE dlq.lane = ? AND error_group = ? AND failed_at = ? ORDER BY dlq.task DESC LIMIT 1",
    )?;
    let (sample, error) = newest.query_row([lane, bits, last], |row| {
        let id: [u8; 16] = row.get(0)?;
        Ok((id, row::decode_failure(row.get_ref(1)?, "task", &id)))
    })?;
    Ok(DeadGroup {
        group: ErrorGroup::from_bits(bits),
        queue: QueueName::new(&row.get::<_, String>(0)?).map_err(|_| damaged("queue"))?,
        task_type: TypeName::new(&row.get::<_, String>(1)?).map_err(|_| damaged("type"))?,
        count: row.get(3)?,
        first_failed_at: Timestamp::clamped(row.get(4)?),
        last_failed_at: Timestamp::clamped(last),
        sample: TaskId::from_bytes(sample),
        error: error?,
    })
}
