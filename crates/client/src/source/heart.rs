//! The loop that beats: one sign of life for everything that is held. The answer tells which
//! leases are gone.

use std::sync::Arc;
use std::time::Duration;

use duly_core::id::TaskId;
use duly_core::limits::CONCURRENCY;
use tokio::sync::oneshot;

use super::link::{Link, Session, session_is_gone};
use super::patience::Patience;
use crate::wire::{HeartbeatAnswer, HeartbeatRequest};

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
                tokio::time::sleep(session.heartbeat).await;
                beat(&link, session, &mut patience).await;
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

/// Beats until it is answered.
async fn beat(link: &Link, session: Session, patience: &mut Patience) {
    loop {
        let received = link.held.lock().received(session.id);
        let request = HeartbeatRequest { received, unstarted: unstarted(link).await };
        let answer = link.client.heartbeat(session.id, &request);
        match tokio::time::timeout(session.heartbeat.max(ANSWER), answer).await {
            Ok(Ok(answer)) => {
                patience.rest();
                return hear(link, &answer);
            }
            Ok(Err(error)) if session_is_gone(&error) => return link.reopen(session.id).await,
            Ok(Err(error)) => {
                let wait = patience.after(&error, &*link.random);
                tokio::time::sleep(wait.min(session.heartbeat)).await;
            }
            Err(_) => tracing::debug!("a heartbeat was not answered in time"),
        }
    }
}

fn hear(link: &Link, answer: &HeartbeatAnswer) {
    if link.desk.drain(answer.drain) {
        tracing::info!(drain = answer.drain, "the server has changed what it wants of this worker");
    }
    let gone = answer.taken_back();
    if !gone.is_empty() {
        // Nobody listens once the worker was dropped.
        let _ = link.gone.send(gone);
    }
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
