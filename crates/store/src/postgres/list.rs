//! Lists of tasks: from the newest id down, a few days at a time, within the ids that `since` and
//! `until` leave; lane by lane where they are few. What asks for FAILED tasks alone reads the dead
//! letters by id instead, since failed tasks are few among many; and where those that wait, run or
//! have failed are few, they are looked up one by one.

mod by_status;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::ops::Range;

use duly_core::filter::Filter;
use duly_core::id::{TaskId, WorkflowId};
use duly_core::limits::SCAN_ROWS;
use duly_core::ports::store::{ListTasks, TaskList};
use duly_core::state::Status;
use uuid::Uuid;

use super::days::Windows;
use super::error::Result;
use super::filter::{DEAD_VERDICT, Lanes, Parameter, Terms, judging};
use super::page::{self, Bounds, Looked, Page, Rows};
use super::range::LaneId;
use super::snapshot::Snapshot;
use super::{PostgresStore, row};

/// One page of a tenant's tasks.
pub(super) async fn list(store: &PostgresStore, page: ListTasks) -> Result<TaskList> {
    let mut client = store.pool.get().await?;
    let snapshot = store.pool.snapshot(&mut client, &page.tenant).await?;
    let Page { tasks, next_before, scanned, partial } = find(&snapshot, &page).await?;
    Ok(TaskList { tasks, next_before: next_before.map(row::task_id), scanned, partial })
}

async fn find(snapshot: &Snapshot<'_>, page: &ListTasks) -> Result<Page<Uuid>> {
    let ListTasks { tenant, filter, before, limit } = page;
    let terms = Terms::new(tenant, filter);
    let bounds = Bounds { tasks: *limit, rows: SCAN_ROWS };
    match Newest::of(snapshot, &terms, filter, *before).await? {
        None => Ok(Page::empty()),
        Some(rows) => page::fill(snapshot, tenant, bounds, rows).await,
    }
}

/// Tasks with the verdict on each, newest id first, and perhaps some that a filter cannot leave.
pub(super) struct Newest<'a> {
    snapshot: &'a Snapshot<'a>,
    terms: &'a Terms<'a>,
    source: Source,
}

enum Source {
    /// Tasks by id; in these lanes only, if it says.
    Tasks { windows: Windows, window: Range<Uuid>, lanes: Option<Vec<LaneId>> },
    /// Dead letters by id.
    Failed { ids: Range<Uuid> },
    /// These.
    Few { ids: std::vec::IntoIter<Uuid> },
}

impl<'a> Newest<'a> {
    /// Nothing if there can be nothing.
    pub(super) async fn of(
        snapshot: &'a Snapshot<'a>,
        terms: &'a Terms<'a>,
        filter: &Filter,
        before: Option<TaskId>,
    ) -> Result<Option<Self>> {
        let lanes = match terms.lanes(snapshot).await? {
            Lanes::None => return Ok(None),
            Lanes::Few(lanes) => Some(lanes),
            Lanes::Many => None,
        };
        let ids = filter.ids();
        let below = before.map_or(ids.end, |before| before.min(ids.end));
        let ids = row::uuid(ids.start)..row::uuid(below);
        let only_failed = filter.statuses == BTreeSet::from([Status::Failed]);
        let few = match filter.workflow {
            Some(workflow) => Some(members(snapshot, workflow, &ids).await?),
            None => by_status::newest_first(snapshot, filter, lanes.as_deref(), &ids).await?,
        };
        let source = if let Some(ids) = few {
            Source::Few { ids: ids.into_iter() }
        } else if only_failed {
            Source::Failed { ids }
        } else {
            let window = ids.end..ids.end;
            Source::Tasks { windows: Windows::of(snapshot, ids).await?, window, lanes }
        };
        Ok(Some(Self { snapshot, terms, source }))
    }
}

/// The tasks of a workflow, newest id first; one more than a page looks at, at the most.
async fn members(
    snapshot: &Snapshot<'_>,
    workflow: WorkflowId,
    ids: &Range<Uuid>,
) -> Result<Vec<Uuid>> {
    let select = "/* task.list.workflow */ SELECT task FROM duly.member
        WHERE workflow = $1 AND task >= $2 AND task < $3 ORDER BY task DESC LIMIT $4";
    let (id, most) = (Uuid::from_bytes(*workflow.as_bytes()), i64::from(SCAN_ROWS) + 1);
    let rows = snapshot.query(select, &[&id, &ids.start, &ids.end, &most]).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// Tasks of all lanes. No condition on the lane is left to the planner, which might then read lane
/// by lane and sort what it finds.
const ALL: &str = "FROM duly.task LEFT JOIN duly.lane ON lane.id = task.lane
    WHERE task.id >= $10 AND task.id < $11 ORDER BY task.id DESC LIMIT $12";

/// Tasks of some lanes: the newest of each, and the newest of these.
const OF_LANES: &str = "FROM unnest($13::integer[]) l(id),
        LATERAL (SELECT own.* FROM duly.task own
                 WHERE own.lane = l.id AND own.id >= $10 AND own.id < $11
                 ORDER BY own.id DESC LIMIT $12) task
        JOIN duly.lane ON lane.id = task.lane
    ORDER BY task.id DESC LIMIT $12";

/// Dead letters, newest id first.
fn failed() -> String {
    format!(
        "/* task.list.failed */ SELECT dlq.task, {DEAD_VERDICT}
         FROM duly.dlq LEFT JOIN duly.lane ON lane.id = dlq.lane
         WHERE dlq.task >= $5 AND dlq.task < $6 ORDER BY dlq.task DESC LIMIT $7"
    )
}

impl Rows for Newest<'_> {
    type Position = Uuid;

    async fn next(&mut self, most: u32) -> Result<Vec<Looked<Uuid>>> {
        let Self { snapshot, terms, source } = self;
        match source {
            Source::Tasks { windows, window, lanes } => {
                let mut looked = Vec::new();
                while looked.len() < most as usize {
                    let left = most - u32::try_from(looked.len()).unwrap_or(most);
                    if window.is_empty() {
                        let Some(next) = windows.next() else { break };
                        *window = next;
                    }
                    let found = tasks(snapshot, terms, window, lanes.as_deref(), left).await?;
                    let ended = found.len() < left as usize;
                    window.end = found.last().map_or(window.start, |row| row.task);
                    if ended {
                        window.end = window.start;
                    }
                    looked.extend(found);
                }
                Ok(looked)
            }
            Source::Failed { ids } => {
                let (start, end, most) = (ids.start, ids.end, i64::from(most));
                let mut parameters = terms.of_place().to_vec();
                parameters.extend([&start as Parameter<'_>, &end, &most]);
                let mut found = Vec::new();
                for row in snapshot.query(&failed(), &parameters).await? {
                    let task: Uuid = row.try_get(0)?;
                    ids.end = task;
                    found.push((task, row.try_get(1)?, task));
                }
                terms.looked_at(snapshot, &found).await
            }
            Source::Few { ids } => {
                let found: Vec<_> = ids.take(most as usize).map(|task| (task, 2, task)).collect();
                terms.looked_at(snapshot, &found).await
            }
        }
    }
}

async fn tasks(
    snapshot: &Snapshot<'_>,
    terms: &Terms<'_>,
    ids: &Range<Uuid>,
    lanes: Option<&[LaneId]>,
    most: u32,
) -> Result<Vec<Looked<Uuid>>> {
    let select = match lanes {
        None => judging("task.list", ALL),
        Some(_) => judging("task.list.lanes", OF_LANES),
    };
    let most = i64::from(most);
    let mut parameters = terms.parameters().to_vec();
    parameters.extend([&ids.start as Parameter<'_>, &ids.end, &most]);
    parameters.extend(lanes.iter().map(|lanes| lanes as Parameter<'_>));
    let rows = snapshot.query(&format!("{select} ORDER BY looked.id DESC"), &parameters).await?;
    let looked = |row| {
        let (task, verdict) = terms.judge(row)?;
        Ok(Looked { task, verdict, place: task })
    };
    rows.iter().map(looked).collect()
}
