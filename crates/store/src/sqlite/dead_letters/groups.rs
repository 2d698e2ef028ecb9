//! Dead letters by what they have in common: the last failures are read in their order and counted
//! here, since an answer must not take longer the more there are.

use duly_core::error_group::ErrorGroup;
use duly_core::id::TaskId;
use duly_core::limits::{DEAD_GROUP_ROWS, SCAN_ROWS};
use duly_core::name::Lane;
use duly_core::ports::store::{DeadGroup, DeadGroups, GroupDead};
use duly_core::state::Status;
use duly_core::time::Timestamp;
use foldhash::HashMap;
use rusqlite::{Connection, OptionalExtension as _, named_params};

use crate::sqlite::error::{Fault, Result};
use crate::sqlite::filter::{self, FITS, Verdicts};
use crate::sqlite::index::lanes::{LaneId, lane_from};
use crate::sqlite::row;

/// All dead letters of the file, last failure first.
pub(in crate::sqlite) const LAST: &str = "/* dlq.last */ SELECT task, failed_at, lane, error_group
    FROM dlq WHERE failed_at >= :since AND failed_at < :until ORDER BY failed_at DESC, task DESC";

pub(in crate::sqlite) fn groups(connection: &Connection, which: &GroupDead) -> Result<DeadGroups> {
    // Several statements that read one moment.
    let connection = &*connection.unchecked_transaction()?;
    let GroupDead { tenant, filter, limit } = which;
    let mut found = DeadGroups { groups: Vec::new(), scanned: 0, partial: false };
    if !filter.allows(Status::Failed) || !filter::has_lane(connection, tenant, filter)? {
        return Ok(found);
    }
    let mut counts = count(connection, which, &mut found)?;
    counts.sort_by_key(|(_, of)| std::cmp::Reverse((of.count, of.last_failed_at)));
    for ((lane, bits), of) in counts.into_iter().take(*limit as usize) {
        match shown(connection, lane, bits, &of) {
            Ok(group) => found.groups.push(group),
            // One damaged row must not hide the others.
            Err(fault) if fault.is_bad_row() => tracing::error!(%fault, "a group cannot be shown"),
            Err(fault) => return Err(fault),
        }
    }
    Ok(found)
}

/// A lane, and what of an error its group keeps.
type Key = (LaneId, i64);

/// What is known of a group.
struct Count {
    count: u64,
    first_failed_at: i64,
    last_failed_at: i64,
    /// The one that failed last.
    sample: TaskId,
}

/// What a filter says of a lane.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Others,
    /// The tenant's own, and of another queue or type.
    NotAsked,
    Asked,
}

/// Counts the last failures, as many as may be looked at.
fn count(
    connection: &Connection,
    which: &GroupDead,
    found: &mut DeadGroups,
) -> Result<Vec<(Key, Count)>> {
    let GroupDead { tenant, filter, .. } = which;
    let needs_task = filter::needs_task(filter);
    let most = if needs_task { SCAN_ROWS } else { DEAD_GROUP_ROWS };
    let wanted = filter.group.map(ErrorGroup::to_bits);
    let mut verdicts = Verdicts::new(connection, tenant, filter)?;
    let mut lanes: HashMap<LaneId, Of> = HashMap::default();
    let mut counts: HashMap<Key, Count> = HashMap::default();
    let mut statement = connection.prepare_cached(LAST)?;
    let mut rows = statement.query(named_params! {
        ":since": filter.since.map_or(i64::MIN, Timestamp::millis),
        ":until": filter.until.map_or(i64::MAX, Timestamp::millis),
    })?;
    let mut looked = 0;
    while let Some(row) = rows.next()? {
        if looked == most {
            found.partial = true;
            break;
        }
        looked += 1;
        let (lane, bits): Key = (row.get(2)?, row.get(3)?);
        let of = match lanes.get(&lane) {
            Some(of) => *of,
            None => *lanes.entry(lane).insert_entry(look_at(connection, which, lane)?).get(),
        };
        found.scanned += u32::from(of != Of::Others);
        if of != Of::Asked || wanted.is_some_and(|wanted| wanted != bits) {
            continue;
        }
        let task = TaskId::from_bytes(row.get(0)?);
        if needs_task && verdicts.on(task)? != FITS {
            continue;
        }
        let failed_at = row.get(1)?;
        let new = || Count {
            count: 0,
            first_failed_at: failed_at,
            last_failed_at: failed_at,
            sample: task,
        };
        let known = counts.entry((lane, bits)).or_insert_with(new);
        known.count += 1;
        known.first_failed_at = failed_at;
    }
    Ok(counts.into_iter().collect())
}

fn look_at(connection: &Connection, which: &GroupDead, lane: LaneId) -> Result<Of> {
    let GroupDead { tenant, filter, .. } = which;
    Ok(match lane_of(connection, lane)? {
        Some(lane) if lane.tenant != *tenant => Of::Others,
        None => Of::Others,
        Some(lane) => {
            let is_asked = filter.queue.as_ref().is_none_or(|queue| *queue == lane.queue)
                && filter.task_type.as_ref().is_none_or(|name| *name == lane.task_type);
            if is_asked { Of::Asked } else { Of::NotAsked }
        }
    })
}

fn lane_of(connection: &Connection, lane: LaneId) -> Result<Option<Lane>> {
    let text = "/* lane.get */ SELECT tenant, queue, type FROM lane WHERE id = ?";
    let mut statement = connection.prepare_cached(text)?;
    let mut rows = statement.query([lane])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    match lane_from(lane, row.get_ref(0)?, row.get_ref(1)?, row.get_ref(2)?) {
        Ok(lane) => Ok(Some(lane)),
        // One damaged row must not hide the others.
        Err(fault) if fault.is_bad_row() => {
            tracing::error!(%fault, "a lane cannot be read");
            Ok(None)
        }
        Err(fault) => Err(fault),
    }
}

/// A group as it is shown, with the error that came last.
fn shown(connection: &Connection, lane: LaneId, bits: i64, of: &Count) -> Result<DeadGroup> {
    let missing = |table, id: String| Fault::Corrupt { table, column: "id", id };
    let Lane { queue, task_type, .. } =
        lane_of(connection, lane)?.ok_or_else(|| missing("lane", lane.to_string()))?;
    let text = "/* dlq.error */ SELECT error FROM task WHERE id = ?";
    let sample = of.sample.as_bytes();
    let error = connection
        .prepare_cached(text)?
        .query_row([sample], |row| Ok(row::decode_failure(row.get_ref(0)?, "task", sample)))
        .optional()?;
    Ok(DeadGroup {
        group: ErrorGroup::from_bits(bits),
        queue,
        task_type,
        count: of.count,
        first_failed_at: Timestamp::clamped(of.first_failed_at),
        last_failed_at: Timestamp::clamped(of.last_failed_at),
        sample: of.sample,
        error: error.ok_or_else(|| missing("task", of.sample.to_string()))??,
    })
}
