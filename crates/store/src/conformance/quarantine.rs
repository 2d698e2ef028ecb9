//! Tasks that may have killed their workers.

use std::time::Duration;

use duly_core::limits::QUARANTINE_LOSSES;
use duly_core::name::TenantName;
use duly_core::ports::store::{Replay, ReplayTasks, Submit, Submitted};
use duly_core::state::Status;

use super::Harness;
use super::harness::{fail, ids, success};

/// Stores a quarantined task that is due, and then two other tasks.
async fn quarantined_and_others(harness: &Harness) -> [duly_core::id::TaskId; 3] {
    let quarantined = harness.submit_one(harness.task("email")).await;
    harness.lose("email", QUARANTINE_LOSSES).await;
    assert_eq!(harness.get(quarantined).await.losses, QUARANTINE_LOSSES);
    harness.advance(Duration::from_millis(1));
    let one = harness.submit_one(harness.task("email")).await;
    let two = harness.submit_one(harness.task("email")).await;
    [quarantined, one, two]
}

pub async fn one_is_granted_alone(harness: Harness) {
    let [quarantined, one, two] = quarantined_and_others(&harness).await;
    let session = harness.session(&["email"]).await;
    let alone = harness.claim_one(session).await;
    assert_eq!(alone.task, quarantined);
    let beside = harness.ask(harness.next_claim(session, 10)).await;
    assert_eq!((beside.leases.len(), beside.next_due), (0, None), "nothing beside it");
    harness.finish_one(session, &alone, success()).await;
    assert_eq!(ids(&harness.claim(session, 10).await), [one, two]);
}

pub async fn a_busy_session_makes_room_for_one(harness: Harness) {
    let session = harness.session(&["email"]).await;
    harness.submit_one(harness.task("email")).await;
    let busy = harness.claim_one(session).await;
    let [quarantined, one, two] = quarantined_and_others(&harness).await;
    let blocked = harness.ask(harness.next_claim(session, 10)).await;
    assert_eq!((blocked.leases.len(), blocked.next_due), (0, None));
    harness.finish_one(session, &busy, success()).await;
    let alone = harness.claim_one(session).await;
    assert_eq!(alone.task, quarantined);
    harness.finish_one(session, &alone, success()).await;
    assert_eq!(ids(&harness.claim(session, 10).await), [one, two]);
}

pub async fn what_comes_before_one_is_granted_without_it(harness: Harness) {
    let quarantined = harness.submit_one(harness.task_at("email", 0)).await;
    harness.lose("email", QUARANTINE_LOSSES).await;
    let first = harness.submit_one(harness.task_at("email", 9)).await;
    let session = harness.session(&["email"]).await;
    let lease = harness.claim_one(session).await;
    assert_eq!(lease.task, first);
    harness.finish_one(session, &lease, success()).await;
    assert_eq!(harness.claim_one(session).await.task, quarantined);
}

pub async fn other_sessions_pass_by_one_that_is_waited_for(harness: Harness) {
    let (waiter, other) = (harness.session(&["email"]).await, harness.session(&["email"]).await);
    for _ in 0..2 {
        harness.submit_one(harness.task("email")).await;
    }
    let busy = [harness.claim(waiter, 1).await.remove(0), harness.claim(other, 1).await.remove(0)];
    let [quarantined, one, two] = quarantined_and_others(&harness).await;
    assert!(harness.claim(waiter, 10).await.is_empty(), "it waits for the quarantined task");
    let later = harness.task_in("email", Duration::from_secs(5));
    harness.submit_one(later.clone()).await;
    let passed = harness.ask(harness.next_claim(other, 10)).await;
    assert_eq!(ids(&passed.leases), [one, two]);
    assert_eq!(passed.next_due, Some(later.run_at), "the quarantined task is not for it");
    harness.finish_one(waiter, &busy[0], success()).await;
    assert_eq!(harness.claim_one(waiter).await.task, quarantined);
}

pub async fn an_idle_session_takes_one_at_once(harness: Harness) {
    let waiter = harness.session(&["email"]).await;
    harness.submit_one(harness.task("email")).await;
    harness.claim_one(waiter).await;
    let [quarantined, ..] = quarantined_and_others(&harness).await;
    assert!(harness.claim(waiter, 10).await.is_empty());
    let idle = harness.session(&["email"]).await;
    assert_eq!(harness.claim_one(idle).await.task, quarantined);
}

pub async fn nothing_is_handed_to_its_session(harness: Harness) {
    let quarantined = harness.submit_one(harness.task("email")).await;
    harness.lose("email", QUARANTINE_LOSSES).await;
    let session = harness.session(&["email", "other"]).await;
    assert_eq!(harness.claim_one(session).await.task, quarantined);
    let offer = Some(harness.next_claim(session, 10));
    let submit = Submit { tasks: vec![harness.task("other")], offer };
    assert_eq!(harness.store().submit(submit).await.unwrap(), [harness.stored()]);
}

pub async fn a_session_that_has_waited_is_handed_a_whole_batch(harness: Harness) {
    let session = harness.session(&["email", "other"]).await;
    harness.submit_one(harness.task("email")).await;
    let busy = harness.claim_one(session).await;
    quarantined_and_others(&harness).await;
    assert!(harness.claim(session, 10).await.is_empty(), "it waits for the quarantined task");
    let late = Some(harness.next_claim(session, 10));
    let batch = |offer| Submit { tasks: vec![harness.task("other"), harness.task("other")], offer };
    let kept = harness.store().submit(batch(late)).await.unwrap();
    assert_eq!(kept, [harness.stored(); 2], "it still holds something");
    let others = harness.session(&["other"]).await;
    assert_eq!(harness.claim(others, 10).await.len(), 2);
    harness.finish_one(session, &busy, success()).await;
    let free = Some(harness.next_claim(session, 10));
    let handed = harness.store().submit(batch(free)).await.unwrap();
    assert!(handed.iter().all(|it| matches!(it, Submitted::HandedOff { .. })), "{handed:?}");
}

pub async fn a_restart_does_not_clear_one(mut harness: Harness) {
    let [quarantined, ..] = quarantined_and_others(&harness).await;
    harness.crash().await;
    let session = harness.session(&["email"]).await;
    assert_eq!(harness.claim_one(session).await.task, quarantined);
}

pub async fn a_replay_clears_one(harness: Harness) {
    let quarantined = harness.submit_one(harness.task("email")).await;
    harness.lose("email", QUARANTINE_LOSSES).await;
    let session = harness.session(&["email"]).await;
    let lease = harness.claim_one(session).await;
    harness.finish_one(session, &lease, fail()).await;
    let (tenant, payload) = (TenantName::default_tenant(), None);
    let tasks = vec![Replay { task: quarantined, run: 1, run_at: None }];
    harness.store().replay(ReplayTasks { tenant, tasks, payload }).await.unwrap();
    let other = harness.submit_one(harness.task("email")).await;
    assert_eq!(harness.get(quarantined).await.losses, 0);
    let together = harness.claim(session, 10).await;
    assert_eq!(together.len(), 2);
    assert!(ids(&together).contains(&other));
}

pub async fn it_can_be_cancelled(harness: Harness) {
    let [quarantined, one, two] = quarantined_and_others(&harness).await;
    let order = duly_core::ports::store::CancelTasks {
        tenant: TenantName::default_tenant(),
        tasks: vec![quarantined],
        reason: "it kills".to_owned(),
    };
    harness.store().cancel(order).await.unwrap();
    assert_eq!(harness.get(quarantined).await.status, Status::Cancelled);
    let session = harness.session(&["email"]).await;
    assert_eq!(ids(&harness.claim(session, 10).await), [one, two]);
}

pub async fn a_session_that_holds_nothing_keeps_none_waiting(harness: Harness) {
    let (waiter, other) = (harness.session(&["email"]).await, harness.session(&["email"]).await);
    for _ in 0..2 {
        harness.submit_one(harness.task("email")).await;
    }
    let held = harness.claim(waiter, 1).await.remove(0);
    harness.claim(other, 1).await;
    quarantined_and_others(&harness).await;
    assert!(harness.claim(waiter, 10).await.is_empty(), "it waits for the quarantined task");
    harness.finish_one(waiter, &held, success()).await;
    assert!(harness.claim(other, 10).await.is_empty(), "now the other one waits for it");
}
