//! Idempotency keys: which task each stands for.

use duly_core::id::TaskId;
use duly_core::json::hash_bytes;
use duly_core::limits::IDEMPOTENCY_KEY_TTL;
use duly_core::ports::store::Submitted;
use duly_core::task::{Idempotency, NewTask};
use foldhash::{HashMap, HashSet};
use sha2::{Digest as _, Sha256};
use tokio_postgres::Row;
use uuid::Uuid;

use super::Scope;
use crate::postgres::error::{Fault, Result};
use crate::postgres::row;
use crate::postgres::task_state::state::each;

pub(super) type Hash = [u8; 32];

/// The keys of a batch.
#[derive(Default)]
pub(super) struct Keys {
    known: HashMap<Hash, Known>,
    /// Tasks that keys stand for and that are gone.
    gone: Vec<Uuid>,
    taken: Vec<(Hash, Uuid, Hash)>,
}

/// What a key stands for.
struct Known {
    task: TaskId,
    body: Hash,
}

impl Keys {
    /// Reads what is known of the keys of these tasks.
    pub(super) async fn read(scope: &Scope<'_>, tasks: &[&NewTask]) -> Result<Self> {
        let keys: Vec<_> = tasks.iter().filter_map(|task| hash(task)).collect();
        let mut found = Self::default();
        if keys.is_empty() {
            return Ok(found);
        }
        let keys = each(&keys, |key| key.as_slice());
        let select = "/* submit.known_keys */ SELECT key, task, body FROM duly.idempotency
            WHERE key = ANY($1) AND created_at > $2";
        let rows = scope.query(select, &[&keys, &oldest(scope)]).await?;
        let there = there(scope, &rows).await?;
        for row in rows {
            let task: Uuid = row.try_get(1)?;
            if !there.contains(&task) {
                found.gone.push(task);
                continue;
            }
            let (key, body) = (row.try_get(0)?, row.try_get(2)?);
            let known = Known { task: row::task_id(task), body: digest(body, task)? };
            found.known.insert(digest(key, task)?, known);
        }
        Ok(found)
    }

    /// The answer to a task whose key was used before, if it was.
    pub(super) fn answer(&self, task: &NewTask) -> Option<Submitted> {
        let idempotency = task.idempotency.as_ref()?;
        let known = self.known.get(&hash(task)?)?;
        let same_body = known.body == idempotency.body;
        Some(if same_body { Submitted::Replayed { id: known.task } } else { Submitted::KeyReused })
    }

    /// The key stands for this task from now on.
    pub(super) fn take(&mut self, task: &NewTask) {
        if let (Some(key), Some(Idempotency { body, .. })) = (hash(task), &task.idempotency) {
            self.known.insert(key, Known { task: task.id, body: *body });
            self.taken.push((key, row::uuid(task.id), *body));
        }
    }

    /// Writes the keys that were taken, in their order. Another transaction may have been faster.
    pub(super) async fn write(mut self, scope: &Scope<'_>) -> Result<()> {
        if self.taken.is_empty() {
            return Ok(());
        }
        self.taken.sort_unstable();
        let keys = each(&self.taken, |it| it.0.as_slice());
        let stale = "/* submit.stale_keys */ DELETE FROM duly.idempotency
            WHERE key = ANY($1) AND (created_at <= $2 OR task = ANY($3))";
        scope.execute(stale, &[&keys, &oldest(scope), &self.gone]).await?;
        let insert = "/* submit.take_keys */ INSERT INTO duly.idempotency
                (key, task, body, created_at)
            SELECT u.key, u.task, u.body, $4
            FROM unnest($1::bytea[], $2::uuid[], $3::bytea[]) u(key, task, body)
            ON CONFLICT (key) DO NOTHING";
        let tasks = each(&self.taken, |it| it.1);
        let bodies = each(&self.taken, |it| it.2.as_slice());
        let now = scope.now.millis();
        let written = scope.execute(insert, &[&keys, &tasks, &bodies, &now]).await?;
        if written < self.taken.len() as u64 {
            return Err(Fault::Raced);
        }
        self.forget_old(scope).await
    }

    /// Each new key deletes two old ones, so that no sweep is ever needed.
    async fn forget_old(&self, scope: &Scope<'_>) -> Result<()> {
        let delete = "/* submit.forget_old_keys */ DELETE FROM duly.idempotency
            WHERE ctid = ANY(ARRAY(SELECT ctid FROM duly.idempotency WHERE created_at <= $1
                                   ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED))";
        let some = i64::try_from(self.taken.len() * 2).expect("a small number");
        scope.execute(delete, &[&oldest(scope), &some]).await?;
        Ok(())
    }
}

/// Which of the tasks that keys stand for are there. Asked by their ids: a join would look into every
/// day.
async fn there(scope: &Scope<'_>, keys: &[Row]) -> Result<HashSet<Uuid>> {
    let mut tasks: Vec<Uuid> = Vec::with_capacity(keys.len());
    for row in keys {
        tasks.push(row.try_get(1)?);
    }
    if tasks.is_empty() {
        return Ok(HashSet::default());
    }
    let select = "/* submit.key_tasks */ SELECT id FROM duly.task WHERE id = ANY($1)";
    let found = scope.query(select, &[&tasks]).await?;
    found.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// Names a tenant's key.
fn hash(task: &NewTask) -> Option<Hash> {
    let idempotency = task.idempotency.as_ref()?;
    let mut hasher = Sha256::new();
    hash_bytes(task.lane.tenant.as_str().as_bytes(), &mut hasher);
    hash_bytes(idempotency.key.as_bytes(), &mut hasher);
    Some(hasher.finalize().into())
}

pub(super) fn digest(bytes: &[u8], task: Uuid) -> Result<Hash> {
    bytes.try_into().map_err(|_| row::corrupt("idempotency", "key", task))
}

/// Keys up to this age are forgotten.
pub(super) fn oldest(scope: &Scope<'_>) -> i64 {
    let ttl = i64::try_from(IDEMPOTENCY_KEY_TTL.as_millis()).expect("a day fits");
    scope.now.millis() - ttl
}
