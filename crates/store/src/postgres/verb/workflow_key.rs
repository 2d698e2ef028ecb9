//! The idempotency key of a workflow. It stands in the table of tasks' keys, but no task has the same: what
//! is hashed begins with a word.

use duly_core::json::hash_bytes;
use duly_core::ports::store::SubmittedWorkflow;
use duly_core::workflow::NewWorkflow;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::Scope;
use super::keys::{Hash, digest, oldest};
use crate::postgres::error::{Fault, Result};
use crate::postgres::row;

/// The answer to a workflow whose key was used before, if it was.
pub(super) async fn answer(
    scope: &Scope<'_>,
    workflow: &NewWorkflow,
) -> Result<Option<SubmittedWorkflow>> {
    let (Some(key), Some(idempotency)) = (hash(workflow), &workflow.idempotency) else {
        return Ok(None);
    };
    let select = "/* workflow.known_key */ SELECT k.task, k.body
        FROM duly.idempotency k JOIN duly.workflow w ON w.id = k.task
        WHERE k.key = $1 AND k.created_at > $2";
    let rows = scope.query(select, &[&key.as_slice(), &oldest(scope)]).await?;
    let Some(known) = rows.first() else { return Ok(None) };
    let id: Uuid = known.try_get(0)?;
    let is_same = digest(known.try_get(1)?, id)? == idempotency.body;
    let first = SubmittedWorkflow::Replayed { id: row::workflow_id(id) };
    Ok(Some(if is_same { first } else { SubmittedWorkflow::KeyReused }))
}

/// The key stands for this workflow from now on. Another transaction may have been faster.
pub(super) async fn take(scope: &Scope<'_>, workflow: &NewWorkflow) -> Result<()> {
    let (Some(key), Some(idempotency)) = (hash(workflow), &workflow.idempotency) else {
        return Ok(());
    };
    let stale = "/* workflow.stale_key */ DELETE FROM duly.idempotency k WHERE k.key = $1
        AND (k.created_at <= $2
             OR NOT EXISTS (SELECT FROM duly.workflow w WHERE w.id = k.task))";
    scope.execute(stale, &[&key.as_slice(), &oldest(scope)]).await?;
    let insert =
        "/* workflow.take_key */ INSERT INTO duly.idempotency (key, task, body, created_at)
        VALUES ($1, $2, $3, $4) ON CONFLICT (key) DO NOTHING";
    let (id, body) = (row::workflow_uuid(workflow.id), idempotency.body.as_slice());
    let now = scope.now.millis();
    match scope.execute(insert, &[&key.as_slice(), &id, &body, &now]).await? {
        0 => Err(Fault::Raced),
        _ => Ok(()),
    }
}

fn hash(workflow: &NewWorkflow) -> Option<Hash> {
    let idempotency = workflow.idempotency.as_ref()?;
    let mut hasher = Sha256::new();
    hash_bytes(b"workflow", &mut hasher);
    hash_bytes(workflow.tenant.as_str().as_bytes(), &mut hasher);
    hash_bytes(idempotency.key.as_bytes(), &mut hasher);
    Some(hasher.finalize().into())
}
