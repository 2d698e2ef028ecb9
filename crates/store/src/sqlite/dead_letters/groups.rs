//! Dead letters by what they have in common: the last failures are read in their order and counted
//! here, since an answer must not take longer the more there are.

use std::collections::hash_map::Entry;

use duly_core::error_group::ErrorGroup;
use duly_core::id::TaskId;
use duly_core::limits::DEAD_GROUP_ROWS;
use duly_core::name::Lane;
use duly_core::ports::store::{DeadGroup, DeadGroups, GroupDead};
use duly_core::state::Status;
use duly_core::time::Timestamp;
use foldhash::HashMap;
use rusqlite::{Connection, OptionalExtension as _, named_params};

use super::{TASKS, needs_task};
use crate::sqlite::error::{Fault, Result};
use crate::sqlite::filter::{self, DEAD_VERDICT, FITS};
use crate::sqlite::index::lanes::{LaneId, lane_from};
use crate::sqlite::row;

/// All dead letters of the file, last failure first; with the verdict of a filter on each only if
/// its terms need the task, since it costs more than all the rest.
pub(in crate::sqlite) fn last(needs_task: bool) -> String {
    let (verdict, lane) = match needs_task {
        true => (format!(", {DEAD_VERDICT}"), "LEFT JOIN lane ON lane.id = dlq.lane"),
        false => (String::new(), ""),
    };
    format!(
        "/* dlq.last */ SELECT dlq.task, failed_at, dlq.lane, error_group{verdict}
         FROM dlq {lane} WHERE failed_at >= :since AND failed_at < :until
         ORDER BY failed_at DESC, dlq.task DESC"
    )
}

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

impl Count {
    /// A group whose last failure this is.
    fn from(sample: TaskId, at: i64) -> Self {
        Self { count: 0, first_failed_at: at, last_failed_at: at, sample }
    }

    /// Adds a failure that came before all others.
    fn add(&mut self, failed_at: i64) {
        self.count += 1;
        self.first_failed_at = failed_at;
    }
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
    let needs_task = needs_task(filter);
    let most = if needs_task { TASKS } else { DEAD_GROUP_ROWS };
    let wanted = filter.group.map(ErrorGroup::to_bits);
    let mut lanes: HashMap<LaneId, Of> = HashMap::default();
    let mut counts: HashMap<Key, Count> = HashMap::default();
    let mut statement = connection.prepare_cached(&last(needs_task))?;
    if needs_task {
        filter::bind(&mut statement, tenant, filter)?;
    }
    let range = named_params! {
        ":since": filter.since.map_or(i64::MIN, Timestamp::millis),
        ":until": filter.until.map_or(i64::MAX, Timestamp::millis),
    };
    filter::put(&mut statement, range)?;
    let mut rows = statement.raw_query();
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
        let is_wanted = of == Of::Asked && wanted.is_none_or(|wanted| wanted == bits);
        if !is_wanted || (needs_task && row.get::<_, i64>(4)? != FITS) {
            continue;
        }
        let failed_at = row.get(1)?;
        let known = match counts.entry((lane, bits)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                new.insert(Count::from(TaskId::from_bytes(row.get(0)?), failed_at))
            }
        };
        known.add(failed_at);
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
