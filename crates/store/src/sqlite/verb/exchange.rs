//! Finish a batch and claim the next, in one commit.

use duly_core::ports::store::{Claim, Exchange, Exchanged};
use duly_core::time::Timestamp;
use rusqlite::{OptionalExtension as _, params};

use super::{Scope, Verb, claim, finish};
use crate::sqlite::error::Result;
use crate::sqlite::index::Index;
use crate::sqlite::index::heads::Range;
use crate::sqlite::task_state::settled::settle;

impl Verb for Exchange {
    type Answer = Exchanged;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<Exchanged> {
        let finished = finish::finish(scope, self)?;
        // What the outcomes release can be claimed at once.
        settle(scope)?;
        let echo = self.claim.as_ref().is_some_and(|claim| is_echo(scope, claim));
        let leases = match &self.claim {
            Some(claim) => claim::claim(scope, claim)?,
            None => Vec::new(),
        };
        let served = !(echo && leases.is_empty());
        let next = if served { next_due(scope, self)? } else { None };
        Ok(Exchanged { finished, leases, parents: None, next_due: next.map(Timestamp::clamped) })
    }
}

/// Whether a claim gets nothing new, whatever is due: it must not be told to come back for that.
fn is_echo(scope: &Scope<'_>, claim: &Claim) -> bool {
    let session = scope.index.sessions.get(claim.session);
    session.is_some_and(|session| !session.admits(claim.sequence, &scope.index.grants))
}

/// When this claim, or one for all lanes of the session, could be granted something. What it may not
/// have now does not count, or it would ask for it again and again.
fn next_due(scope: &Scope<'_>, exchange: &Exchange) -> Result<Option<i64>> {
    let Index { sessions, heads, grants, lanes, .. } = &*scope.index;
    let id = exchange.session;
    let Some(session) = sessions.get(id).filter(|_| !sessions.is_isolating(id, grants)) else {
        return Ok(None);
    };
    let (now, busy) = (scope.now.millis(), grants.held(id) > 0);
    let passed_by = |at: i64, range: Range| busy && range.is_quarantined() && at <= now;
    let claim = exchange.claim.as_ref();
    let serves = |lane| session.serves(lane) && claim.is_none_or(|it| lanes.accepts(it, lane));
    let next = heads.next(|at, range| serves(range.lane) && !passed_by(at, range));
    let mut nexts = vec![next];
    for (at, range) in heads.due(now) {
        if serves(range.lane) && passed_by(at, range) {
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
