//! Changing tasks that wait.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use duly_core::id::TaskId;
use duly_core::limits::QUARANTINE_LOSSES;
use duly_core::name::TenantName;
use duly_core::ports::store::{Controlled, EditTask, TaskChange};
use duly_core::state::Status;
use duly_core::submit::Start;
use duly_core::task::{Priority, Task};

use super::Harness;
use super::harness::{ids, success};

async fn edit(harness: &Harness, task: TaskId, change: TaskChange) -> Controlled {
    let tenant = TenantName::default_tenant();
    harness.store().edit(EditTask { tenant, task, change }).await.unwrap()
}

pub async fn only_what_is_named_changes(harness: Harness) {
    let id = harness.submit_one(harness.task("email")).await;
    let before = harness.get(id).await;
    assert_eq!(edit(&harness, id, TaskChange::default()).await, Controlled::Done);
    assert_eq!(harness.get(id).await, before);
    let labels = BTreeMap::from([("customer".to_owned(), "42".to_owned())]);
    let change = TaskChange {
        payload: Some(Arc::from("[1]")),
        priority: Priority::new(9),
        start: Some(Start::At(harness.now().plus(Duration::from_secs(5)))),
        retries: Some(7),
        timeout: Some(Duration::from_secs(3)),
        labels: Some(labels.clone()),
    };
    assert_eq!(edit(&harness, id, change.clone()).await, Controlled::Done);
    let expected = Task {
        payload: Arc::from("[1]"),
        priority: Priority::new(9).unwrap(),
        run_at: harness.now().plus(Duration::from_secs(5)),
        retries: 7,
        timeout: Some(Duration::from_secs(3)),
        labels,
        ..before
    };
    assert_eq!(harness.get(id).await, expected);
    assert_eq!(edit(&harness, id, change).await, Controlled::Done, "twice is the same as once");
    assert_eq!(harness.get(id).await, expected);
}

pub async fn a_moved_task_starts_at_its_new_time(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    let later = harness.now().plus(Duration::from_secs(5));
    edit(&harness, id, TaskChange { start: Some(Start::At(later)), ..TaskChange::default() }).await;
    let answer = harness.ask(harness.next_claim(session, 10)).await;
    assert_eq!((answer.leases.len(), answer.next_due), (0, Some(later)));
    let now = Some(Start::After(Duration::ZERO));
    edit(&harness, id, TaskChange { start: now, ..TaskChange::default() }).await;
    assert_eq!(harness.claim_one(session).await.task, id);
}

pub async fn a_new_delay_counts_from_the_edit(harness: Harness) {
    let id = harness.submit_one(harness.task("email")).await;
    harness.advance(Duration::from_secs(9));
    let start = Some(Start::After(Duration::from_secs(5)));
    edit(&harness, id, TaskChange { start, ..TaskChange::default() }).await;
    assert_eq!(harness.get(id).await.run_at, harness.now().plus(Duration::from_secs(5)));
}

pub async fn a_new_priority_counts(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let first = harness.submit_one(harness.task("email")).await;
    let second = harness.submit_one(harness.task("email")).await;
    let urgent = TaskChange { priority: Priority::new(9), ..TaskChange::default() };
    edit(&harness, second, urgent).await;
    assert_eq!(ids(&harness.claim(session, 10).await), [second, first]);
}

pub async fn large_payloads_come_and_go(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    let large = format!("\"{}\"", "x".repeat(5000));
    for payload in [large.as_str(), "1", large.as_str()] {
        let change = TaskChange { payload: Some(Arc::from(payload)), ..TaskChange::default() };
        edit(&harness, id, change).await;
        assert_eq!(&*harness.get(id).await.payload, payload);
    }
    assert_eq!(&*harness.claim_one(session).await.payload, large);
}

pub async fn a_quarantined_task_stays_so(harness: Harness) {
    let quarantined = harness.submit_one(harness.task("email")).await;
    harness.lose("email", QUARANTINE_LOSSES).await;
    let urgent = TaskChange { priority: Priority::new(9), ..TaskChange::default() };
    edit(&harness, quarantined, urgent).await;
    harness.submit_one(harness.task("email")).await;
    let session = harness.session(&["email"]).await;
    assert_eq!(harness.claim_one(session).await.task, quarantined, "and is granted alone");
    assert_eq!(harness.get(quarantined).await.priority, Priority::new(9).unwrap());
}

pub async fn only_a_waiting_task_can_be_changed(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    let lease = harness.claim_one(session).await;
    let change = TaskChange { retries: Some(9), ..TaskChange::default() };
    let conflict = |status| Controlled::Conflict { status };
    assert_eq!(edit(&harness, id, change.clone()).await, conflict(Status::Running));
    harness.finish_one(session, &lease, success()).await;
    let ended = harness.get(id).await;
    assert_eq!(edit(&harness, id, change.clone()).await, conflict(Status::Success));
    assert_eq!(harness.get(id).await, ended);
    let mut foreign = harness.task("email");
    foreign.lane.tenant = TenantName::new("other").unwrap();
    let foreign = harness.submit_one(foreign).await;
    assert_eq!(edit(&harness, foreign, change).await, Controlled::Unknown);
}
