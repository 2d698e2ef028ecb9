//! The loop that claims: one request at a time, made when somebody asks for leases.
//!
//! A claim has a number. It goes up only after leases arrived under it, so that an answer that
//! was lost on the way is given again.

use std::sync::Arc;
use std::time::Duration;

use duly_core::id::SessionId;
use duly_core::lease::Lease;
use duly_core::limits::STORE_BATCH;

use super::desk::Errand;
use super::held::Batch;
use super::link::{Link, session_is_gone};
use super::patience::Patience;
use crate::error::Error;
use crate::wire::lease::seconds;
use crate::wire::{ClaimAnswer, ClaimRequest, LeaseRef};

/// How long the server may wait for work before it answers with none.
const WAIT: Duration = Duration::from_secs(30);
/// How much later than that an answer may come: a connection that died silently looks the same.
const SLACK: Duration = Duration::from_secs(10);

/// Claims until the link is closed.
pub(super) async fn run(link: Arc<Link>) {
    let session = link.session.borrow().id;
    let mut claims = Claims { next: Batch { session, seq: 1 }, patience: Patience::new("claim") };
    let forever = async {
        loop {
            match link.desk.errand().await {
                Errand::Claim(max) => claims.claim(&link, max.min(STORE_BATCH)).await,
                Errand::Release(leases) => release(&link, &leases).await,
            }
        }
    };
    tokio::select! {
        () = link.closed.cancelled() => {}
        () = forever => {}
    }
}

struct Claims {
    next: Batch,
    patience: Patience,
}

impl Claims {
    /// Asks once; what it brings lies on the desk.
    async fn claim(&mut self, link: &Link, max: usize) {
        let mut changed = link.session.subscribe();
        let session = changed.borrow_and_update().id;
        if self.next.session != session {
            self.next = Batch { session, seq: 1 };
        }
        let answer = tokio::select! {
            answer = ask(link, self.next, max) => answer,
            // The session was lost, and the claim with it.
            _ = changed.changed() => return,
        };
        match answer {
            Some(Ok(answer)) => {
                self.patience.rest();
                self.take(link, answer);
            }
            Some(Err(error)) => self.endure(link, session, &error).await,
            // Asked again, with the same number.
            None => tracing::debug!("a claim was not answered in time"),
        }
    }

    fn take(&mut self, link: &Link, answer: ClaimAnswer) {
        link.lose(LeaseRef::taken_back(&answer.lost, &answer.cancel));
        if answer.seq != self.next.seq || answer.leases.is_empty() {
            return;
        }
        let leases = answer.leases.into_iter().map(Lease::from).collect();
        link.receive(self.next, leases);
        self.next.seq += 1;
    }

    async fn endure(&mut self, link: &Link, session: SessionId, error: &Error) {
        if session_is_gone(error) {
            link.reopen(session).await;
        } else {
            tokio::time::sleep(self.patience.after(error, &*link.random)).await;
        }
    }
}

/// The answer to one claim, if it comes in time.
async fn ask(link: &Link, batch: Batch, max: usize) -> Option<Result<ClaimAnswer, Error>> {
    let wait_seconds = Some(seconds(WAIT));
    let claim = ClaimRequest { wait_seconds, ..ClaimRequest::new(batch.session, batch.seq, max) };
    tokio::time::timeout(WAIT + SLACK, link.client.claim(&claim)).await.ok()
}

/// Hands back what nobody asked for.
async fn release(link: &Link, leases: &[Lease]) {
    tracing::debug!(count = leases.len(), "leases that nobody asked for are handed back");
    let finishes: Vec<_> = leases.iter().map(Lease::release).collect();
    link.finish(&finishes).await;
}
