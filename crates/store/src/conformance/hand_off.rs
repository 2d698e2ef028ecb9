//! Tasks that are granted in the commit that stores them.

use std::borrow::Borrow;
use std::time::Duration;

use duly_core::ports::store::{Claim, Submit, Submitted};
use duly_core::state::Status;
use duly_core::task::NewTask;

use super::Harness;
use super::harness::{ids, success};

async fn offer(harness: &Harness, tasks: &[NewTask], offer: impl Borrow<Claim>) -> Vec<Submitted> {
    let batch = Submit { tasks: tasks.to_vec(), offer: Some(offer.borrow().clone()) };
    harness.store().submit(batch).await.unwrap()
}

fn is_handed_off(answer: &Submitted) -> bool {
    matches!(answer, Submitted::HandedOff { epoch: 1, .. })
}

pub async fn a_due_task_goes_to_a_free_slot(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let task = harness.task("email");
    let claim = harness.next_claim(session, 10);
    let answers = offer(&harness, std::slice::from_ref(&task), claim).await;
    assert_eq!(answers, [Submitted::HandedOff { epoch: 1, granted_at: harness.now() }]);
    let stored = harness.get(task.id).await;
    assert_eq!((stored.status, stored.epoch), (Status::Running, 1));
    assert_eq!(stored.granted_at, Some(harness.now()));
    assert!(harness.claim(session, 10).await.is_empty());
    let lease = task.handed_off(1, harness.now());
    harness.finish_one(session, &lease, success()).await;
    assert_eq!(harness.get(task.id).await.status, Status::Success);
}

pub async fn it_stops_when_the_slots_are_taken(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let tasks = [harness.task("email"), harness.task("email"), harness.task("email")];
    let answers = offer(&harness, &tasks, harness.next_claim(session, 2)).await;
    assert!(is_handed_off(&answers[0]) && is_handed_off(&answers[1]), "{answers:?}");
    assert_eq!(answers[2], harness.stored());
    assert_eq!(ids(&harness.claim(session, 10).await), [tasks[2].id]);
}

pub async fn no_task_of_the_lane_is_overtaken(harness: Harness) {
    let session = harness.session(&["email", "pdf"]).await;
    let waiting = harness.submit_one(harness.task_at("email", 0)).await;
    let tasks = [harness.task_at("email", 9), harness.task("pdf")];
    let answers = offer(&harness, &tasks, harness.next_claim(session, 10)).await;
    assert_eq!(answers[0], harness.stored());
    assert!(is_handed_off(&answers[1]), "another lane is not held up: {answers:?}");
    assert_eq!(ids(&harness.claim(session, 10).await), [tasks[0].id, waiting]);
}

pub async fn a_task_of_the_future_waits(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let later = harness.task_in("email", Duration::from_millis(1));
    let claim = harness.next_claim(session, 10);
    assert_eq!(offer(&harness, std::slice::from_ref(&later), claim).await, [harness.stored()]);
    // It is not due, so it holds up no task.
    let now = harness.task("email");
    let claim = harness.next_claim(session, 10);
    assert!(is_handed_off(&offer(&harness, &[now], claim).await[0]));
}

pub async fn a_type_the_session_does_not_serve_waits(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let answers = offer(&harness, &[harness.task("pdf")], harness.next_claim(session, 10)).await;
    assert_eq!(answers, [harness.stored()]);
}

pub async fn a_repeated_submit_answers_as_the_first(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let tasks = [harness.task("email"), harness.task("email")];
    let claim = harness.next_claim(session, 1);
    let first = offer(&harness, &tasks, &claim).await;
    harness.advance(Duration::from_secs(1));
    assert_eq!(offer(&harness, &tasks, &claim).await, first);
    assert_eq!(harness.get(tasks[0].id).await.epoch, 1);
}

pub async fn a_used_offer_grants_nothing_more(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let claim = harness.next_claim(session, 5);
    assert!(is_handed_off(&offer(&harness, &[harness.task("email")], &claim).await[0]));
    assert_eq!(offer(&harness, &[harness.task("email")], &claim).await, [harness.stored()]);
}
