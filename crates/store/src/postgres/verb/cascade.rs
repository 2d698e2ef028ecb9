//! Cascade: cancel tasks that can no longer start. First those with a broken edge, then the open tasks of
//! workflows that were cancelled or fail fast.

use std::collections::{BTreeSet, HashSet};

use duly_core::id::{SessionId, TaskId};
use duly_core::ports::store::Cascaded;
use duly_core::state::Status;
use duly_core::task::Failure;
use duly_core::workflow::consequences::{failure_handlers, swept};
use duly_core::workflow::{Condition, EdgeState, broken_dependency};
use foldhash::HashMap;
use uuid::Uuid;

use super::cancel::cancel;
use super::{Scope, Verb};
use crate::postgres::error::Result;
use crate::postgres::task_state::changes::Changes;
use crate::postgres::task_state::linked::{decode_condition, decode_edge_state};
use crate::postgres::task_state::state::TaskState;
use crate::postgres::{PostgresStore, days, row};

/// Whether there is anything to do: two looks at indexes that are mostly empty.
const ANY: &str = "/* cascade.any */ SELECT EXISTS (SELECT FROM duly.doomed)
    OR EXISTS (SELECT FROM duly.workflow WHERE sweep)";

impl PostgresStore {
    pub(in crate::postgres) async fn cascade_step(&self, limit: u32) -> Result<Cascaded> {
        let rows = self.pool.query(ANY, &[]).await?;
        match rows.first().map(|row| row.try_get(0)).transpose()? {
            Some(true) => self.run(&Cascade { limit }).await,
            _ => Ok(Cascaded::default()),
        }
    }
}

/// Workflows with nothing to cancel that one step looks at.
const WORKFLOWS: u32 = 100;

struct Cascade {
    limit: u32,
}

impl Verb for Cascade {
    type Answer = Cascaded;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<Cascaded> {
        let limit = self.limit as usize;
        let mut cancelled = cancel_doomed(scope, limit).await?;
        for _ in 0..WORKFLOWS {
            if !cancelled.is_empty() {
                break;
            }
            match sweep_workflow(scope, limit).await? {
                Some(swept) => cancelled = swept,
                None => break,
            }
        }
        let rows = scope.query(ANY, &[]).await?;
        let more = rows.first().map(|row| row.try_get(0)).transpose()?.unwrap_or(false);
        Ok(Cascaded { cancelled, more })
    }
}

pub(super) type Holder = Option<(SessionId, u32)>;
pub(super) type CancelledTasks = Vec<(TaskId, Holder)>;

/// Cancels locked tasks, each for its reason.
pub(super) async fn cancel_all(
    scope: &mut Scope<'_>,
    tasks: Vec<(TaskState, Failure)>,
) -> Result<CancelledTasks> {
    let (now, mut changes, mut cancelled) = (scope.now.millis(), Changes::default(), Vec::new());
    for (mut state, error) in tasks {
        let running = state.session.filter(|_| state.status == Status::Running);
        let holder = running.map(|it| (row::session_id(it), state.epoch.unsigned_abs()));
        if cancel(&mut state, &error, now, &mut changes) {
            cancelled.push((row::task_id(state.id), holder));
        }
    }
    changes.write(scope).await?;
    Ok(cancelled)
}

/// Tasks that are doomed, and those that will be once these are cancelled: a long chain takes few steps.
/// Children are looked up one parent at a time: a join would read all edges for every level.
const DOOMED: &str = "/* cascade.doomed */ WITH RECURSIVE first AS (
        SELECT child FROM duly.doomed ORDER BY child LIMIT $1
    ), doomed AS (
        SELECT child FROM first
        UNION
        SELECT next.child FROM doomed d, LATERAL (
            SELECT e.child FROM duly.edge e
            WHERE e.parent = d.child AND e.state = 0 AND e.condition <> 2 OFFSET 0) next)
    SELECT child FROM doomed LIMIT $1";

/// Cancels BLOCKED tasks with a broken edge.
async fn cancel_doomed(scope: &mut Scope<'_>, limit: usize) -> Result<CancelledTasks> {
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = scope.query(DOOMED, &[&most]).await?;
    let mut doomed: Vec<Uuid> =
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect::<Result<_>>()?;
    if doomed.is_empty() {
        return Ok(Vec::new());
    }
    doomed.sort_unstable();
    let mut states = TaskState::lock(scope, &doomed).await?;
    states.retain(|_, state| state.status == Status::Blocked);
    let reasons = reasons(scope, &states).await?;
    let cancelled =
        states.into_iter().filter_map(|(id, state)| Some((state, reasons.get(&id)?.clone())));
    let mut tasks: Vec<_> = cancelled.collect();
    tasks.sort_unstable_by_key(|(state, _)| state.id);
    let cancelled = cancel_all(scope, tasks).await?;
    // Those that are next were added, and these are done with.
    let delete = "/* cascade.forget */ DELETE FROM duly.doomed WHERE child = ANY($1)";
    scope.execute(delete, &[&doomed]).await?;
    Ok(cancelled)
}

/// Why tasks among these are to be cancelled: an edge is broken, or will be since its parent is cancelled
/// now. Level by level, and by the first parent that counts.
async fn reasons(
    scope: &Scope<'_>,
    blocked: &HashMap<Uuid, TaskState>,
) -> Result<HashMap<Uuid, Failure>> {
    let ids: Vec<_> = blocked.keys().copied().collect();
    let select = "/* cascade.broken */ SELECT parent, child, condition, state FROM duly.edge
        WHERE child = ANY($1) AND (state = 2 OR state = 0 AND condition <> 2 AND parent = ANY($1))
        ORDER BY parent";
    let (mut broken, mut open) = (Vec::new(), HashMap::<Uuid, Vec<(Uuid, Condition)>>::default());
    for row in scope.query(select, &[&ids]).await? {
        let (parent, child): (Uuid, Uuid) = (row.try_get(0)?, row.try_get(1)?);
        let on = decode_condition(row.try_get(2)?, child)?;
        match decode_edge_state(row.try_get(3)?, child)? {
            EdgeState::Broken => broken.push((parent, child, on)),
            _ => open.entry(parent).or_default().push((child, on)),
        }
    }
    let parents: Vec<_> = broken.iter().map(|(parent, ..)| *parent).collect();
    let statuses = statuses(scope, &parents).await?;
    let mut reasons = HashMap::default();
    let mut level = BTreeSet::new();
    for (parent, child, on) in broken {
        let ended = statuses.get(&parent).copied().unwrap_or(Status::Cancelled);
        let failure = || broken_dependency(row::task_id(parent), on, ended);
        reasons.entry(child).or_insert_with(failure);
        level.insert(child);
    }
    while !level.is_empty() {
        let mut next = BTreeSet::new();
        for parent in level {
            for (child, on) in open.get(&parent).into_iter().flatten() {
                if !reasons.contains_key(child) {
                    let failure = broken_dependency(row::task_id(parent), *on, Status::Cancelled);
                    reasons.insert(*child, failure);
                    next.insert(*child);
                }
            }
        }
        level = next;
    }
    Ok(reasons)
}

/// Cancels open tasks of the first workflow that was cancelled or fails fast. `None` if there is no such
/// workflow.
async fn sweep_workflow(scope: &mut Scope<'_>, limit: usize) -> Result<Option<CancelledTasks>> {
    let select = "/* cascade.workflow */ SELECT id FROM duly.workflow WHERE sweep
        ORDER BY id LIMIT 1";
    let rows = scope.query(select, &[]).await?;
    let Some(found) = rows.first() else { return Ok(None) };
    let workflow: Uuid = found.try_get(0)?;
    let open = open_tasks(scope, workflow, limit).await?;
    let states = TaskState::lock(scope, &open[..open.len().min(limit)]).await?;
    // Tasks are locked first. Meanwhile the workflow may have been retried.
    let select = "/* cascade.hold */ SELECT cancelled FROM duly.workflow WHERE id = $1 AND sweep
        FOR NO KEY UPDATE";
    let rows = scope.query(select, &[&workflow]).await?;
    let Some(found) = rows.first() else { return Ok(Some(Vec::new())) };
    let reason: Option<String> = found.try_get(0)?;
    let error = swept(reason);
    let mut tasks: Vec<_> = states.into_values().map(|state| (state, error.clone())).collect();
    tasks.retain(|(state, _)| !state.status.is_terminal());
    tasks.sort_unstable_by_key(|(state, _)| state.id);
    let cancelled = cancel_all(scope, tasks).await?;
    // No task can join it or run again now. One that does so later sets this again.
    if open.len() <= limit && open_tasks(scope, workflow, 0).await?.is_empty() {
        let update = "/* cascade.swept */ UPDATE duly.workflow SET sweep = false WHERE id = $1";
        scope.execute(update, &[&workflow]).await?;
    }
    Ok(Some(cancelled))
}

pub(super) async fn members(scope: &Scope<'_>, workflow: Uuid) -> Result<Vec<Uuid>> {
    let select = "/* workflow.members */ SELECT task FROM duly.member WHERE workflow = $1
        ORDER BY task";
    let rows = scope.query(select, &[&workflow]).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// Those of the tasks that take care of failures.
async fn handlers(scope: &Scope<'_>, members: &[Uuid]) -> Result<HashSet<Uuid>> {
    let select = "/* cascade.edges */ SELECT parent, child, condition FROM duly.edge
        WHERE child = ANY($1)";
    let mut edges = Vec::new();
    for row in scope.query(select, &[&members]).await? {
        let (parent, child): (Uuid, Uuid) = (row.try_get(0)?, row.try_get(1)?);
        edges.push((parent, child, decode_condition(row.try_get(2)?, child)?));
    }
    Ok(failure_handlers(edges))
}

/// The open tasks of a workflow that are to be cancelled, by their ids, about one more than `limit` at the
/// most: all of one that was cancelled; of one that fails fast, those that take care of no failure.
async fn open_tasks(scope: &Scope<'_>, workflow: Uuid, limit: usize) -> Result<Vec<Uuid>> {
    let members = members(scope, workflow).await?;
    let select = "/* cascade.is_cancelled */ SELECT FROM duly.workflow
        WHERE id = $1 AND cancelled IS NOT NULL";
    let spared = match scope.query(select, &[&workflow]).await?.is_empty() {
        true => handlers(scope, &members).await?,
        false => HashSet::new(),
    };
    let select = "/* cascade.open */ SELECT id FROM duly.task
        WHERE id = ANY($1) AND status IN (0, 1, 2) ORDER BY id";
    let wanted = members.iter().copied().filter(|task| !spared.contains(task));
    let mut open = Vec::new();
    for part in days::apart(wanted) {
        for row in scope.query(select, &[&part]).await? {
            open.push(row.try_get(0)?);
        }
        if open.len() > limit {
            break;
        }
    }
    Ok(open)
}

async fn statuses(scope: &Scope<'_>, tasks: &[Uuid]) -> Result<HashMap<Uuid, Status>> {
    let select = "/* cascade.statuses */ SELECT id, status FROM duly.task WHERE id = ANY($1)";
    let mut statuses = HashMap::default();
    for part in days::apart(tasks.iter().copied()) {
        for row in scope.query(select, &[&part]).await? {
            let id = row.try_get(0)?;
            statuses.insert(id, row::decode_status(row.try_get(1)?, id)?);
        }
    }
    Ok(statuses)
}
