//! What is kept of tries that failed.

use std::sync::Arc;
use std::time::Duration;

use duly_core::lease::Finish;
use duly_core::limits::ATTEMPTS;
use duly_core::log::LogChunk;
use duly_core::name::TenantName;
use duly_core::ports::store::{Controlled, Extend, ExtendLeases, Replay, ReplayTasks};
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
        (it.attempt, it.started_at, it.ended_at, code_of(it), it.log.clone())
    });
    assert_eq!(seen.collect::<Vec<_>>(), expected);
}

pub async fn a_success_is_the_last_of_its_run(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    let lease = harness.claim_one(session).await;
    harness.finish(session, vec![lease.release()]).await;
    assert!(attempts(&harness, id).await.is_empty(), "a release is no attempt");
    let mut expected = Vec::new();
    for run in 1..=2 {
        let lease = harness.claim_one(session).await;
        harness.finish_one(session, &lease, retry_after(Some(Duration::ZERO))).await;
        expected.push((run, 1, lease.epoch, harness.now(), harness.now(), "BROKEN", None));
        let lease = harness.claim_one(session).await;
        harness.advance(Duration::from_millis(500));
        let ran = Some(Duration::from_millis(200));
        let log = Some(LogChunk { offset: 0, text: Arc::from("done") });
        let finish = Finish::new(id, lease.epoch, success());
        harness.finish(session, vec![Finish { ran, log, ..finish }]).await;
        let start = harness.now().minus(Duration::from_millis(200));
        expected.push((run, 2, lease.epoch, start, harness.now(), "", Some("done".to_owned())));
        let kept = attempts(&harness, id).await;
        let seen = kept.iter().map(|it| {
            let log = it.log.as_deref().map(str::to_owned);
            (it.run, it.attempt, it.epoch, it.started_at, it.ended_at, code_of(it), log)
        });
        assert_eq!(seen.collect::<Vec<_>>(), expected);
        assert!(kept.iter().all(|it| it.worker.is_some()), "{kept:?}");
        // The run that follows keeps it.
        let order = Replay { task: id, run, run_at: None };
        let (tenant, tasks) = (TenantName::default_tenant(), vec![order]);
        let replay = ReplayTasks { tenant, tasks, payload: None };
        assert_eq!(harness.store().replay(replay).await.unwrap(), [Controlled::Done]);
        assert_eq!(attempts(&harness, id).await.len(), expected.len());
    }
}

pub async fn the_start_of_a_handler_is_told_with_its_outcome(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let (ran, waited) = (Duration::from_millis(300), Duration::from_millis(700));
    for outcome in [success(), fail(), retry_after(None)] {
        let task = NewTask { retries: 0, ..harness.task("email") };
        let id = harness.submit_one(task).await;
        let lease = harness.claim_one(session).await;
        let running = harness.get(id).await;
        assert_eq!((running.granted_at, running.started_at), (Some(harness.now()), None));
        harness.advance(waited);
        let finish = Finish { ran: Some(ran), ..Finish::new(id, lease.epoch, outcome) };
        harness.finish(session, vec![finish]).await;
        let ended = harness.get(id).await;
        let start = harness.now().minus(ran);
        assert_eq!((ended.granted_at, ended.started_at), (Some(lease.granted_at), Some(start)));
        assert_eq!(attempts(&harness, id).await[0].started_at, start);
    }
}

pub async fn no_handler_starts_before_its_grant(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    let lease = harness.claim_one(session).await;
    harness.advance(Duration::from_millis(10));
    let ran = Some(Duration::from_secs(60));
    let finish = Finish { ran, ..Finish::new(id, lease.epoch, success()) };
    harness.finish(session, vec![finish]).await;
    assert_eq!(harness.get(id).await.started_at, Some(lease.granted_at));
}

pub async fn a_moved_deadline_is_not_a_start(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    let lease = harness.claim_one(session).await;
    let by = Duration::from_secs(60);
    let leases = vec![Extend { task: id, epoch: lease.epoch, by }];
    harness.store().extend(ExtendLeases { session, leases }).await.unwrap();
    assert_eq!(harness.get(id).await.started_at, None);
    harness.finish_one(session, &lease, success()).await;
    assert_eq!(harness.get(id).await.started_at, None, "its worker did not say");
}

pub async fn lost_ones_are_kept_too(harness: Harness) {
    let id = harness.submit_one(harness.task("email")).await;
    harness.lose("email", 1).await;
    let session = harness.session(&["email"]).await;
    let lease = harness.claim_one(session).await;
    harness.finish_one(session, &lease, fail()).await;
    let kept = attempts(&harness, id).await;
    let seen: Vec<_> = kept.iter().map(|it| (it.attempt, it.epoch, code_of(it))).collect();
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

fn code_of(attempt: &Attempt) -> &str {
    attempt.error.as_ref().map_or("", |error| &error.code)
}
