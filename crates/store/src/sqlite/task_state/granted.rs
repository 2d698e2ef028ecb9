//! Granted: PENDING → RUNNING under the next epoch.

use duly_core::event::EventKind;
use duly_core::lease::Lease;
use duly_core::state::{Event, Status, transition};
use rusqlite::params;

use super::Scope;
use crate::sqlite::error::Result;
use crate::sqlite::index::grants::{Batch, record};
use crate::sqlite::row;

/// Grants what a claim has picked and records it as the claim's batch. The leases were read in this
/// transaction and are out of the due table.
///
/// Reading and writing are two statements: one with RETURNING would open a temporary table for
/// its rows each time, which costs more than the second look at a page that is at hand.
pub(in crate::sqlite) fn granted(
    scope: &mut Scope<'_>,
    batch: Batch,
    leases: &[Lease],
) -> Result<()> {
    if leases.is_empty() {
        return Ok(());
    }
    let status = transition(Status::Pending, Event::Grant).expect("a waiting task can be granted");
    let mut write = scope.connection.prepare_cached(
        "/* claim.grant */ UPDATE task SET status = ?3, session = ?4, epoch = ?2, granted_at = ?5
         WHERE id = ?1 AND epoch = ?2 - 1 AND status = 1",
    )?;
    for lease in leases {
        let granted = write.execute(params![
            lease.task.as_bytes(),
            lease.epoch,
            row::encode_status(status),
            batch.session.as_bytes(),
            scope.now.millis(),
        ])?;
        assert_eq!(granted, 1, "a task read in this transaction still waits");
    }
    scope.tell_all(EventKind::TaskStarted, leases.iter().map(|lease| lease.task))?;
    #[cfg(feature = "planted-bugs")]
    crate::sqlite::planted::release_children(scope, leases);
    let granted = record(leases.iter());
    scope.index.grants.add(scope.connection, batch, scope.now.millis(), granted)
}

/// [`crate::planted::PlantedBug::BeatAfterEnd`]: gives a lease back to a session that has lost it.
#[cfg(feature = "planted-bugs")]
pub(in crate::sqlite) fn granted_again(scope: &Scope<'_>, held: super::Held) -> Result<()> {
    scope.connection.execute(
        "UPDATE task SET status = 2, epoch = ?2, session = ?3 WHERE id = ?1",
        params![held.lease.task.as_bytes(), held.lease.epoch, held.session.as_bytes()],
    )?;
    Ok(())
}
