//! What is kept of tries that failed.

use std::sync::Arc;
use std::time::Duration;

use duly_core::lease::Finish;
use duly_core::limits::ATTEMPTS;
use duly_core::log::LogChunk;
use duly_core::name::TenantName;
use duly_core::task::{Attempt, NewTask};

use super::Harness;
use super::harness::{fail, retry_after, success};

async fn attempts(harness: &Harness, id: duly_core::id::TaskId) -> Vec<Attempt> {
    let kept = harness.store().attempts(&TenantName::default_tenant(), id).await.unwrap();
    kept.expect("the task is stored")
}

pub async fn failed_ones_are_kept_in_order(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    assert!(attempts(&harness, id).await.is_empty());
    let mut expected = Vec::new();
    for attempt in 1..=3 {
        let lease = harness.claim_one(session).await;
        harness.advance(Duration::from_millis(250));
        let outcome = if attempt < 3 { retry_after(Some(Duration::ZERO)) } else { fail() };
        let code = if attempt < 3 { "BROKEN" } else { "HOPELESS" };
        let log: Option<Arc<str>> = (attempt == 2).then(|| Arc::from("one\ntwo"));
        let chunk = log.clone().map(|text| LogChunk { offset: 0, text });
        let finish = Finish { log: chunk, ..Finish::new(id, lease.epoch, outcome) };
        harness.finish(session, vec![finish]).await;
        expected.push((attempt, lease.granted_at, harness.now(), code, log));
    }
    let kept = attempts(&harness, id).await;
    let worker = harness.get(id).await.worker;
    let seen = kept.iter().map(|it| {
        assert_eq!((it.run, it.epoch, &it.worker), (1, it.attempt, &worker));
        (it.attempt, it.started_at, it.ended_at, it.error.code.as_str(), it.log.clone())
    });
    assert_eq!(seen.collect::<Vec<_>>(), expected);
}

pub async fn successes_and_releases_are_not(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    let lease = harness.claim_one(session).await;
    harness.finish(session, vec![lease.release()]).await;
    let lease = harness.claim_one(session).await;
    harness.finish_one(session, &lease, success()).await;
    assert!(attempts(&harness, id).await.is_empty());
}

pub async fn lost_ones_are_kept_too(harness: Harness) {
    let id = harness.submit_one(harness.task("email")).await;
    harness.lose("email", 1).await;
    let session = harness.session(&["email"]).await;
    let lease = harness.claim_one(session).await;
    harness.finish_one(session, &lease, fail()).await;
    let kept = attempts(&harness, id).await;
    let seen: Vec<_> =
        kept.iter().map(|it| (it.attempt, it.epoch, it.error.code.as_str())).collect();
    assert_eq!(seen, [(1, 1, "WORKER_LOST"), (1, 2, "HOPELESS")]);
    assert_ne!(kept[0].worker, kept[1].worker);
}

pub async fn only_the_last_ones_are_kept(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(NewTask { retries: 1000, ..harness.task("email") }).await;
    for _ in 0..ATTEMPTS + 3 {
        let lease = harness.claim_one(session).await;
        harness.finish_one(session, &lease, retry_after(Some(Duration::ZERO))).await;
    }
    let kept: Vec<_> = attempts(&harness, id).await.iter().map(|it| it.attempt as usize).collect();
    assert_eq!(kept, (4..=ATTEMPTS + 3).collect::<Vec<_>>());
}

pub async fn a_refused_outcome_is_no_attempt(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    let lease = harness.claim_one(session).await;
    harness.leave(session).await;
    harness.finish_one(session, &lease, fail()).await;
    assert!(attempts(&harness, id).await.is_empty());
}

pub async fn those_of_another_tenant_are_absent(harness: Harness) {
    let id = harness.submit_one(harness.task("email")).await;
    let other = TenantName::new("other").unwrap();
    assert_eq!(harness.store().attempts(&other, id).await.unwrap(), None);
    let unknown = harness.task("email").id;
    let own = TenantName::default_tenant();
    assert_eq!(harness.store().attempts(&own, unknown).await.unwrap(), None);
}
