//! The heartbeat loop. One heartbeat keeps all leases of the session alive, and the answer names
//! leases that are gone. The server holds the answer until a lease is gone or the next heartbeat is
//! due, so that a worker learns of a cancel within milliseconds, also while it claims nothing.

use std::sync::Arc;
use std::time::Duration;

use duly_core::id::TaskId;
use duly_core::limits::{CONCURRENCY, WAIT};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::connection::{Connection, Session, session_is_gone};
use super::retry_policy::RetryPolicy;
use crate::wire::lease::seconds;
use crate::wire::{HeartbeatAnswer, HeartbeatRequest, LeaseRef};

/// How long the worker may take to name the leases that it has not started. Naming none is safe: if
/// the worker dies, more leases count as losses.
const ROLL_CALL: Duration = Duration::from_millis(100);
/// The least time that an answer may take, however short the heartbeat interval is.
const ANSWER: Duration = Duration::from_secs(1);

/// Sends heartbeats until the connection is closed.
pub(super) async fn run(connection: Arc<Connection>) {
    let mut retry_policy = RetryPolicy::new("send a heartbeat");
    let forever = async {
        loop {
            let mut changed = connection.session.subscribe();
            let session = *changed.borrow_and_update();
            let next = async {
                let start = Instant::now();
                let was_early = send_heartbeat(&connection, session, &mut retry_policy).await;
                if !was_early {
                    // A server that does not hold its answer gets no more heartbeats for it.
                    tokio::time::sleep_until(start + session.heartbeat).await;
                }
            };
            tokio::select! {
                () = next => {}
                // The claim loop noticed that the session is lost.
                _ = changed.changed() => {}
            }
        }
    };
    tokio::select! {
        () = connection.closed.cancelled() => {}
        () = forever => {}
    }
}

/// Sends a heartbeat until it is answered. Returns whether the server had a reason to answer early:
/// leases are gone, or the session is.
async fn send_heartbeat(
    connection: &Connection,
    session: Session,
    retry_policy: &mut RetryPolicy,
) -> bool {
    loop {
        let received = connection.held.lock().received(session.id);
        let unstarted = unstarted(connection).await;
        let wait_seconds = Some(seconds(session.heartbeat.min(WAIT)));
        let request = HeartbeatRequest { received, unstarted, wait_seconds };
        let answer = connection.client.heartbeat(session.id, &request);
        let in_time = session.heartbeat + session.heartbeat.max(ANSWER);
        match tokio::time::timeout(in_time, answer).await {
            Ok(Ok(answer)) => {
                retry_policy.reset();
                return handle(connection, &answer);
            }
            Ok(Err(error)) if session_is_gone(&error) => {
                connection.reopen(session.id).await;
                return true;
            }
            Ok(Err(error)) => {
                let wait = retry_policy.delay_after(&error, &*connection.random);
                tokio::time::sleep(wait.min(session.heartbeat)).await;
            }
            Err(_) => tracing::debug!("a heartbeat was not answered in time"),
        }
    }
}

fn handle(connection: &Connection, answer: &HeartbeatAnswer) -> bool {
    if connection.claim_queue.set_draining(answer.drain) {
        tracing::info!(drain = answer.drain, "the server starts or ends a drain of this worker");
    }
    let gone = LeaseRef::taken_back(&answer.lost, &answer.cancel);
    let any_gone = !gone.is_empty();
    connection.report_gone(gone);
    any_gone
}

/// The tasks of held leases that have not started.
async fn unstarted(connection: &Connection) -> Vec<TaskId> {
    if connection.held.lock().is_empty() {
        return Vec::new();
    }
    let (answer, answered) = oneshot::channel();
    // A late answer has no receiver.
    let call = Box::new(move |tasks| drop(answer.send(tasks)));
    let mut tasks = Vec::new();
    if connection.unstarted_requests.try_send(call).is_ok()
        && let Ok(Ok(waiting)) = tokio::time::timeout(ROLL_CALL, answered).await
    {
        tasks = waiting;
    }
    tasks.extend(connection.claim_queue.kept_tasks());
    tasks.truncate(CONCURRENCY);
    tasks
}
