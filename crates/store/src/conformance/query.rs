//! Reading, and the store's own state.

use std::sync::Arc;
use std::time::Duration;

use duly_core::id::TaskId;
use duly_core::name::TenantName;
use duly_core::ports::store::ListTasks;
use duly_core::task::NewTask;

use super::Harness;

/// Far longer than a hint takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

pub async fn pages_show_every_task_once_newest_first(harness: Harness) {
    let mut stored = Vec::new();
    for second in 0..25 {
        let due = Duration::from_secs(second * 7 % 25);
        let id = TaskId::mint(harness.now().plus(due), 0, second);
        let task = NewTask { id, ..harness.task_in("email", due) };
        stored.push(harness.submit_one(task).await);
    }
    let mut foreign = harness.task("email");
    foreign.lane.tenant = TenantName::new("other").unwrap();
    harness.submit_one(foreign).await;
    let (mut listed, mut before) = (Vec::new(), None);
    loop {
        let page = ListTasks { tenant: TenantName::default_tenant(), before, limit: 10 };
        let page = harness.store().list(page).await.unwrap();
        listed.extend(page.tasks.into_iter().map(|task| task.id));
        before = page.next_before;
        if before.is_none() {
            break;
        }
    }
    stored.sort_unstable_by(|a, b| b.cmp(a));
    assert_eq!(listed, stored);
}

pub async fn a_page_of_large_tasks_is_shorter(harness: Harness) {
    let payload: Arc<str> = format!("\"{}\"", "x".repeat(1_000_000)).into();
    for _ in 0..12 {
        let payload = Arc::clone(&payload);
        harness.submit_one(NewTask { payload, ..harness.task("email") }).await;
    }
    let (mut seen, mut before) = (0, None);
    loop {
        let page = ListTasks { tenant: TenantName::default_tenant(), before, limit: 100 };
        let page = harness.store().list(page).await.unwrap();
        assert!((1..=8).contains(&page.tasks.len()), "{} tasks", page.tasks.len());
        seen += page.tasks.len();
        before = page.next_before;
        if before.is_none() {
            break;
        }
    }
    assert_eq!(seen, 12);
}

pub async fn the_task_of_another_tenant_is_absent(harness: Harness) {
    let id = harness.submit_one(harness.task("email")).await;
    let other = TenantName::new("other").unwrap();
    assert_eq!(harness.store().get(&other, id).await.unwrap(), None);
    let missing = TaskId::mint(harness.now(), 77, 77);
    let tenant = TenantName::default_tenant();
    assert_eq!(harness.store().get(&tenant, missing).await.unwrap(), None);
}

pub async fn a_hint_names_the_earliest_due_time(harness: Harness) {
    let soon = harness.task_in("email", Duration::from_secs(1));
    let later = harness.task_in("email", Duration::from_secs(2));
    harness.submit(&[later.clone(), soon.clone()]).await;
    if harness.hints() {
        let hint = tokio::time::timeout(PATIENCE, async { harness.store().hint().await }).await;
        assert_eq!(hint.expect("a hint arrives"), soon.run_at);
    }
    // Whoever polls finds the same out.
    let session = harness.session(&["email"]).await;
    for task in [soon, later] {
        let answer = harness.ask(harness.next_claim(session, 10)).await;
        assert_eq!((answer.leases.len(), answer.next_due), (0, Some(task.run_at)));
        harness.advance(task.run_at.since(harness.now()));
        assert_eq!(harness.claim_one(session).await.task, task.id);
    }
}

pub async fn the_store_is_healthy(harness: Harness) {
    harness.store().check().await.unwrap();
    assert_eq!(harness.store().now().await.unwrap(), harness.now());
}
