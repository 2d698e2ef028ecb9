//! Cancel, replay and retry.

use std::sync::Arc;
use std::time::Duration;

use duly_core::id::TaskId;
use duly_core::lease::{Finished, Outcome};
use duly_core::name::TenantName;
use duly_core::ports::store::{CancelTasks, Controlled, Replay, ReplayTasks, RetryTasks};
use duly_core::state::Status;

use super::Harness;
use super::harness::{fail, ids, retry, success};

async fn cancel(harness: &Harness, task: TaskId) -> Controlled {
    let (tenant, tasks) = (TenantName::default_tenant(), vec![task]);
    let order = CancelTasks { tenant, tasks, reason: "changed my mind".to_owned() };
    harness.store().cancel(order).await.unwrap()[0]
}

async fn replay(harness: &Harness, task: TaskId, payload: Option<&str>) -> Controlled {
    let run = harness.get(task).await.run;
    replay_run(harness, Replay { task, run, run_at: None }, payload).await
}

async fn replay_run(harness: &Harness, replay: Replay, payload: Option<&str>) -> Controlled {
    let (tenant, tasks) = (TenantName::default_tenant(), vec![replay]);
    let order = ReplayTasks { tenant, tasks, payload: payload.map(Arc::from) };
    harness.store().replay(order).await.unwrap()[0]
}

async fn retry_now(harness: &Harness, task: TaskId) -> Controlled {
    let (tenant, tasks) = (TenantName::default_tenant(), vec![task]);
    harness.store().retry(RetryTasks { tenant, tasks }).await.unwrap()[0]
}

pub async fn a_cancelled_task_that_waited_never_starts(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let due = harness.submit_one(harness.task("email")).await;
    let later = harness.submit_one(harness.task_in("email", Duration::from_secs(5))).await;
    for id in [due, later] {
        assert_eq!(cancel(&harness, id).await, Controlled::Done);
        let task = harness.get(id).await;
        assert_eq!((task.status, task.finished_at), (Status::Cancelled, Some(harness.now())));
        let error = task.error.unwrap();
        assert_eq!((error.code.as_str(), error.message.as_str()), ("CANCELLED", "changed my mind"));
    }
    harness.advance(Duration::from_secs(5));
    let answer = harness.ask(harness.next_claim(session, 10)).await;
    assert_eq!((answer.leases.len(), answer.next_due), (0, None));
}

pub async fn the_holder_of_a_cancelled_task_is_refused(mut harness: Harness) {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    let lease = harness.claim_one(session).await;
    assert_eq!(cancel(&harness, id).await, Controlled::Done);
    let cancelled = harness.get(id).await;
    assert_eq!((cancelled.status, cancelled.epoch), (Status::Cancelled, lease.epoch + 1));
    for outcome in [success(), retry(), fail(), Outcome::Release] {
        assert_eq!(harness.finish_one(session, &lease, outcome).await, Finished::LeaseLost);
    }
    assert_eq!(harness.get(id).await, cancelled);
    harness.leave(session).await;
    harness.crash().await;
    assert_eq!(harness.get(id).await.status, Status::Cancelled, "no lease is left to come back");
}

pub async fn cancelling_twice_is_the_same_as_once(harness: Harness) {
    let id = harness.submit_one(harness.task("email")).await;
    assert_eq!(cancel(&harness, id).await, Controlled::Done);
    let once = harness.get(id).await;
    harness.advance(Duration::from_secs(1));
    assert_eq!(cancel(&harness, id).await, Controlled::Done);
    assert_eq!(harness.get(id).await, once);
}

pub async fn an_ended_task_cannot_be_cancelled(harness: Harness) {
    let session = harness.session(&["email"]).await;
    for (outcome, status) in [(success(), Status::Success), (fail(), Status::Failed)] {
        let id = harness.submit_one(harness.task("email")).await;
        let lease = harness.claim_one(session).await;
        harness.finish_one(session, &lease, outcome).await;
        let ended = harness.get(id).await;
        assert_eq!(cancel(&harness, id).await, Controlled::Conflict { status });
        assert_eq!(harness.get(id).await, ended);
    }
}

pub async fn a_replay_opens_the_next_run(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    for run in 1..=3 {
        let lease = harness.claim_one(session).await;
        assert_eq!((lease.run, lease.attempt, lease.epoch), (run, 1, run));
        harness.finish_one(session, &lease, if run == 1 { fail() } else { success() }).await;
        harness.advance(Duration::from_secs(1));
        assert_eq!(replay(&harness, id, None).await, Controlled::Done);
        let task = harness.get(id).await;
        assert_eq!((task.status, task.run, task.charged), (Status::Pending, run + 1, 0));
        assert_eq!((task.run_at, task.finished_at), (harness.now(), None));
        assert_eq!((task.result, task.error), (None, None));
        assert_eq!(task.epoch, run, "the epoch goes on");
        assert_eq!(harness.finish_one(session, &lease, success()).await, Finished::LeaseLost);
    }
    assert_eq!(cancel(&harness, id).await, Controlled::Done);
    assert_eq!(replay(&harness, id, None).await, Controlled::Done, "a cancelled one too");
}

pub async fn a_replay_of_a_run_happens_once(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let task = harness.submit_one(harness.task("email")).await;
    let order = Replay { task, run: 1, run_at: None };
    for _ in 0..3 {
        let lease = harness.claim(session, 1).await;
        for lease in &lease {
            harness.finish_one(session, lease, fail()).await;
        }
        assert_eq!(replay_run(&harness, order, None).await, Controlled::Done);
        assert_eq!(harness.get(task).await.run, 2);
    }
}

pub async fn a_replay_may_wait_for_its_time(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let task = harness.submit_one(harness.task("email")).await;
    let lease = harness.claim_one(session).await;
    harness.finish_one(session, &lease, fail()).await;
    let run_at = harness.now().plus(Duration::from_secs(5));
    let order = Replay { task, run: 1, run_at: Some(run_at) };
    assert_eq!(replay_run(&harness, order, None).await, Controlled::Done);
    assert_eq!(harness.get(task).await.run_at, run_at);
    assert!(harness.claim(session, 10).await.is_empty());
    harness.advance(Duration::from_secs(5));
    assert_eq!(harness.claim_one(session).await.run, 2);
}

pub async fn a_replay_may_change_the_payload(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    let large = format!("\"{}\"", "x".repeat(5000));
    let mut payload = "{}";
    for next in [large.as_str(), "[1]", large.as_str()] {
        let lease = harness.claim_one(session).await;
        assert_eq!(&*lease.payload, payload);
        harness.finish_one(session, &lease, success()).await;
        assert_eq!(replay(&harness, id, Some(next)).await, Controlled::Done);
        assert_eq!(&*harness.get(id).await.payload, next);
        payload = next;
    }
}

pub async fn only_an_ended_task_can_be_replayed(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    for status in [Status::Pending, Status::Running] {
        let before = harness.get(id).await;
        assert_eq!(replay(&harness, id, Some("1")).await, Controlled::Conflict { status });
        assert_eq!(harness.get(id).await, before);
        harness.claim(session, 10).await;
    }
}

pub async fn a_retry_ends_the_back_off(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    let conflict = |status| Controlled::Conflict { status };
    assert_eq!(retry_now(&harness, id).await, conflict(Status::Pending), "nothing failed yet");
    let lease = harness.claim_one(session).await;
    assert_eq!(retry_now(&harness, id).await, conflict(Status::Running));
    harness.finish_one(session, &lease, retry()).await;
    assert!(harness.claim(session, 10).await.is_empty());
    assert_eq!(retry_now(&harness, id).await, Controlled::Done);
    assert_eq!(harness.get(id).await.run_at, harness.now());
    let lease = harness.claim_one(session).await;
    assert_eq!((lease.task, lease.attempt), (id, 2));
    harness.finish_one(session, &lease, success()).await;
    assert_eq!(retry_now(&harness, id).await, conflict(Status::Success));
}

pub async fn orders_are_answered_one_by_one(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let mut foreign = harness.task("email");
    foreign.lane.tenant = TenantName::new("other").unwrap();
    let foreign = harness.submit_one(foreign).await;
    let own = harness.submit_one(harness.task("email")).await;
    let missing = TaskId::mint(harness.now(), 77, 77);
    let (tenant, tasks) = (TenantName::default_tenant(), vec![missing, own, foreign]);
    let order = CancelTasks { tenant, tasks, reason: String::new() };
    let answers = harness.store().cancel(order).await.unwrap();
    assert_eq!(answers, [Controlled::Unknown, Controlled::Done, Controlled::Unknown]);
    assert_eq!(ids(&harness.claim(session, 10).await), [foreign]);
}

pub async fn one_order_may_name_a_task_twice(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let task = harness.submit_one(harness.task("email")).await;
    let lease = harness.claim_one(session).await;
    harness.finish_one(session, &lease, fail()).await;
    let later = harness.now().plus(Duration::from_secs(5));
    let twice =
        [Replay { task, run: 1, run_at: None }, Replay { task, run: 1, run_at: Some(later) }];
    let (tenant, tasks) = (TenantName::default_tenant(), twice.to_vec());
    let order = ReplayTasks { tenant, tasks, payload: None };
    assert_eq!(harness.store().replay(order).await.unwrap(), [Controlled::Done; 2]);
    let replayed = harness.get(task).await;
    assert_eq!((replayed.run, replayed.run_at), (2, harness.now()), "the first of them counts");
}
