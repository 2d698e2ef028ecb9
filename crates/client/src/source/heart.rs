//! The loop that beats: one sign of life for everything that is held. The answer tells which leases are
//! gone. The server keeps it until there is something to tell or the next beat is due, so that a worker
//! learns of a cancellation within milliseconds, also while it claims nothing.

use std::sync::Arc;
use std::time::Duration;

use duly_core::id::TaskId;
use duly_core::limits::{CONCURRENCY, WAIT};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::link::{Link, Session, session_is_gone};
use super::patience::Patience;
use crate::wire::lease::seconds;
use crate::wire::{HeartbeatAnswer, HeartbeatRequest, LeaseRef};

/// How long the worker may take to say what it has not started. Saying nothing is safe: should
/// it die, more is counted as lost.
const ROLL_CALL: Duration = Duration::from_millis(100);
/// How long an answer may take at least, however often the server wants a beat.
const ANSWER: Duration = Duration::from_secs(1);

/// Beats until the link is closed.
pub(super) async fn run(link: Arc<Link>) {
    let mut patience = Patience::new("send a heartbeat");
    let forever = async {
        loop {
            let mut changed = link.session.subscribe();
            let session = *changed.borrow_and_update();
            let next = async {
                let begun = Instant::now();
                let news = beat(&link, session, &mut patience).await;
                if !news {
                    // A server that answers at once must not be asked again at once.
                    tokio::time::sleep_until(begun + session.heartbeat).await;
                }
            };
            tokio::select! {
                () = next => {}
                // Somebody else has noticed that the session is lost.
                _ = changed.changed() => {}
            }
        }
    };
    tokio::select! {
        () = link.closed.cancelled() => {}
        () = forever => {}
    }
}

/// Beats until it is answered; whether there was something to tell.
async fn beat(link: &Link, session: Session, patience: &mut Patience) -> bool {
    loop {
        let received = link.held.lock().received(session.id);
        let unstarted = unstarted(link).await;
        let wait_seconds = Some(seconds(session.heartbeat.min(WAIT)));
        let request = HeartbeatRequest { received, unstarted, wait_seconds };
        let answer = link.client.heartbeat(session.id, &request);
        let in_time = session.heartbeat + session.heartbeat.max(ANSWER);
        match tokio::time::timeout(in_time, answer).await {
            Ok(Ok(answer)) => {
                patience.rest();
                return hear(link, &answer);
            }
            Ok(Err(error)) if session_is_gone(&error) => {
                link.reopen(session.id).await;
                return true;
            }
            Ok(Err(error)) => {
                let wait = patience.after(&error, &*link.random);
                tokio::time::sleep(wait.min(session.heartbeat)).await;
            }
            Err(_) => tracing::debug!("a heartbeat was not answered in time"),
        }
    }
}

fn hear(link: &Link, answer: &HeartbeatAnswer) -> bool {
    if link.desk.drain(answer.drain) {
        tracing::info!(drain = answer.drain, "the server has changed what it wants of this worker");
    }
    let gone = LeaseRef::taken_back(&answer.lost, &answer.cancel);
    let news = !gone.is_empty();
    link.lose(gone);
    news
}

/// What is held and has not started.
async fn unstarted(link: &Link) -> Vec<TaskId> {
    if link.held.lock().is_empty() {
        return Vec::new();
    }
    let (answer, answered) = oneshot::channel();
    // An answer that comes too late is of no use to anybody.
    let call = Box::new(move |tasks| drop(answer.send(tasks)));
    let mut tasks = Vec::new();
    if link.roll_calls.try_send(call).is_ok()
        && let Ok(Ok(waiting)) = tokio::time::timeout(ROLL_CALL, answered).await
    {
        tasks = waiting;
    }
    tasks.extend(link.desk.kept());
    tasks.truncate(CONCURRENCY);
    tasks
}
