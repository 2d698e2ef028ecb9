//! Workflows: store one with all its tasks, cancel one, and check what new tasks are tied to.

mod again;

use duly_core::event::Event;
use duly_core::id::{TaskId, WorkflowId};
use duly_core::json::hash_bytes;
use duly_core::limits::CHILDREN;
use duly_core::name::TenantName;
use duly_core::ports::store::{Submitted, SubmittedWorkflow, WorkflowChange};
use duly_core::task::{Idempotency, NewTask};
use duly_core::time::Timestamp;
use duly_core::workflow::{NewWorkflow, WorkflowStatus};
use foldhash::{HashMap, HashSet};
use rusqlite::{OptionalExtension as _, params};
use sha2::{Digest as _, Sha256};

pub(in crate::sqlite) use self::again::{ReplayDownstream, RetryWorkflow};
use super::submit::{forget_old_keys, key_hash, oldest_key};
use super::{Scope, Verb};
use crate::audited::{self, Subject};
use crate::sqlite::error::Result;
use crate::sqlite::links::{self, decode_workflow_status};
use crate::sqlite::row;
use crate::sqlite::task_state::stored::stored_linked;

impl Verb for NewWorkflow {
    type Answer = SubmittedWorkflow;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<SubmittedWorkflow> {
        if let Some(at) = stored_at(scope, self.id)? {
            return Ok(SubmittedWorkflow::Stored { at });
        }
        if let Some(idempotency) = &self.idempotency
            && let Some(answer) = known_key(scope, &self.tenant, idempotency)?
        {
            return Ok(answer);
        }
        if let Some(refused) = refuses(scope, self)? {
            return Ok(refused);
        }
        store_workflow(scope, self)?;
        Ok(SubmittedWorkflow::Stored { at: scope.now })
    }
}

/// Stores a workflow that is new, for whose lanes there is room.
pub(super) fn store_workflow(scope: &mut Scope<'_>, new: &NewWorkflow) -> Result<()> {
    insert(scope, new)?;
    for task in &new.tasks {
        let lane = scope.index.lane(scope.connection, &task.lane)?.expect("there is room");
        stored_linked(scope, task, lane)?;
    }
    Ok(())
}

pub(super) fn stored_at(scope: &Scope<'_>, id: WorkflowId) -> Result<Option<Timestamp>> {
    let mut statement = scope
        .connection
        .prepare_cached("/* workflow.stored_at */ SELECT created_at FROM workflow WHERE id = ?")?;
    let at = statement.query_row([id.as_bytes()], |row| row.get(0)).optional()?;
    Ok(at.map(Timestamp::clamped))
}

/// Keys of workflows are not those of tasks.
fn workflow_key_hash(tenant: &TenantName, idempotency: &Idempotency) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hash_bytes(b"workflow", &mut hasher);
    hash_bytes(&key_hash(tenant, idempotency), &mut hasher);
    hasher.finalize().into()
}

fn known_key(
    scope: &Scope<'_>,
    tenant: &TenantName,
    idempotency: &Idempotency,
) -> Result<Option<SubmittedWorkflow>> {
    let mut statement = scope.connection.prepare_cached(
        "/* workflow.known_key */ SELECT task, body FROM idempotency WHERE key = ? AND created_at > ?
           AND EXISTS (SELECT 1 FROM workflow WHERE workflow.id = idempotency.task)",
    )?;
    let key = params![workflow_key_hash(tenant, idempotency), oldest_key(scope)];
    let known = statement.query_row(key, |row| {
        Ok((WorkflowId::from_bytes(row.get(0)?), row.get::<_, [u8; 32]>(1)?))
    });
    Ok(known.optional()?.map(|(id, body)| match body == idempotency.body {
        true => SubmittedWorkflow::Replayed { id },
        false => SubmittedWorkflow::KeyReused,
    }))
}

fn insert(scope: &Scope<'_>, new: &NewWorkflow) -> Result<()> {
    scope
        .connection
        .prepare_cached(
            "/* workflow.insert */ INSERT INTO workflow (id, tenant, name, labels, fail_fast, status,
                    created_at, open, has_failed)
             VALUES (?, ?, ?, ?, ?, 0, ?, 0, 0)",
        )?
        .execute(params![
            new.id.as_bytes(),
            new.tenant.as_str(),
            new.name,
            row::encode_labels(&new.labels),
            new.fail_fast,
            scope.now.millis(),
        ])?;
    scope.emit(&Event::workflow_started(&new.tenant, new.id, &new.name, scope.now));
    let Some(idempotency) = &new.idempotency else { return Ok(()) };
    scope
        .connection
        .prepare_cached(
            "/* workflow.remember_key */ INSERT OR REPLACE INTO idempotency (key, task, body, created_at)
             VALUES (?, ?, ?, ?)",
        )?
        .execute(params![
            workflow_key_hash(&new.tenant, idempotency),
            new.id.as_bytes(),
            idempotency.body,
            scope.now.millis()
        ])?;
    forget_old_keys(scope, 1)
}

/// Why a workflow cannot be stored, if something outside of it speaks against it.
fn refuses(scope: &Scope<'_>, new: &NewWorkflow) -> Result<Option<SubmittedWorkflow>> {
    let lanes: HashSet<_> = new.tasks.iter().map(|task| &task.lane).collect();
    let unknown = lanes.into_iter().filter(|lane| !scope.index.has_lane(lane)).count();
    if !scope.index.has_room_for_lanes(unknown) {
        return Ok(Some(SubmittedWorkflow::LaneLimit));
    }
    let own: HashSet<_> = new.tasks.iter().map(|task| task.id).collect();
    let all = new.tasks.iter().flat_map(NewTask::dependencies).map(|it| it.parent);
    let mut foreign: HashMap<TaskId, i64> = HashMap::default();
    let mut order = Vec::new();
    for parent in all.filter(|parent| !own.contains(parent)) {
        *foreign.entry(parent).or_insert_with(|| {
            order.push(parent);
            0
        }) += 1;
    }
    for parent in order {
        match refuses_child(scope, &new.tenant, parent, foreign[&parent])? {
            None => {}
            Some(Submitted::TooManyChildren { parent }) => {
                return Ok(Some(SubmittedWorkflow::TooManyChildren { parent }));
            }
            Some(_) => return Ok(Some(SubmittedWorkflow::UnknownParent { parent })),
        }
    }
    Ok(None)
}

fn refuses_child(
    scope: &Scope<'_>,
    tenant: &TenantName,
    parent: TaskId,
    more: i64,
) -> Result<Option<Submitted>> {
    let mut statement = scope.connection.prepare_cached(
        "/* stored.parent */ SELECT links FROM task JOIN lane ON lane.id = task.lane
         WHERE task.id = ? AND lane.tenant = ?",
    )?;
    let key = params![parent.as_bytes(), tenant.as_str()];
    let links: Option<Option<i64>> = statement.query_row(key, |row| row.get(0)).optional()?;
    let Some(links) = links else { return Ok(Some(Submitted::UnknownParent { parent })) };
    let full = links::children(links) + more > CHILDREN as i64;
    Ok(full.then_some(Submitted::TooManyChildren { parent }))
}

/// Why a task cannot be stored because of what it is tied to.
pub(super) fn refuses_links(scope: &Scope<'_>, task: &NewTask) -> Result<Option<Submitted>> {
    if let Some(membership) = links::workflow_of(task) {
        match standing(scope, &task.lane.tenant, membership.id)? {
            None => return Ok(Some(Submitted::UnknownWorkflow)),
            Some((WorkflowStatus::Running, false)) => {}
            Some(_) => return Ok(Some(Submitted::WorkflowEnded)),
        }
    }
    for dependency in task.dependencies() {
        let refused = refuses_child(scope, &task.lane.tenant, dependency.parent, 1)?;
        if refused.is_some() {
            return Ok(refused);
        }
    }
    Ok(None)
}

/// The state of a tenant's workflow, and whether it was cancelled.
fn standing(
    scope: &Scope<'_>,
    tenant: &TenantName,
    id: WorkflowId,
) -> Result<Option<(WorkflowStatus, bool)>> {
    let mut statement = scope.connection.prepare_cached(
        "/* workflow.standing */ SELECT status, cancelled IS NOT NULL FROM workflow
         WHERE id = ? AND tenant = ?",
    )?;
    let key = params![id.as_bytes(), tenant.as_str()];
    let found = statement.query_row(key, |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let Some((status, cancelled)) = found else { return Ok(None) };
    Ok(Some((decode_workflow_status(status, id)?, cancelled)))
}

/// A workflow to cancel.
pub(in crate::sqlite) struct CancelWorkflow {
    pub(in crate::sqlite) tenant: TenantName,
    pub(in crate::sqlite) id: WorkflowId,
    pub(in crate::sqlite) reason: String,
}

impl Verb for CancelWorkflow {
    type Answer = WorkflowChange;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<WorkflowChange> {
        match standing(scope, &self.tenant, self.id)? {
            None => Ok(WorkflowChange::Unknown),
            Some((WorkflowStatus::Running, _)) => {
                cancel_workflow(scope, self.id, &self.reason)?;
                Ok(WorkflowChange::Done { tasks: 0 })
            }
            Some((WorkflowStatus::Cancelled, _)) => Ok(WorkflowChange::Done { tasks: 0 }),
            Some((status, _)) => Ok(WorkflowChange::Conflict { status }),
        }
    }

    fn audited(&self) -> Vec<Subject> {
        audited::cancel_workflow(&self.tenant, self.id)
    }
}

/// Cancels a workflow that runs.
pub(super) fn cancel_workflow(scope: &mut Scope<'_>, id: WorkflowId, reason: &str) -> Result<()> {
    let update = "/* workflow.cancel */ UPDATE workflow
        SET cancelled = coalesce(cancelled, ?2), sweep = 1 WHERE id = ?1";
    scope.connection.prepare_cached(update)?.execute(params![id.as_bytes(), reason])?;
    scope.cascade();
    Ok(())
}
