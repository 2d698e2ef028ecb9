//! Submit: new tasks, waiting or already granted.

use duly_core::id::TaskId;
use duly_core::json::hash_bytes;
use duly_core::limits::IDEMPOTENCY_KEY_TTL;
use duly_core::name::TenantName;
use duly_core::ports::store::{Claim, Submit, Submitted};
use duly_core::task::{Idempotency, NewTask};
use duly_core::time::Timestamp;
use rusqlite::{OptionalExtension as _, params};
use sha2::{Digest as _, Sha256};

use super::workflow::refuses_links;
use super::{Scope, Verb};
use crate::audited::{Audited, Subject};
use crate::sqlite::error::Result;
use crate::sqlite::index::grants::{Batch, Granted};
use crate::sqlite::index::lanes::LaneId;
use crate::sqlite::task_state::stored::{FIRST_EPOCH, Stored, stored_linked};

impl Verb for Submit {
    type Answer = Vec<Submitted>;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<Vec<Submitted>> {
        let mut hand_off = HandOff::new(scope, self.offer.as_ref());
        let mut stored = Stored::prepare(scope.connection)?;
        let mut answers = Vec::with_capacity(self.tasks.len());
        for task in &self.tasks {
            answers.push(one(scope, task, &mut hand_off, &mut stored)?);
        }
        hand_off.record(scope)?;
        let keyed = self.tasks.iter().filter(|task| task.idempotency.is_some()).count();
        forget_old_keys(scope, keyed)?;
        Ok(answers)
    }

    fn audited(&self) -> Vec<Subject> {
        Audited::audited(self)
    }
}

fn one(
    scope: &mut Scope<'_>,
    task: &NewTask,
    hand_off: &mut HandOff,
    stored: &mut Stored<'_>,
) -> Result<Submitted> {
    if let Some(idempotency) = &task.idempotency
        && let Some(answer) = known_key(scope, task, idempotency)?
    {
        return Ok(answer);
    }
    if !scope.index.has_lane(&task.lane) && is_stored(scope, task)? {
        // Nothing is stored, so no lane is opened for it either.
        return repeated(scope, task, hand_off.offer.as_ref());
    }
    if task.links.is_some() {
        if is_stored(scope, task)? {
            return repeated(scope, task, hand_off.offer.as_ref());
        }
        if let Some(refused) = refuses_links(scope, task)? {
            return Ok(refused);
        }
    }
    let Some(lane) = scope.index.lane(scope.connection, &task.lane)? else {
        return Ok(Submitted::LaneLimit);
    };
    if task.links.is_some() {
        return linked(scope, task, lane);
    }
    let granted = hand_off.takes(scope, lane, task);
    let holder = hand_off.offer.as_ref().filter(|_| granted).map(|offer| offer.session);
    if !stored.apply(scope, task, lane, holder)? {
        return repeated(scope, task, hand_off.offer.as_ref());
    }
    if let Some(idempotency) = &task.idempotency {
        remember_key(scope, task, idempotency)?;
    }
    if granted {
        return Ok(hand_off.grant(scope, task));
    }
    Ok(Submitted::Stored { at: scope.now })
}

/// Stores a task that is tied to others. It is never handed off.
fn linked(scope: &mut Scope<'_>, task: &NewTask, lane: LaneId) -> Result<Submitted> {
    stored_linked(scope, task, lane)?;
    if let Some(idempotency) = &task.idempotency {
        remember_key(scope, task, idempotency)?;
    }
    repeated(scope, task, None)
}

/// The places of a local worker that new tasks may go straight into.
struct HandOff {
    offer: Option<Claim>,
    granted: Vec<Granted>,
    /// When the first of them is overdue.
    deadline: i64,
}

impl HandOff {
    fn new(scope: &Scope<'_>, offer: Option<&Claim>) -> Self {
        let admits = |offer: &Claim| {
            let session = scope.index.sessions.get(offer.session);
            session.is_some_and(|session| session.admits(offer.sequence, &scope.index.grants))
                && !scope.index.sessions.is_isolating(offer.session, &scope.index.grants)
        };
        // An offer that is used up still tells which leases this very submit was granted before.
        let max = |offer: &Claim| if admits(offer) { offer.max } else { 0 };
        let offer = offer.map(|offer| Claim { max: max(offer), ..offer.clone() });
        Self { offer, granted: Vec::new(), deadline: i64::MAX }
    }

    /// Only a task that is due, in a lane where nothing else is: no task is overtaken.
    fn takes(&self, scope: &Scope<'_>, lane: LaneId, task: &NewTask) -> bool {
        let Some(offer) = &self.offer else { return false };
        self.granted.len() < offer.max
            && task.due_at(scope.now) <= scope.now
            && offer.accepts(&task.lane)
            && scope.index.sessions.get(offer.session).is_some_and(|session| session.serves(lane))
            && scope.index.heads.is_drained(lane, scope.now.millis())
    }

    fn grant(&mut self, scope: &Scope<'_>, task: &NewTask) -> Submitted {
        let lease = task.handed_off(FIRST_EPOCH, scope.now);
        self.deadline = self.deadline.min(lease.deadline().millis());
        self.granted.push(Granted { task: task.id, epoch: FIRST_EPOCH });
        Submitted::HandedOff { epoch: FIRST_EPOCH, granted_at: scope.now }
    }

    fn record(self, scope: &mut Scope<'_>) -> Result<()> {
        let (Some(offer), false) = (self.offer, self.granted.is_empty()) else { return Ok(()) };
        let session = scope.index.sessions.get_mut(offer.session).expect("checked when it took");
        session.note(offer.sequence, true);
        session.alone = false;
        let batch = Batch { session: offer.session, sequence: offer.sequence };
        let granted = (self.granted, self.deadline);
        scope.index.grants.add(scope.connection, batch, scope.now.millis(), granted)
    }
}

/// The same id came before: the answer of then, as far as it still holds.
fn repeated(scope: &Scope<'_>, task: &NewTask, offer: Option<&Claim>) -> Result<Submitted> {
    let batch = offer.map(|offer| Batch { session: offer.session, sequence: offer.sequence });
    let same_grant = batch.is_some() && scope.index.grants.batch_of(task.id) == batch;
    let (epoch, created_at, granted_at, is_blocked): (_, _, _, bool) = scope.connection.query_row(
        "/* submit.repeated */ SELECT epoch, created_at, granted_at, status = 0 FROM task
         WHERE id = ?",
        [task.id.as_bytes()],
        |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, Option<i64>>(2)?, row.get(3)?)),
    )?;
    if is_blocked {
        return Ok(Submitted::Blocked { at: Timestamp::clamped(created_at) });
    }
    Ok(match granted_at.filter(|_| same_grant) {
        Some(at) => Submitted::HandedOff { epoch, granted_at: Timestamp::clamped(at) },
        None => Submitted::Stored { at: Timestamp::clamped(created_at) },
    })
}

pub(super) fn key_hash(tenant: &TenantName, idempotency: &Idempotency) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hash_bytes(tenant.as_str().as_bytes(), &mut hasher);
    hash_bytes(idempotency.key.as_bytes(), &mut hasher);
    hasher.finalize().into()
}

fn known_key(
    scope: &Scope<'_>,
    task: &NewTask,
    idempotency: &Idempotency,
) -> Result<Option<Submitted>> {
    let oldest = oldest_key(scope);
    let known = scope
        .connection
        .prepare_cached(
            "/* submit.known_key */ SELECT task, body FROM idempotency
             WHERE key = ? AND created_at > ?
               AND EXISTS (SELECT 1 FROM task WHERE task.id = idempotency.task)",
        )?
        .query_row(params![key_hash(&task.lane.tenant, idempotency), oldest], |row| {
            Ok((row.get::<_, [u8; 16]>(0)?, row.get::<_, [u8; 32]>(1)?))
        })
        .optional()?;
    let Some((id, body)) = known else { return Ok(None) };
    if id == *task.id.as_bytes() || is_stored(scope, task)? {
        // This very submit, repeated after its answer was lost: the insert will notice.
        return Ok(None);
    }
    let same_body = body == idempotency.body;
    let first = Submitted::Replayed { id: TaskId::from_bytes(id) };
    Ok(Some(if same_body { first } else { Submitted::KeyReused }))
}

/// A task may outlive its key, which may then be another one's.
fn is_stored(scope: &Scope<'_>, task: &NewTask) -> Result<bool> {
    let mut statement = scope
        .connection
        .prepare_cached("/* submit.is_stored */ SELECT 1 FROM task WHERE id = ?")?;
    Ok(statement.exists([task.id.as_bytes()])?)
}

fn remember_key(scope: &Scope<'_>, task: &NewTask, idempotency: &Idempotency) -> Result<()> {
    scope
        .connection
        .prepare_cached(
            "/* submit.remember_key */ INSERT OR REPLACE INTO idempotency (key, task, body, created_at)
             VALUES (?, ?, ?, ?)",
        )?
        .execute(params![
            key_hash(&task.lane.tenant, idempotency),
            task.id.as_bytes(),
            idempotency.body,
            scope.now.millis()
        ])?;
    Ok(())
}

/// Old keys go as new ones come, two for one, so that no sweep is ever needed.
pub(super) fn forget_old_keys(scope: &Scope<'_>, keyed: usize) -> Result<()> {
    if keyed == 0 {
        return Ok(());
    }
    scope
        .connection
        .prepare_cached(
            "/* submit.forget_old_keys */ DELETE FROM idempotency WHERE key IN
             (SELECT key FROM idempotency WHERE created_at <= ? ORDER BY created_at LIMIT ?)",
        )?
        .execute(params![oldest_key(scope), keyed * 2])?;
    Ok(())
}

pub(super) fn oldest_key(scope: &Scope<'_>) -> i64 {
    let ttl = i64::try_from(IDEMPOTENCY_KEY_TTL.as_millis()).expect("a day fits");
    scope.now.millis() - ttl
}
