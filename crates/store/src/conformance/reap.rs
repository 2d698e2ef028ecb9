//! Leases that are overdue or unacknowledged.

use std::time::Duration;

use duly_core::id::SessionId;
use duly_core::lease::{Finished, Lease};
use duly_core::limits::DEADLINE_SLACK;
use duly_core::ports::store::{Extend, ExtendLeases, Extended};
use duly_core::state::Status;
use duly_core::task::NewTask;

use super::Harness;
use super::harness::{ids, success};

const MINUTE: Duration = Duration::from_secs(60);

async fn extend(harness: &Harness, session: SessionId, lease: &Lease, by: Duration) -> Extended {
    let leases = vec![Extend { task: lease.task, epoch: lease.epoch, by }];
    harness.store().extend(ExtendLeases { session, leases }).await.unwrap()[0]
}

fn short(harness: &Harness) -> NewTask {
    NewTask { timeout: Some(Duration::from_secs(5)), ..harness.task("email") }
}

pub async fn an_overdue_lease_is_a_failed_attempt(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let (hasty, slow) = (short(&harness), harness.task("email"));
    harness.submit(&[hasty.clone(), slow.clone()]).await;
    let leases = harness.claim(session, 10).await;
    harness.advance(Duration::from_secs(5) + DEADLINE_SLACK - Duration::from_millis(1));
    harness.reap().await;
    assert_eq!(harness.get(hasty.id).await.status, Status::Running, "not before its time");
    harness.advance(Duration::from_millis(1));
    harness.reap().await;
    let task = harness.get(hasty.id).await;
    assert_eq!((task.status, task.charged, task.losses), (Status::Pending, 1, 0));
    assert_eq!(task.error.unwrap().code, "TIMEOUT");
    assert!(task.run_at >= harness.now(), "it waits for its back-off");
    assert_eq!(harness.get(slow.id).await.status, Status::Running, "each has its own deadline");
    assert_eq!(harness.finish_one(session, &leases[0], success()).await, Finished::LeaseLost);
    assert_eq!(harness.finish_one(session, &leases[1], success()).await, Finished::Done);
}

pub async fn the_last_overdue_attempt_ends_the_task(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(NewTask { retries: 0, ..short(&harness) }).await;
    harness.claim_one(session).await;
    harness.advance(MINUTE);
    harness.reap().await;
    let task = harness.get(id).await;
    assert_eq!((task.status, task.finished_at), (Status::Failed, Some(harness.now())));
}

pub async fn an_extended_lease_has_its_time(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(short(&harness)).await;
    let lease = harness.claim_one(session).await;
    let deadline = harness.now().plus(MINUTE);
    assert_eq!(extend(&harness, session, &lease, MINUTE).await, Extended::Done { deadline });
    harness.advance(MINUTE - Duration::from_millis(1));
    harness.reap().await;
    assert_eq!(harness.get(id).await.status, Status::Running);
    harness.advance(Duration::from_millis(1));
    harness.reap().await;
    assert_eq!(harness.get(id).await.status, Status::Pending);
}

pub async fn an_extension_may_shorten_the_time(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    let lease = harness.claim_one(session).await;
    extend(&harness, session, &lease, Duration::from_secs(1)).await;
    harness.advance(Duration::from_secs(1));
    harness.reap().await;
    assert_eq!(harness.get(id).await.status, Status::Pending);
}

pub async fn only_its_holder_can_extend_a_lease(harness: Harness) {
    let (session, other) = (harness.session(&["email"]).await, harness.session(&["email"]).await);
    harness.submit_one(harness.task("email")).await;
    let lease = harness.claim_one(session).await;
    assert_eq!(extend(&harness, other, &lease, MINUTE).await, Extended::LeaseLost);
    harness.finish_one(session, &lease, success()).await;
    assert_eq!(extend(&harness, session, &lease, MINUTE).await, Extended::LeaseLost);
    let unknown = Lease { task: harness.task("email").id, ..lease };
    assert_eq!(extend(&harness, session, &unknown, MINUTE).await, Extended::Unknown);
}

pub async fn an_unacknowledged_lease_is_released(harness: Harness) {
    let session = harness.remote(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    let lease = harness.claim_one(session).await;
    harness.advance(MINUTE);
    harness.reap().await;
    assert_eq!(harness.get(id).await.status, Status::Running, "not before its time");
    harness.advance(Duration::from_millis(1));
    harness.reap().await;
    let task = harness.get(id).await;
    assert_eq!((task.status, task.charged, task.losses), (Status::Pending, 0, 0));
    assert_eq!(harness.finish_one(session, &lease, success()).await, Finished::LeaseLost);
}

pub async fn every_way_to_acknowledge_counts(harness: Harness) {
    let (beats, asks, ends) = (
        harness.remote(&["beats"]).await,
        harness.remote(&["asks"]).await,
        harness.remote(&["ends"]).await,
    );
    for name in ["beats", "asks", "ends", "ends"] {
        harness.submit_one(harness.task(name)).await;
    }
    let claim = harness.next_claim(beats, 10);
    let mut held = ids(&harness.ask(&claim).await.leases);
    held.extend(ids(&harness.claim(asks, 10).await));
    let pair = harness.claim(ends, 10).await;
    held.push(pair[1].task);
    assert!(harness.beat(beats, &[claim.sequence], &[]).await);
    assert!(harness.claim(asks, 10).await.is_empty());
    assert_eq!(harness.finish_one(ends, &pair[0], success()).await, Finished::Done);
    harness.advance(MINUTE * 2);
    harness.reap().await;
    for id in held {
        assert_eq!(harness.get(id).await.status, Status::Running);
    }
}

pub async fn a_batch_that_is_asked_for_again_starts_afresh(harness: Harness) {
    let session = harness.remote(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    let claim = harness.next_claim(session, 10);
    let first = harness.ask(&claim).await.leases;
    harness.advance(MINUTE);
    assert_eq!(harness.ask(&claim).await.leases, first);
    harness.advance(MINUTE);
    harness.reap().await;
    assert_eq!(harness.get(id).await.status, Status::Running);
    harness.advance(Duration::from_millis(1));
    harness.reap().await;
    assert_eq!(harness.get(id).await.status, Status::Pending);
    let again = harness.ask(&claim).await.leases;
    assert_eq!((again[0].task, again[0].epoch), (id, 2), "its session never got the first");
}

pub async fn an_echo_is_not_told_to_come_back(harness: Harness) {
    let session = harness.remote(&["email"]).await;
    harness.submit_one(harness.task("email")).await;
    let claim = harness.next_claim(session, 1);
    let lease = harness.ask(&claim).await.leases.remove(0);
    harness.finish_one(session, &lease, success()).await;
    harness.submit_one(harness.task("email")).await;
    let echo = harness.ask(&claim).await;
    assert_eq!((echo.leases.len(), echo.next_due), (0, None), "it would ask again and again");
}
