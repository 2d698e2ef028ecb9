//! The process dies and another one opens the store.

use std::time::Duration;

use duly_core::lease::Finished;
use duly_core::limits::LOSSES;
use duly_core::ports::store::{Ending, Extend, ExtendLeases, Submitted};
use duly_core::state::Status;
use duly_core::task::NewTask;

use super::Harness;
use super::harness::{ids, success};
use super::idempotency::keyed;

pub async fn nothing_acknowledged_is_lost(mut harness: Harness) {
    let session = harness.session(&["email"]).await;
    let mut tasks = Vec::new();
    for _ in 0..20 {
        tasks.push(harness.submit_one(harness.task("email")).await);
    }
    let ended = harness.claim(session, 5).await;
    for lease in &ended {
        harness.finish_one(session, lease, success()).await;
    }
    harness.crash().await;
    for (number, id) in tasks.iter().enumerate() {
        let expected = if number < 5 { Status::Success } else { Status::Pending };
        assert_eq!(harness.get(*id).await.status, expected);
    }
    let session = harness.session(&["email"]).await;
    assert_eq!(ids(&harness.claim(session, 100).await), tasks[5..]);
}

pub async fn leases_come_back_and_count_a_loss(mut harness: Harness) {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    harness.claim_one(session).await;
    harness.crash().await;
    let task = harness.get(id).await;
    assert_eq!((task.status, task.losses, task.charged), (Status::Pending, 1, 0));
    let session = harness.session(&["email"]).await;
    let lease = harness.claim_one(session).await;
    assert_eq!((lease.task, lease.attempt), (id, 1));
}

pub async fn the_epoch_goes_on(mut harness: Harness) {
    harness.submit_one(harness.task("email")).await;
    for epoch in 1..=4 {
        let session = harness.session(&["email"]).await;
        assert_eq!(harness.claim_one(session).await.epoch, epoch);
        harness.crash().await;
    }
}

pub async fn a_holder_from_before_is_refused(mut harness: Harness) {
    let before = harness.session(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    let stale = harness.claim_one(before).await;
    harness.crash().await;
    assert_eq!(harness.finish_one(before, &stale, success()).await, Finished::LeaseLost);
    let after = harness.session(&["email"]).await;
    let lease = harness.claim_one(after).await;
    assert_eq!(harness.get(id).await.status, Status::Running);
    assert_eq!(harness.finish_one(before, &stale, success()).await, Finished::LeaseLost);
    assert_eq!(harness.finish_one(after, &lease, success()).await, Finished::Done);
}

pub async fn a_task_that_dies_with_its_workers_ends(mut harness: Harness) {
    let id = harness.submit_one(harness.task("email")).await;
    for loss in 1..=LOSSES {
        assert_eq!(harness.get(id).await.status, Status::Pending);
        let session = harness.session(&["email"]).await;
        harness.claim_one(session).await;
        harness.crash().await;
        assert_eq!(harness.get(id).await.losses, loss);
    }
    let task = harness.get(id).await;
    assert_eq!((task.status, task.finished_at), (Status::Failed, Some(harness.now())));
    assert_eq!(task.error.unwrap().code, "WORKER_LOST");
    let session = harness.session(&["email"]).await;
    assert!(harness.claim(session, 10).await.is_empty());
}

pub async fn waiting_tasks_keep_their_time(mut harness: Harness) {
    let later = harness.task_in("email", Duration::from_secs(5));
    harness.submit_one(later.clone()).await;
    harness.crash().await;
    let session = harness.session(&["email"]).await;
    let answer = harness.ask(harness.next_claim(session, 10)).await;
    assert_eq!((answer.leases.len(), answer.next_due), (0, Some(later.run_at)));
    harness.advance(Duration::from_secs(5));
    assert_eq!(harness.claim_one(session).await.task, later.id);
}

pub async fn keys_are_remembered(mut harness: Harness) {
    let first = harness.submit_one(keyed(harness.task("email"), "k", 1)).await;
    harness.crash().await;
    let second = keyed(harness.task("email"), "k", 1);
    assert_eq!(harness.submit(&[second]).await, [Submitted::Replayed { id: first }]);
}

pub async fn a_remote_session_goes_on(mut harness: Harness) {
    let session = harness.remote(&["email"]).await;
    let ended = harness.remote(&["email"]).await;
    harness.leave(ended).await;
    for _ in 0..3 {
        harness.submit_one(harness.task("email")).await;
    }
    let claim = harness.next_claim(session, 2);
    let leases = harness.ask(&claim).await.leases;
    harness.crash().await;
    assert_eq!(harness.last_beat(ended).await, None);
    assert!(harness.beat(session, &[claim.sequence], &[]).await, "it is open still");
    assert_eq!(harness.ask(&claim).await.leases, leases, "its claim can be repeated");
    assert_eq!(harness.finish_one(session, &leases[0], success()).await, Finished::Done);
    let task = harness.get(leases[1].task).await;
    assert_eq!((task.status, task.losses), (Status::Running, 0));
    assert_eq!(harness.claim(session, 10).await.len(), 1, "it may claim");
    harness.die(session).await;
    assert_eq!(harness.get(leases[1].task).await.losses, 1, "and it may die");
}

/// What a lease is after its time is over, most of which went by before the crash: it still runs, unless
/// another process could have been told of it meanwhile.
fn unless_it_lived_on(harness: &Harness) -> Status {
    if harness.outlives_nodes() { Status::Pending } else { Status::Running }
}

pub async fn a_remote_lease_has_its_whole_time_again(mut harness: Harness) {
    let session = harness.remote(&["email"]).await;
    let timeout = Some(Duration::from_secs(5));
    let id = harness.submit_one(NewTask { timeout, ..harness.task("email") }).await;
    let claim = harness.next_claim(session, 2);
    harness.ask(&claim).await;
    harness.advance(Duration::from_secs(3600));
    harness.crash().await;
    assert!(harness.beat(session, &[claim.sequence], &[]).await);
    harness.reap().await;
    assert_eq!(
        harness.get(id).await.status,
        unless_it_lived_on(&harness),
        "no process could be told"
    );
    harness.advance(Duration::from_secs(60));
    harness.reap().await;
    assert_eq!(harness.get(id).await.status, Status::Pending);
}

pub async fn a_remote_batch_has_its_whole_time_to_be_acknowledged(mut harness: Harness) {
    let session = harness.remote(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    harness.claim_one(session).await;
    harness.advance(Duration::from_secs(3600));
    harness.crash().await;
    harness.advance(Duration::from_secs(60));
    harness.reap().await;
    assert_eq!(
        harness.get(id).await.status,
        unless_it_lived_on(&harness),
        "no process could be told"
    );
    harness.advance(Duration::from_millis(1));
    harness.reap().await;
    assert_eq!(harness.get(id).await.status, Status::Pending);
}

pub async fn what_was_seen_of_a_session_before_ends_it_no_more(mut harness: Harness) {
    let session = harness.remote(&["email"]).await;
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.extend(harness.last_beat(session).await);
        assert!(harness.beat(session, &[], &[]).await);
    }
    harness.crash().await;
    for beat in seen {
        harness.store().end_session(session, Ending::Died { beat }).await.unwrap();
        assert!(harness.last_beat(session).await.is_some(), "it has beaten since");
    }
    harness.die(session).await;
    assert_eq!(harness.last_beat(session).await, None);
}

pub async fn an_extension_outlives_it(mut harness: Harness) {
    let session = harness.remote(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    let claim = harness.next_claim(session, 1);
    let lease = harness.ask(&claim).await.leases.remove(0);
    let by = Duration::from_secs(6 * 3600);
    let leases = vec![Extend { task: id, epoch: lease.epoch, by }];
    harness.store().extend(ExtendLeases { session, leases }).await.unwrap();
    harness.crash().await;
    assert!(harness.beat(session, &[claim.sequence], &[]).await);
    harness.advance(by - Duration::from_secs(1));
    harness.reap().await;
    assert_eq!(harness.get(id).await.status, Status::Running);
    harness.advance(Duration::from_secs(1));
    harness.reap().await;
    assert_eq!(harness.get(id).await.status, Status::Pending);
}
