//! Extend: give leases more time.

use duly_core::ports::store::{Extend, ExtendLeases, Extended};
use rusqlite::{OptionalExtension as _, params};

use super::{Scope, Verb};
use crate::sqlite::error::Result;
use crate::sqlite::index::grants::Granted;

impl Verb for ExtendLeases {
    type Answer = Vec<Extended>;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<Vec<Extended>> {
        self.leases.iter().map(|lease| one(scope, self, lease)).collect()
    }
}

fn one(scope: &mut Scope<'_>, order: &ExtendLeases, lease: &Extend) -> Result<Extended> {
    let held = scope
        .connection
        .prepare_cached(
            "/* extend */ SELECT epoch = ?2 AND session IS ?3 AND status = 2, lane FROM task
             WHERE id = ?1",
        )?
        .query_row(params![lease.task.as_bytes(), lease.epoch, order.session.as_bytes()], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    Ok(match held {
        None => Extended::Unknown,
        Some((_, lane)) if scope.index.is_foreign(order.session, lane)? => Extended::Unknown,
        Some((false, _)) => Extended::LeaseLost,
        Some((true, _)) => {
            let deadline = scope.now.plus(lease.by);
            let granted = Granted { task: lease.task, epoch: lease.epoch };
            scope.index.grants.extend(scope.connection, granted, deadline.millis())?;
            Extended::Done { deadline }
        }
    })
}
