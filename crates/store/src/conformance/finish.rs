//! Committing outcomes, and refusing those that come too late.

use std::time::Duration;

use duly_core::back_off::{BackOff, Strategy};
use duly_core::id::TaskId;
use duly_core::lease::{Finish, Finished, Lease, Outcome};
use duly_core::limits::BACK_OFF;
use duly_core::ports::store::Exchange;
use duly_core::state::Status;
use duly_core::task::NewTask;

use super::Harness;
use super::harness::{fail, ids, retry, retry_after, success};

pub async fn success_keeps_the_result(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    let lease = harness.claim_one(session).await;
    harness.advance(Duration::from_secs(1));
    assert_eq!(harness.finish_one(session, &lease, success()).await, Finished::Done);
    let task = harness.get(id).await;
    assert_eq!((task.status, task.charged, task.epoch), (Status::Success, 1, 1));
    assert_eq!(task.result.as_deref(), Some(r#"{"ok":true}"#));
    assert_eq!(task.finished_at, Some(harness.now()));
    assert!(harness.claim(session, 10).await.is_empty());
}

pub async fn a_failed_attempt_waits_for_its_back_off(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    for (attempt, wait) in [(1, 1), (2, 2), (3, 4)] {
        let lease = harness.claim_one(session).await;
        assert_eq!((lease.attempt, lease.epoch), (attempt, attempt));
        assert_eq!(harness.finish_one(session, &lease, retry()).await, Finished::Done);
        let task = harness.get(id).await;
        assert_eq!((task.status, task.charged), (Status::Pending, attempt));
        assert_eq!(task.error.unwrap().code, "BROKEN");
        assert_eq!(task.run_at, harness.now().plus(Duration::from_secs(wait)));
        harness.advance(Duration::from_secs(wait) - Duration::from_millis(1));
        assert!(harness.claim(session, 10).await.is_empty());
        harness.advance(Duration::from_millis(1));
    }
    let lease = harness.claim_one(session).await;
    harness.finish_one(session, &lease, success()).await;
    let task = harness.get(id).await;
    assert_eq!((task.status, task.charged, task.error), (Status::Success, 4, None));
}

pub async fn each_task_waits_by_its_own_policy(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let seconds = Duration::from_secs;
    let policy =
        |strategy| BackOff { strategy, base: seconds(5), cap: seconds(12), ..BackOff::default() };
    for (strategy, waits) in [
        (Strategy::None, [0, 0, 0]),
        (Strategy::Fixed, [5, 5, 5]),
        (Strategy::Linear, [5, 10, 12]),
        (Strategy::Exponential, [5, 10, 12]),
    ] {
        let back_off = policy(strategy);
        let task = NewTask { back_off, ..harness.task("email") };
        let id = harness.submit_one(task).await;
        assert_eq!(harness.get(id).await.back_off, back_off);
        for wait in waits {
            let lease = harness.claim_one(session).await;
            harness.finish_one(session, &lease, retry()).await;
            assert_eq!(harness.get(id).await.run_at, harness.now().plus(seconds(wait)));
            harness.advance(seconds(wait));
        }
        let lease = harness.claim_one(session).await;
        harness.finish_one(session, &lease, success()).await;
    }
}

pub async fn a_handler_may_ask_for_its_own_wait(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    for (asked, wait) in
        [(Duration::from_secs(77), Duration::from_secs(77)), (Duration::MAX, BACK_OFF)]
    {
        let lease = harness.claim_one(session).await;
        harness.finish_one(session, &lease, retry_after(Some(asked))).await;
        let task = harness.get(id).await;
        assert_eq!((task.status, task.run_at), (Status::Pending, harness.now().plus(wait)));
        harness.advance(wait);
    }
}

pub async fn the_last_failed_attempt_ends_the_task(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let task = NewTask { retries: 1, ..harness.task("email") };
    let id = harness.submit_one(task).await;
    let lease = harness.claim_one(session).await;
    harness.finish_one(session, &lease, retry()).await;
    harness.advance(Duration::from_secs(1));
    let lease = harness.claim_one(session).await;
    assert_eq!(harness.finish_one(session, &lease, retry()).await, Finished::Done);
    let task = harness.get(id).await;
    assert_eq!((task.status, task.charged), (Status::Failed, 2));
    assert_eq!(task.finished_at, Some(harness.now()));
    assert_eq!(task.error.unwrap().code, "BROKEN");
    assert_eq!(harness.finish_one(session, &lease, retry()).await, Finished::Done);
    harness.advance(Duration::from_secs(3600));
    assert!(harness.claim(session, 10).await.is_empty());
}

pub async fn fail_ends_the_task_at_once(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    let lease = harness.claim_one(session).await;
    assert_eq!(harness.finish_one(session, &lease, fail()).await, Finished::Done);
    let task = harness.get(id).await;
    assert_eq!((task.status, task.charged), (Status::Failed, 1));
    assert_eq!(task.error.unwrap().message, "it never works");
}

pub async fn a_release_charges_nothing(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    let lease = harness.claim_one(session).await;
    let due = harness.get(id).await.run_at;
    assert_eq!(harness.finish_one(session, &lease, Outcome::Release).await, Finished::Done);
    let task = harness.get(id).await;
    assert_eq!((task.status, task.charged, task.run_at), (Status::Pending, 0, due));
    let again = harness.claim_one(session).await;
    assert_eq!((again.task, again.attempt, again.epoch), (id, 1, 2));
}

pub async fn every_grant_raises_the_epoch(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    let outcomes = [Outcome::Release, retry(), Outcome::Release, retry()];
    for (epoch, outcome) in (1..).zip(outcomes) {
        let lease = harness.claim_one(session).await;
        assert_eq!((lease.epoch, harness.get(id).await.epoch), (epoch, epoch));
        harness.finish_one(session, &lease, outcome).await;
        assert_eq!(harness.get(id).await.epoch, epoch, "the epoch never goes back");
        harness.advance(Duration::from_secs(3600));
    }
}

pub async fn a_stale_holder_is_refused_while_its_successor_runs(harness: Harness) {
    let (old, new) = (harness.session(&["email"]).await, harness.session(&["email"]).await);
    let id = harness.submit_one(harness.task("email")).await;
    let stale = harness.claim_one(old).await;
    harness.finish_one(old, &stale, Outcome::Release).await;
    for successor in [new, old] {
        let lease = harness.claim_one(successor).await;
        let before = harness.get(id).await;
        assert_eq!(before.status, Status::Running);
        assert!(before.epoch > stale.epoch);
        for outcome in [success(), retry(), fail(), Outcome::Release] {
            assert_eq!(harness.finish_one(old, &stale, outcome).await, Finished::LeaseLost);
            assert_eq!(harness.get(id).await, before, "nothing changed");
        }
        harness.finish_one(successor, &lease, Outcome::Release).await;
    }
}

pub async fn a_repeated_finish_answers_as_the_first(harness: Harness) {
    let session = harness.session(&["email"]).await;
    for outcome in [success(), retry(), fail(), Outcome::Release] {
        let id = harness.submit_one(harness.task("email")).await;
        let lease = harness.claim_one(session).await;
        assert_eq!(harness.finish_one(session, &lease, outcome.clone()).await, Finished::Done);
        let first = harness.get(id).await;
        assert_eq!(harness.finish_one(session, &lease, outcome).await, Finished::Done);
        assert_eq!(harness.get(id).await, first);
        harness.advance(Duration::from_secs(3600));
        if first.status == Status::Pending {
            let lease = harness.claim_one(session).await;
            harness.finish_one(session, &lease, fail()).await;
        }
    }
}

pub async fn another_outcome_after_the_end_is_refused(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    let lease = harness.claim_one(session).await;
    harness.finish_one(session, &lease, success()).await;
    let ended = harness.get(id).await;
    for outcome in [retry(), fail(), Outcome::Release] {
        assert_eq!(harness.finish_one(session, &lease, outcome).await, Finished::LeaseLost);
        assert_eq!(harness.get(id).await, ended);
    }
}

pub async fn the_lease_of_another_session_cannot_be_finished(harness: Harness) {
    let (owner, thief) = (harness.session(&["email"]).await, harness.session(&["email"]).await);
    let id = harness.submit_one(harness.task("email")).await;
    let lease = harness.claim_one(owner).await;
    assert_eq!(harness.finish_one(thief, &lease, success()).await, Finished::LeaseLost);
    assert_eq!(harness.get(id).await.status, Status::Running);
    assert_eq!(harness.finish_one(owner, &lease, success()).await, Finished::Done);
}

pub async fn an_unknown_task_does_not_fail_its_batch(harness: Harness) {
    let session = harness.session(&["email"]).await;
    harness.submit_one(harness.task("email")).await;
    let lease = harness.claim_one(session).await;
    let finish = |task, epoch| Finish::new(task, epoch, success());
    let unknown = TaskId::mint(harness.now(), 77, 77);
    let batch = vec![
        finish(unknown, 1),
        finish(lease.task, lease.epoch + 1),
        finish(lease.task, lease.epoch),
    ];
    let answers = harness.finish(session, batch).await;
    assert_eq!(answers, [Finished::Unknown, Finished::LeaseLost, Finished::Done]);
}

pub async fn a_finish_and_the_next_claim_are_one_call(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let first = harness.submit_one(harness.task("email")).await;
    let second = harness.submit_one(harness.task("email")).await;
    let mut leases = harness.claim(session, 1).await;
    let lease = leases.remove(0);
    let finishes = vec![lease.release()];
    let claim = Some(harness.next_claim(session, 10));
    let answer = harness.store().exchange(Exchange { session, finishes, claim }).await.unwrap();
    assert_eq!(answer.finished, [Finished::Done]);
    assert_eq!(ids(&answer.leases), [first, second], "what was just released can be claimed");
}

pub async fn a_repeated_exchange_answers_as_the_first(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let at_once = BackOff { strategy: Strategy::None, ..BackOff::default() };
    let timeout = Some(Duration::from_secs(1));
    let overdue = NewTask { back_off: at_once, timeout, ..harness.task("email") };
    harness.submit(&[overdue, harness.task("email"), harness.task("email")]).await;
    let held = harness.claim(session, 10).await;
    harness.advance(Duration::from_secs(60));
    harness.reap().await;
    let outcomes = [retry(), retry_after(Some(Duration::ZERO)), Outcome::Release];
    let finish = |(lease, outcome): (&Lease, _)| Finish::new(lease.task, lease.epoch, outcome);
    let finishes = held.iter().zip(outcomes).map(finish).collect();
    let exchange = Exchange { session, finishes, claim: Some(harness.next_claim(session, 10)) };
    let first = harness.store().exchange(exchange.clone()).await.unwrap();
    assert_eq!(first.finished, [Finished::LeaseLost, Finished::Done, Finished::Done]);
    assert_eq!(first.leases.len(), 3, "all of them are granted again");
    let again = harness.store().exchange(exchange).await.unwrap();
    assert_eq!((again.finished, again.leases), (first.finished, first.leases));
}
