//! The batches of leases that have ended, and the holders who are to be notified.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::state::{TaskState, each};
use crate::postgres::error::Result;
use crate::postgres::verb::Scope;

/// Live leases that have ended, by session and claim.
pub(super) type Batches = BTreeMap<(Uuid, i64), i32>;

#[derive(Clone, Copy, Debug)]
pub(super) struct EndedLease {
    session: Uuid,
    sequence: i64,
    /// Whether its holder has reported the end, and so has received its batch.
    acknowledged: bool,
}

impl EndedLease {
    pub(super) fn of(state: &TaskState, acknowledged: bool) -> Option<Self> {
        let (session, sequence) = (state.session?, state.sequence?);
        Some(Self { session, sequence, acknowledged })
    }
}

/// A lease whose holder is to be notified that it is gone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Revocation {
    session: Uuid,
    task: Uuid,
    epoch: i32,
}

impl Revocation {
    pub(super) fn of(state: &TaskState) -> Option<Self> {
        Some(Self { session: state.session?, task: state.id, epoch: state.epoch })
    }
}

/// Marks tasks that their handlers' transactions have ended: their batches know of it now.
pub(super) async fn acknowledge(scope: &Scope<'_>, tasks: &[Uuid]) -> Result<()> {
    if !tasks.is_empty() {
        let update = "/* task.acknowledge */ UPDATE duly.task SET sequence = ~sequence
            WHERE id = ANY($1) AND sequence < 0";
        scope.execute(update, &[&tasks]).await?;
    }
    Ok(())
}

pub(super) async fn end(scope: &Scope<'_>, leases: &[EndedLease]) -> Result<()> {
    for acknowledged in [true, false] {
        let mut batches = Batches::new();
        for lease in leases.iter().filter(|it| it.acknowledged == acknowledged) {
            *batches.entry((lease.session, lease.sequence)).or_default() += 1;
        }
        end_batches(scope, batches, acknowledged).await?;
    }
    Ok(())
}

pub(super) async fn end_batches(
    scope: &Scope<'_>,
    batches: Batches,
    acknowledged: bool,
) -> Result<()> {
    if batches.is_empty() {
        return Ok(());
    }
    let (sessions, sequences): (Vec<_>, Vec<_>) = batches.keys().copied().unzip();
    let counts: Vec<_> = batches.into_values().collect();
    let end = "/* lease.end */ SELECT duly.end_batch_leases($1, $2, $3, $4)";
    scope.query(end, &[&sessions, &sequences, &counts, &acknowledged]).await?;
    Ok(())
}

pub(super) async fn revoke(scope: &mut Scope<'_>, mut revoked: Vec<Revocation>) -> Result<()> {
    if revoked.is_empty() {
        return Ok(());
    }
    let insert = "/* lease.revoke */ INSERT INTO duly.revocation AS r (session, task, epoch)
        SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::integer[])
        ON CONFLICT (session, task) DO UPDATE SET epoch = excluded.epoch";
    revoked.sort_unstable_by_key(|it| (it.session, it.task));
    let (sessions, tasks) = (each(&revoked, |it| it.session), each(&revoked, |it| it.task));
    scope.execute(insert, &[&sessions, &tasks, &each(&revoked, |it| it.epoch)]).await?;
    scope.wakes.revoke();
    Ok(())
}
