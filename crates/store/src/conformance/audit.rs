//! The audit log: an entry is written with the change and once, it stays as it is, and it is found.

use std::sync::Arc;
use std::time::Duration;

use duly_core::audit::{AuditEntry, Author};
use duly_core::id::TaskId;
use duly_core::limits::AUDIT_FLOOR;
use duly_core::name::{QueueName, TenantName};
use duly_core::ports::store::{CancelTasks, ListAudit, PauseQueue, PutSettings, Store};
use duly_core::settings::Settings;
use futures_util::future::join_all;
use serde_json::Value;

use super::Harness;
use super::harness::fail;

pub(super) const DAY: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) fn own() -> TenantName {
    TenantName::default_tenant()
}

/// The store, for the author of one request.
pub(super) fn acting(harness: &Harness) -> Arc<dyn Store> {
    acting_as(harness, "key:7")
}

fn acting_as(harness: &Harness, actor: &str) -> Arc<dyn Store> {
    let request_id = Some(Arc::from("request-1"));
    harness.store().on_behalf_of(Author { actor: Arc::from(actor), request_id })
}

pub(super) async fn log(harness: &Harness, page: ListAudit) -> Vec<AuditEntry> {
    harness.store().audit_log(ListAudit { limit: page.limit.max(1), ..page }).await.unwrap()
}

/// The whole log, oldest first: action, target, and what was changed.
pub(super) async fn told(harness: &Harness) -> Vec<(String, String, Value, Value)> {
    let mut entries = log(harness, ListAudit { limit: 1000, ..ListAudit::default() }).await;
    entries.reverse();
    let json = |text: Option<Arc<str>>| text.map_or(Value::Null, |it| it.parse().unwrap());
    let told = |it: AuditEntry| (it.action, it.target, json(it.before), json(it.after));
    entries.into_iter().map(told).collect()
}

/// The only entry there is.
pub(super) async fn only(harness: &Harness) -> (String, String, Value, Value) {
    let mut told = told(harness).await;
    assert_eq!(told.len(), 1, "one entry: {told:?}");
    told.remove(0)
}

pub(super) fn entry(
    action: &str,
    target: impl ToString,
    before: Value,
    after: Value,
) -> (String, String, Value, Value) {
    (action.to_owned(), target.to_string(), before, after)
}

fn pause_of(queue: &str, note: &str) -> PauseQueue {
    PauseQueue { tenant: own(), queue: QueueName::new(queue).unwrap(), note: note.to_owned() }
}

pub(super) async fn pause(store: &Arc<dyn Store>, queue: &str, note: &str) {
    assert!(store.pause_queue(pause_of(queue, note)).await.unwrap());
}

pub(super) fn cancel_of(tasks: &[TaskId]) -> CancelTasks {
    CancelTasks { tenant: own(), tasks: tasks.to_vec(), reason: "why".to_owned() }
}

/// A task that has failed.
pub(super) async fn failed(harness: &Harness) -> TaskId {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    let lease = harness.claim_one(session).await;
    harness.finish_one(session, &lease, fail()).await;
    harness.leave(session).await;
    id
}

pub async fn an_entry_tells_who_did_what_and_when(harness: Harness) {
    pause(&acting(&harness), "mail", "down").await;
    let entries = log(&harness, ListAudit { limit: 10, ..ListAudit::default() }).await;
    let expected = AuditEntry {
        number: entries[0].number,
        at: harness.now(),
        actor: "key:7".to_owned(),
        tenant: Some(own()),
        action: "queue.pause".to_owned(),
        target: "mail".to_owned(),
        before: Some(Arc::from(r#"{"paused":false}"#)),
        after: Some(Arc::from(r#"{"note":"down","paused":true}"#)),
        request_id: Some("request-1".to_owned()),
    };
    assert_eq!(entries, [expected]);
}

pub async fn changes_without_an_author_are_not_written(harness: Harness) {
    pause(&harness.store(), "mail", "down").await;
    let id = harness.submit_one(harness.task("email")).await;
    harness.store().cancel(cancel_of(&[id])).await.unwrap();
    assert!(told(&harness).await.is_empty());
}

pub async fn one_of_many_changes_at_once_is_written(harness: Harness) {
    let stores: Vec<_> = (0..8).map(|_| acting(&harness)).collect();
    join_all(stores.iter().map(|store| pause(store, "mail", "down"))).await;
    assert_eq!(only(&harness).await.0, "queue.pause");
}

pub async fn filters_narrow_the_log(harness: Harness) {
    let id = harness.submit_one(harness.task("email")).await;
    pause(&acting_as(&harness, "key:1"), "mail", "down").await;
    harness.advance(Duration::from_secs(60));
    pause(&acting_as(&harness, "token:jane"), "post", "down").await;
    acting_as(&harness, "key:1").cancel(cancel_of(&[id])).await.unwrap();
    let now = harness.now();
    let all = ListAudit { limit: 10, ..ListAudit::default() };
    let text = |text: &str| Some(text.to_owned());
    for (page, expected) in [
        (
            ListAudit { actor: text("key:1"), ..all.clone() },
            vec![id.to_string(), "mail".to_owned()],
        ),
        (
            ListAudit { action: text("queue"), ..all.clone() },
            vec!["post".to_owned(), "mail".to_owned()],
        ),
        (
            ListAudit { action: text("queue.pause"), target: text("mail"), ..all.clone() },
            vec!["mail".to_owned()],
        ),
        (ListAudit { action: text("queu"), ..all.clone() }, vec![]),
        (ListAudit { action: text("queue%"), ..all.clone() }, vec![]),
        (ListAudit { since: Some(now), ..all.clone() }, vec![id.to_string(), "post".to_owned()]),
        (ListAudit { tenant: Some(TenantName::new("other").unwrap()), ..all.clone() }, vec![]),
    ] {
        let found: Vec<_> =
            log(&harness, page.clone()).await.into_iter().map(|it| it.target).collect();
        assert_eq!(found, expected, "{page:?}");
    }
}

pub async fn a_tenant_sees_its_own_entries(harness: Harness) {
    let store = acting(&harness);
    let tenant = TenantName::new("other").unwrap();
    pause(&store, "mail", "down").await;
    store.pause_queue(PauseQueue { tenant: tenant.clone(), ..pause_of("post", "") }).await.unwrap();
    let put = PutSettings { expected: 0, settings: Settings::default(), comment: None };
    store.put_settings(put).await.unwrap();
    for (tenant, expected) in [
        (Some(own()), vec!["mail"]),
        (Some(tenant), vec!["post"]),
        (None, vec!["settings", "post", "mail"]),
    ] {
        let page = ListAudit { tenant, limit: 10, ..ListAudit::default() };
        let entries = log(&harness, page).await;
        let targets: Vec<_> = entries.iter().map(|entry| &*entry.target).collect();
        assert_eq!(targets, expected);
    }
}

pub async fn pages_show_all_of_it_newest_first(harness: Harness) {
    let store = acting(&harness);
    for number in 0..7 {
        pause(&store, &format!("queue-{number}"), "").await;
    }
    let (mut found, mut before) = (Vec::new(), None);
    loop {
        let page = ListAudit { before, limit: 3, ..ListAudit::default() };
        let entries = log(&harness, page).await;
        let Some(last) = entries.last() else { break };
        before = Some(last.number);
        found.extend(entries.into_iter().map(|entry| entry.target));
    }
    let expected: Vec<_> = (0..7).rev().map(|number| format!("queue-{number}")).collect();
    assert_eq!(found, expected);
}

pub async fn old_entries_are_forgotten_page_by_page(harness: Harness) {
    let store = acting(&harness);
    for number in 0..5 {
        pause(&store, &format!("queue-{number}"), "").await;
    }
    harness.advance(AUDIT_FLOOR + DAY);
    let old = harness.now();
    pause(&store, "new", "").await;
    let plain = harness.store();
    // A call that is repeated after its answer was lost goes on with the next page.
    for _ in 0..3 {
        plain.forget_audit(old, 2).await.unwrap();
    }
    assert_eq!(only(&harness).await.1, "new");
    harness.advance(DAY);
    assert_eq!(plain.forget_audit(harness.now(), 10).await.unwrap(), 0, "too new to be deleted");
    assert_eq!(only(&harness).await.1, "new");
}

pub async fn numbers_are_not_given_again(harness: Harness) {
    let store = acting(&harness);
    pause(&store, "first", "").await;
    let first = log(&harness, ListAudit::default()).await[0].number;
    harness.advance(AUDIT_FLOOR + DAY);
    harness.store().forget_audit(harness.now(), 10).await.unwrap();
    pause(&store, "second", "").await;
    assert!(log(&harness, ListAudit::default()).await[0].number > first);
}

pub async fn it_outlives_a_restart(mut harness: Harness) {
    pause(&acting(&harness), "mail", "down").await;
    let before = log(&harness, ListAudit::default()).await;
    harness.crash().await;
    assert_eq!(log(&harness, ListAudit::default()).await, before);
    assert_eq!(before.len(), 1);
}
