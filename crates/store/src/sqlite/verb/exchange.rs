//! Finish a batch and claim the next, in one commit.

use duly_core::ports::store::{Exchange, Exchanged};
use duly_core::time::Timestamp;

use super::{Scope, Verb, claim, finish};
use crate::sqlite::error::Result;

impl Verb for Exchange {
    type Answer = Exchanged;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<Exchanged> {
        let finished = finish::finish(scope, self.session, &self.finishes)?;
        let leases = match &self.claim {
            Some(claim) => claim::claim(scope, claim)?,
            None => Vec::new(),
        };
        let session = scope.index.sessions.get(self.session);
        let next = session.and_then(|session| scope.index.heads.next(|lane| session.serves(lane)));
        Ok(Exchanged { finished, leases, next_due: next.map(Timestamp::clamped) })
    }
}
