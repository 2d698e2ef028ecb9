//! Idempotency keys.

use std::time::Duration;

use duly_core::name::TenantName;
use duly_core::ports::store::Submitted;
use duly_core::task::{Idempotency, NewTask};

use super::Harness;

pub(super) fn keyed(task: NewTask, key: &str, body: u8) -> NewTask {
    let idempotency = Idempotency { key: key.to_owned(), body: [body; 32] };
    NewTask { idempotency: Some(idempotency), ..task }
}

pub async fn the_same_key_and_body_give_the_first_task(harness: Harness) {
    let first = harness.submit_one(keyed(harness.task("email"), "k", 1)).await;
    let second = keyed(harness.task("email"), "k", 1);
    assert_eq!(harness.submit(&[second]).await, [Submitted::Replayed { id: first }]);
    let session = harness.session(&["email"]).await;
    assert_eq!(harness.claim_one(session).await.task, first);
}

pub async fn the_same_key_with_another_body_is_refused(harness: Harness) {
    harness.submit_one(keyed(harness.task("email"), "k", 1)).await;
    let batch = [keyed(harness.task("email"), "k", 2), harness.task("email")];
    assert_eq!(harness.submit(&batch).await, [Submitted::KeyReused, harness.stored()]);
    let session = harness.session(&["email"]).await;
    assert_eq!(harness.claim(session, 10).await.len(), 2);
}

pub async fn tenants_do_not_share_keys(harness: Harness) {
    harness.submit_one(keyed(harness.task("email"), "k", 1)).await;
    let mut other = keyed(harness.task("email"), "k", 2);
    other.lane.tenant = TenantName::new("other").unwrap();
    assert_eq!(harness.submit(&[other]).await, [harness.stored()]);
}

pub async fn a_key_is_forgotten_after_a_day(harness: Harness) {
    let day = Duration::from_secs(24 * 60 * 60);
    let first = harness.submit_one(keyed(harness.task("email"), "k", 1)).await;
    harness.advance(day - Duration::from_millis(1));
    let second = keyed(harness.task("email"), "k", 1);
    assert_eq!(harness.submit(&[second]).await, [Submitted::Replayed { id: first }]);
    harness.advance(Duration::from_millis(1));
    let third = harness.submit_one(keyed(harness.task("email"), "k", 2)).await;
    let fourth = keyed(harness.task("email"), "k", 2);
    assert_eq!(harness.submit(&[fourth]).await, [Submitted::Replayed { id: third }]);
}

pub async fn one_key_twice_in_a_batch_gives_one_task(harness: Harness) {
    let batch = [keyed(harness.task("email"), "k", 1), keyed(harness.task("email"), "k", 1)];
    let expected = [harness.stored(), Submitted::Replayed { id: batch[0].id }];
    assert_eq!(harness.submit(&batch).await, expected);
    // The whole call again, as after a lost answer.
    assert_eq!(harness.submit(&batch).await, expected);
}

pub async fn a_repeated_id_is_answered_before_its_key(harness: Harness) {
    let first = keyed(harness.task("email"), "k", 1);
    harness.submit_one(first.clone()).await;
    let answer = harness.stored();
    harness.advance(Duration::from_secs(24 * 60 * 60));
    let second = keyed(harness.task("email"), "k", 2);
    harness.submit_one(second.clone()).await;
    // The key is the second one's now, and the first is stored all the same.
    assert_eq!(harness.submit(&[first, second]).await, [answer, harness.stored()]);
}

pub async fn one_id_twice_in_a_batch_is_judged_by_each_key(harness: Harness) {
    let first = harness.submit_one(keyed(harness.task("email"), "a", 1)).await;
    harness.submit_one(keyed(harness.task("email"), "b", 1)).await;
    let task = harness.task("email");
    // Refused once, it is not stored, and comes again under another key.
    let batch = [keyed(task.clone(), "b", 2), keyed(task, "a", 1)];
    let expected = [Submitted::KeyReused, Submitted::Replayed { id: first }];
    assert_eq!(harness.submit(&batch).await, expected);
}
