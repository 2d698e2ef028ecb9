//! Dead letters by what they have in common: the last failures are read in their order and counted
//! here, since an answer must not take longer the more there are.

use std::collections::hash_map::Entry;

use duly_core::error_group::ErrorGroup;
use duly_core::limits::DEAD_GROUP_ROWS;
use duly_core::name::{QueueName, TypeName};
use duly_core::ports::store::{DeadGroup, DeadGroups, GroupDead};
use duly_core::state::Status;
use duly_core::task::Failure;
use duly_core::time::Timestamp;
use foldhash::HashMap;
use tokio_postgres::Row;
use uuid::Uuid;

use super::{DeadLetterPosition, Failures, TASKS, lanes};
use crate::postgres::days;
use crate::postgres::error::{Fault, Result};
use crate::postgres::filter::{Terms, Verdict, needs_task};
use crate::postgres::page::Portions;
use crate::postgres::range::LaneId;
use crate::postgres::row;
use crate::postgres::snapshot::Snapshot;

pub(super) async fn groups(snapshot: &Snapshot<'_>, which: &GroupDead) -> Result<DeadGroups> {
    let GroupDead { tenant, filter, limit } = which;
    let terms = Terms::new(tenant, filter);
    let mut found = DeadGroups { groups: Vec::new(), scanned: 0, partial: false };
    let Some(lanes) = lanes(snapshot, &terms, filter.allows(Status::Failed)).await? else {
        return Ok(found);
    };
    let below =
        |until: Timestamp| DeadLetterPosition { failed_at: until.millis(), task: Uuid::nil() };
    let below = filter.until.map_or(DeadLetterPosition::LAST, below);
    let since = filter.since.map_or(i64::MIN, Timestamp::millis);
    let failures = Failures { snapshot, terms: &terms, lanes, since, below };
    let mut counts = count(failures, needs_task(filter), &mut found).await?;
    counts.sort_by_key(|(_, of)| std::cmp::Reverse((of.count, of.last_failed_at)));
    counts.truncate(*limit as usize);
    let samples = counts.iter().map(|(_, of)| of.sample);
    let errors = errors(snapshot, samples).await?;
    for (key, of) in counts {
        match of.shown(key, &errors) {
            Ok(group) => found.groups.push(group),
            // One damaged row must not hide the others.
            Err(fault) => tracing::error!(%fault, "a group cannot be shown"),
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
    sample: Uuid,
    queue: String,
    task_type: String,
}

/// Counts the last failures, as many as may be looked at.
async fn count(
    mut failures: Failures<'_>,
    needs_task: bool,
    found: &mut DeadGroups,
) -> Result<Vec<(Key, Count)>> {
    let most = if needs_task { TASKS } else { DEAD_GROUP_ROWS };
    let mut counts: HashMap<Key, Count> = HashMap::default();
    let mut looked = 0;
    for portion in Portions::new(2_500, most) {
        let rows = failures.next(portion).await?;
        if rows.is_empty() {
            break;
        }
        let fitting = fitting(&failures, &rows, needs_task).await?;
        for (row, fits) in rows.iter().zip(fitting) {
            if looked == most {
                found.partial = true;
                break;
            }
            looked += 1;
            found.scanned += u32::from(row.try_get::<_, i32>(6)? != 0);
            if fits {
                add(&mut counts, row)?;
            }
        }
    }
    Ok(counts.into_iter().collect())
}

/// Which of these a filter leaves.
async fn fitting(failures: &Failures<'_>, rows: &[Row], needs_task: bool) -> Result<Vec<bool>> {
    let mut open = Vec::with_capacity(rows.len());
    for row in rows {
        open.push((row.try_get::<_, i32>(6)? == 2).then_some(row.try_get::<_, Uuid>(0)?));
    }
    if !needs_task {
        return Ok(open.iter().map(Option::is_some).collect());
    }
    let verdicts = failures.terms.on(failures.snapshot, open.iter().flatten().copied()).await?;
    let fits = |task: &Uuid| matches!(verdicts.get(task), Some(Verdict::Fits { .. }));
    Ok(open.iter().map(|task| task.as_ref().is_some_and(fits)).collect())
}

/// Adds a failure that came before all others.
fn add(counts: &mut HashMap<Key, Count>, row: &Row) -> Result<()> {
    let failed_at = row.try_get(1)?;
    let known = match counts.entry((row.try_get(2)?, row.try_get(3)?)) {
        Entry::Occupied(known) => known.into_mut(),
        Entry::Vacant(new) => new.insert(Count {
            count: 0,
            first_failed_at: failed_at,
            last_failed_at: failed_at,
            sample: row.try_get(0)?,
            queue: row.try_get(4)?,
            task_type: row.try_get(5)?,
        }),
    };
    known.count += 1;
    known.first_failed_at = failed_at;
    Ok(())
}

/// The errors of tasks.
async fn errors(
    snapshot: &Snapshot<'_>,
    tasks: impl Iterator<Item = Uuid>,
) -> Result<HashMap<Uuid, Option<String>>> {
    let select = "/* dlq.errors */ SELECT id, error FROM duly.task WHERE id = ANY($1)";
    let mut errors = HashMap::default();
    for ids in days::apart(tasks) {
        for row in snapshot.query(select, &[&ids]).await? {
            errors.insert(row.try_get(0)?, row.try_get(1)?);
        }
    }
    Ok(errors)
}

impl Count {
    /// The group as it is shown, with the error that came last.
    fn shown(self, key: Key, errors: &HashMap<Uuid, Option<String>>) -> Result<DeadGroup> {
        let damaged =
            |column, text: &str| Fault::Corrupt { table: "lane", column, id: text.to_owned() };
        let text = errors.get(&self.sample).and_then(Option::as_deref);
        let error: Option<Result<Failure>> = row::decode_failure("task", text, self.sample);
        let missing = || Err(row::corrupt("task", "error", self.sample));
        Ok(DeadGroup {
            group: ErrorGroup::from_bits(key.1),
            queue: QueueName::new(&self.queue).map_err(|_| damaged("queue", &self.queue))?,
            task_type: TypeName::new(&self.task_type)
                .map_err(|_| damaged("type", &self.task_type))?,
            count: self.count,
            first_failed_at: row::instant(self.first_failed_at),
            last_failed_at: row::instant(self.last_failed_at),
            sample: row::task_id(self.sample),
            error: error.unwrap_or_else(missing)?,
        })
    }
}
