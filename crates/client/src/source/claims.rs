//! The claim loop: one request at a time, made when the worker waits for leases.
//!
//! A claim has a number, which increases only after leases arrived under it: the server repeats an
//! answer that was lost.

use std::sync::Arc;
use std::time::Duration;

use duly_core::id::SessionId;
use duly_core::lease::Lease;
use duly_core::limits::STORE_BATCH;

use super::claim_queue::ClaimAction;
use super::connection::{Connection, session_is_gone};
use super::held_leases::ClaimId;
use super::retry_policy::RetryPolicy;
use crate::error::Error;
use crate::wire::lease::seconds;
use crate::wire::{ClaimAnswer, ClaimRequest, LeaseRef};

/// How long the server may wait for tasks before it answers without leases.
const WAIT: Duration = Duration::from_secs(30);
/// How much longer the loop waits for an answer: a dead TCP connection may give no error.
const SLACK: Duration = Duration::from_secs(10);

/// Claims until the connection is closed.
pub(super) async fn run(connection: Arc<Connection>) {
    let session = connection.session.borrow().id;
    let mut claims =
        Claims { next: ClaimId { session, seq: 1 }, retry_policy: RetryPolicy::new("claim") };
    let forever = async {
        loop {
            match connection.claim_queue.next_action().await {
                ClaimAction::Claim(max) => claims.claim(&connection, max.min(STORE_BATCH)).await,
                ClaimAction::Release(leases) => release(&connection, &leases).await,
            }
        }
    };
    tokio::select! {
        () = connection.closed.cancelled() => {}
        () = forever => {}
    }
}

struct Claims {
    next: ClaimId,
    retry_policy: RetryPolicy,
}

impl Claims {
    /// Makes one request. Its leases go to the claim queue.
    async fn claim(&mut self, connection: &Connection, max: usize) {
        let mut changed = connection.session.subscribe();
        let session = changed.borrow_and_update().id;
        if self.next.session != session {
            self.next = ClaimId { session, seq: 1 };
        }
        let answer = tokio::select! {
            answer = ask(connection, self.next, max) => answer,
            // The session was lost, and the claim with it.
            _ = changed.changed() => return,
        };
        match answer {
            Some(Ok(answer)) => {
                self.retry_policy.reset();
                self.take(connection, answer);
            }
            Some(Err(error)) => self.recover(connection, session, &error).await,
            // The next request has the same number.
            None => tracing::debug!("a claim was not answered in time"),
        }
    }

    fn take(&mut self, connection: &Connection, answer: ClaimAnswer) {
        connection.report_gone(LeaseRef::taken_back(&answer.lost, &answer.cancel));
        if answer.seq != self.next.seq || answer.leases.is_empty() {
            return;
        }
        let leases = answer.leases.into_iter().map(Lease::from).collect();
        connection.receive(self.next, leases);
        self.next.seq += 1;
    }

    async fn recover(&mut self, connection: &Connection, session: SessionId, error: &Error) {
        if session_is_gone(error) {
            connection.reopen(session).await;
        } else {
            tokio::time::sleep(self.retry_policy.delay_after(error, &*connection.random)).await;
        }
    }
}

/// The answer to one claim, if it comes in time.
async fn ask(
    connection: &Connection,
    claim: ClaimId,
    max: usize,
) -> Option<Result<ClaimAnswer, Error>> {
    let wait_seconds = Some(seconds(WAIT));
    let request = ClaimRequest { wait_seconds, ..ClaimRequest::new(claim.session, claim.seq, max) };
    tokio::time::timeout(WAIT + SLACK, connection.client.claim(&request)).await.ok()
}

/// Releases leases that no claim took.
async fn release(connection: &Connection, leases: &[Lease]) {
    tracing::debug!(count = leases.len(), "releasing leases that no claim took");
    let finishes: Vec<_> = leases.iter().map(Lease::release).collect();
    connection.finish(&finishes).await;
}
