//! Finish a batch and claim the next, in one commit.

use duly_core::id::SessionId;
use duly_core::ports::store::{Claim, Exchange, Exchanged};
use duly_core::time::Timestamp;
use rusqlite::{OptionalExtension as _, params};

use super::{Scope, Verb, claim, finish};
use crate::sqlite::error::Result;
use crate::sqlite::index::Index;
use crate::sqlite::index::heads::Range;

impl Verb for Exchange {
    type Answer = Exchanged;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<Exchanged> {
        let finished = finish::finish(scope, self)?;
        let echo = self.claim.is_some_and(|claim| is_echo(scope, &claim));
        let leases = match &self.claim {
            Some(claim) => claim::claim(scope, claim)?,
            None => Vec::new(),
        };
        let served = !(echo && leases.is_empty());
        let next = if served { next_due(scope, self.session)? } else { None };
        Ok(Exchanged { finished, leases, next_due: next.map(Timestamp::clamped) })
    }
}

/// Whether a claim gets nothing new, whatever is due: it must not be told to come back for that.
fn is_echo(scope: &Scope<'_>, claim: &Claim) -> bool {
    let session = scope.index.sessions.get(claim.session);
    session.is_some_and(|session| !session.admits(claim.sequence, &scope.index.grants))
}

/// When a claim of this session could be granted something. What it may not have now does not
/// count, or it would ask for it again and again.
fn next_due(scope: &Scope<'_>, id: SessionId) -> Result<Option<i64>> {
    let Index { sessions, heads, grants, .. } = &*scope.index;
    let Some(session) = sessions.get(id).filter(|_| !sessions.is_isolating(id, grants)) else {
        return Ok(None);
    };
    let (now, busy) = (scope.now.millis(), grants.held(id) > 0);
    let passed_by = |at: i64, range: Range| busy && range.is_suspect() && at <= now;
    let next = heads.next(|at, range| session.serves(range.lane) && !passed_by(at, range));
    let mut nexts = vec![next];
    for (at, range) in heads.due(now) {
        if session.serves(range.lane) && passed_by(at, range) {
            nexts.push(next_in(scope, range)?);
        }
    }
    Ok(nexts.into_iter().flatten().min())
}

/// The first task of a range that is not due yet.
fn next_in(scope: &Scope<'_>, range: Range) -> Result<Option<i64>> {
    let mut statement = scope.connection.prepare_cached(
        "/* due.next */ SELECT run_at FROM due WHERE lane = ? AND rank = ? AND run_at > ?
         ORDER BY run_at LIMIT 1",
    )?;
    let key = params![range.lane, range.rank, scope.now.millis()];
    Ok(statement.query_row(key, |row| row.get(0)).optional()?)
}
