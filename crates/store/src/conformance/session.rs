//! Sessions.

use duly_core::lease::Finished;
use duly_core::state::Status;

use super::Harness;
use super::harness::{retry, success};

pub async fn ending_it_puts_its_leases_back_uncharged(harness: Harness) {
    let (leaver, stayer) = (harness.session(&["email"]).await, harness.session(&["email"]).await);
    let tasks: Vec<_> = (0..3).map(|_| harness.task("email")).collect();
    harness.submit(&tasks).await;
    let done = harness.claim(leaver, 1).await.remove(0);
    harness.claim(leaver, 1).await;
    let kept = harness.claim(stayer, 1).await.remove(0);
    harness.finish_one(leaver, &done, success()).await;
    harness.store().end_session(leaver).await.unwrap();
    assert_eq!(harness.get(done.task).await.status, Status::Success);
    assert_eq!(harness.get(kept.task).await.status, Status::Running);
    let again = harness.claim_one(stayer).await;
    assert_eq!((again.attempt, again.epoch), (1, 2));
    assert_eq!(harness.get(again.task).await.losses, 0);
    assert!(harness.claim(leaver, 10).await.is_empty());
}

pub async fn ending_it_twice_is_the_same_as_once(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    harness.claim_one(session).await;
    harness.store().end_session(session).await.unwrap();
    let once = harness.get(id).await;
    harness.store().end_session(session).await.unwrap();
    assert_eq!(harness.get(id).await, once);
}

pub async fn an_ended_session_cannot_finish(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    let lease = harness.claim_one(session).await;
    harness.store().end_session(session).await.unwrap();
    for outcome in [success(), retry()] {
        assert_eq!(harness.finish_one(session, &lease, outcome).await, Finished::LeaseLost);
    }
    assert_eq!(harness.get(id).await.status, Status::Pending);
}

pub async fn its_name_shows_on_its_tasks(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    assert_eq!(harness.get(id).await.worker, None);
    let lease = harness.claim_one(session).await;
    let worker = harness.get(id).await.worker.unwrap();
    assert!(worker.starts_with("worker-"), "{worker}");
    harness.finish_one(session, &lease, success()).await;
    assert_eq!(harness.get(id).await.worker.as_deref(), Some(worker.as_str()));
}
