//! The audit log: every change by a request is in it, and no secret.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Router;
use axum::http::Method;
use duly_api::{Access, route_table};
use duly_core::lease::Outcome;
use duly_core::ports::store::Rules;
use duly_core::task::Failure;
use duly_engine::Engine;
use duly_engine::random::OsRandom;
use duly_store::clock::SystemClock;
use duly_store::memory::MemoryStore;
use serde_json::{Value, json};

use crate::support::{
    Answer, Hand, ask, engine, get, post, request, router, router_of, router_over,
};

/// In every payload, and never in the log.
const CANARY: &str = "canary-81c0";
/// Changes that do not concern what users own, and previews.
const NOT_AUDITED: [&str; 2] = ["/admin/backup", "/schedules/preview"];

/// An engine that leaves bulk actions waiting, so that there is one to abort.
fn idle_engine() -> Engine {
    let store = MemoryStore::new(Arc::new(SystemClock::default()), Rules::default());
    let config = duly_engine::Config { is_scheduler: false, ..duly_engine::Config::default() };
    Engine::start(Arc::new(store), Arc::new(OsRandom::new()), config)
}

async fn audit(router: &Router, query: &str) -> Vec<Value> {
    let answer = ask(router, get(&format!("/audit?limit=200{query}"))).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["items"].as_array().unwrap().clone()
}

/// Sends requests, and checks what each leaves in the log.
struct Auditor {
    router: Router,
    known: usize,
    routes: BTreeSet<String>,
}

impl Auditor {
    /// A request that changes one thing: once it is one entry, and so it is when it is repeated.
    async fn changes(
        &mut self,
        method: Method,
        route: &str,
        id: &str,
        body: Value,
        action: &str,
    ) -> Value {
        let request_id = format!("request-{}", self.known);
        let answer = self.send(&method, route, id, &body, &request_id).await;
        assert!(answer.status.is_success(), "{method} {route}: {answer:?}");
        let entries = audit(&self.router, "&installation=true").await;
        assert_eq!(entries.len(), self.known + 1, "{method} {route} writes one entry");
        self.known += 1;
        let entry = entries[0].clone();
        assert_eq!(entry["action"], action, "{entry}");
        assert_eq!(entry["actor"], "anonymous", "{entry}");
        assert_eq!(entry["requestId"], request_id.as_str(), "{entry}");
        assert!(entry.get("before").is_some() || entry.get("after").is_some(), "{entry}");
        let tenant = if action.starts_with("settings") { Value::Null } else { json!("default") };
        assert_eq!(entry.get("tenant").cloned().unwrap_or_default(), tenant, "{entry}");
        self.routes.insert(format!("{method} {route}"));
        if answer.body.is_empty() { Value::Null } else { answer.json() }
    }

    async fn send(
        &self,
        method: &Method,
        route: &str,
        id: &str,
        body: &Value,
        request_id: &str,
    ) -> Answer {
        let path = route.replace("{id}", id).replace("{queue}", id).replace("{name}", id);
        let mut headers = vec![("content-type", "application/json"), ("x-request-id", request_id)];
        if route.starts_with("/settings") {
            headers.push(("if-match", "*"));
        }
        let body = if *method == Method::DELETE { String::new() } else { body.to_string() };
        ask(&self.router, request(method.clone(), &path, &headers).map(|_| body.into())).await
    }

    async fn submitted(&self, task_type: &str) -> String {
        let body = json!({"type": task_type, "payload": {"password": CANARY}});
        let answer = ask(&self.router, post("/tasks", body.to_string())).await;
        answer.json()["taskId"].as_str().unwrap().to_owned()
    }
}

#[tokio::test(start_paused = true)]
async fn s30_every_change_is_audited() {
    let engine = idle_engine();
    let mut it = Auditor { router: router_over(&engine), known: 0, routes: BTreeSet::new() };
    tasks(&mut it, &engine).await;
    bulk_actions(&mut it).await;
    queues_and_workers(&mut it).await;
    schedules(&mut it).await;
    workflows(&mut it, &engine).await;
    keys(&mut it).await;
    it.changes(Method::PUT, "/settings", "", json!({"retries": 7}), "settings.put").await;
    it.changes(Method::POST, "/settings/rollback", "", json!({"version": 0}), "settings.put").await;

    let log = ask(&it.router, get("/audit?limit=200&installation=true")).await;
    assert!(!String::from_utf8(log.body).unwrap().contains(CANARY));
    let missing: Vec<_> = route_table()
        .iter()
        .filter(|(method, ..)| **method != Method::GET)
        .filter(|(.., access)| matches!(access, Some(Access::Operator | Access::Admin)))
        .map(|(method, path, _)| (path.to_owned(), format!("{method} {path}")))
        .filter(|(path, route)| !NOT_AUDITED.contains(&&**path) && !it.routes.contains(route))
        .collect();
    assert!(missing.is_empty(), "this test lacks routes that change something: {missing:?}");
}

async fn tasks(it: &mut Auditor, engine: &Engine) {
    let id = it.submitted("unserved").await;
    it.changes(Method::POST, "/tasks/{id}/cancel", &id, json!({"reason": "why"}), "task.cancel")
        .await;
    let payload = json!({"payload": {"password": CANARY, "again": true}});
    it.changes(Method::POST, "/tasks/{id}/replay", &id, payload, "task.replay").await;
    let change = json!({"priority": 9, "payload": {"password": CANARY}});
    it.changes(Method::PATCH, "/tasks/{id}", &id, change, "task.edit").await;
    let entry = &audit(&it.router, "&action=task.edit").await[0];
    assert_eq!(entry["before"], json!({"priority": 5}));
    assert_eq!(entry["after"], json!({"priority": 9, "payload": "changed"}));
    it.changes(Method::POST, "/tasks/{id}/cancel", &id, json!({}), "task.cancel").await;
    it.changes(Method::DELETE, "/tasks/{id}", &id, Value::Null, "task.delete").await;

    let id = it.submitted("flaky").await;
    let error = Failure::new("BROKEN", CANARY);
    let retry = Outcome::Retry { error, entropy: u64::MAX, after: None };
    Hand::of(engine, &["flaky"]).await.end(retry, None).await;
    it.changes(Method::POST, "/tasks/{id}/retry", &id, json!({}), "task.retry").await;
}

async fn bulk_actions(it: &mut Auditor) {
    let order = json!({"action": "cancel", "filter": "queue:none"});
    let bulk = it.changes(Method::POST, "/bulk-actions", "", order, "bulk.start").await;
    let id = bulk["bulkId"].as_str().unwrap();
    it.changes(Method::POST, "/bulk-actions/{id}/abort", id, json!({}), "bulk.abort").await;
    let filter = json!({"filter": "queue:none"});
    it.changes(Method::POST, "/dlq/replay", "", filter.clone(), "bulk.start").await;
    it.changes(Method::POST, "/dlq/purge", "", filter, "bulk.start").await;
    let entry = &audit(&it.router, "&action=bulk.start").await[0];
    assert_eq!(
        (&entry["after"]["action"], &entry["after"]["deadLetters"]),
        (&json!("delete"), &json!(true))
    );
}

async fn queues_and_workers(it: &mut Auditor) {
    it.changes(
        Method::POST,
        "/queues/{queue}/pause",
        "mail",
        json!({"note": "why"}),
        "queue.pause",
    )
    .await;
    it.changes(Method::POST, "/queues/{queue}/resume", "mail", json!({}), "queue.resume").await;
    let worker = ask(&it.router, post("/sessions", r#"{"name":"w","types":["a"]}"#)).await.json();
    let id = worker["sessionId"].as_str().unwrap();
    it.changes(Method::POST, "/workers/{id}/drain", id, json!({}), "worker.drain").await;
}

async fn schedules(it: &mut Auditor) {
    let task = json!({"type": "a", "payload": {"password": CANARY}});
    let schedule = json!({"every": "1h", "overlap": "allow", "task": task});
    it.changes(Method::PUT, "/schedules/{name}", "nightly", schedule, "schedule.put").await;
    for (verb, action) in [
        ("pause", "schedule.pause"),
        ("resume", "schedule.resume"),
        ("trigger", "schedule.trigger"),
    ] {
        let route = format!("/schedules/{{name}}/{verb}");
        it.changes(Method::POST, &route, "nightly", json!({}), action).await;
    }
    let period = json!({"from": "1970-01-01T00:00:00Z", "to": "2099-01-01T00:00:00Z"});
    let route = "/schedules/{name}/backfill";
    it.changes(Method::POST, route, "nightly", period, "schedule.backfill").await;
    it.changes(Method::DELETE, "/schedules/{name}", "nightly", Value::Null, "schedule.delete")
        .await;
    let targets = audit(&it.router, "&action=schedule&target=nightly").await;
    assert_eq!(targets.len(), 6, "all of them name the schedule: {targets:?}");
}

async fn workflows(it: &mut Auditor, engine: &Engine) {
    let body = json!({"tasks": {"one": {"type": "doomed", "payload": {"password": CANARY}}}});
    let workflow = ask(&it.router, post("/workflows", body.to_string())).await.json();
    let id = workflow["workflowId"].as_str().unwrap_or_else(|| panic!("{workflow}"));
    Hand::of(engine, &["doomed"]).await.fail("BROKEN", CANARY).await;
    it.changes(Method::POST, "/workflows/{id}/retry", id, json!({}), "workflow.retry").await;
    it.changes(Method::POST, "/workflows/{id}/cancel", id, json!({}), "workflow.cancel").await;
}

async fn keys(it: &mut Auditor) {
    let order = json!({"name": "mailer", "roles": ["submitter"]});
    let created = it.changes(Method::POST, "/keys", "", order, "key.create").await;
    let (id, secret) = (created["keyId"].as_str().unwrap(), created["secret"].as_str().unwrap());
    it.changes(Method::DELETE, "/keys/{id}", id, Value::Null, "key.revoke").await;
    let entries = audit(&it.router, &format!("&target={id}")).await;
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[1]["after"]["roles"], json!(["submitter"]));
    assert!(!format!("{entries:?}").contains(secret), "{entries:?}");
}

#[tokio::test]
async fn a_request_that_changes_nothing_leaves_no_entry() {
    let router = router();
    for _ in 0..2 {
        assert_eq!(ask(&router, post("/queues/mail/pause", r#"{"note":"why"}"#)).await.status, 200);
    }
    assert_eq!(ask(&router, post("/queues/absent/resume", "{}")).await.status, 404);
    assert_eq!(ask(&router, post("/tasks", r#"{"type":"a"}"#)).await.status, 201);
    assert_eq!(audit(&router, "").await.len(), 1);
}

#[tokio::test]
async fn a_tenant_reads_its_own_entries() {
    let engine = engine();
    let (own, other) = (router_over(&engine), router_of(&engine, "other"));
    ask(&own, post("/queues/mail/pause", "{}")).await;
    ask(&other, post("/queues/post/pause", "{}")).await;
    let targets = async |router: &Router, query: &str| {
        let entries = audit(router, query).await;
        entries.into_iter().map(|entry| entry["target"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(targets(&own, "").await, ["mail"]);
    assert_eq!(targets(&other, "").await, ["post"]);
    assert_eq!(targets(&own, "&installation=true").await, ["post", "mail"]);
}

#[tokio::test]
async fn pages_follow_each_other() {
    let router = router();
    for number in 0..5 {
        ask(&router, post(&format!("/queues/queue-{number}/pause"), "{}")).await;
    }
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let answer =
            ask(&router, get(&format!("/audit?limit=2&action=queue{cursor}"))).await.json();
        let items = answer["items"].as_array().unwrap();
        found.extend(items.iter().map(|entry| entry["target"].as_str().unwrap().to_owned()));
        let Some(next) = answer["nextCursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
        let foreign = ask(&router, get(&format!("/audit?action=task{cursor}"))).await;
        assert_eq!(foreign.problem().1, "INVALID_CURSOR");
    }
    assert_eq!(found, ["queue-4", "queue-3", "queue-2", "queue-1", "queue-0"]);
}

#[tokio::test]
async fn filters_narrow_it_and_bad_ones_are_refused() {
    let router = router();
    ask(&router, post("/queues/mail/pause", "{}")).await;
    for (query, expected) in [
        ("&actor=anonymous", 1),
        ("&actor=key:7", 0),
        ("&target=mail", 1),
        ("&target=post", 0),
        ("&since=1h", 1),
        ("&since=2099-01-01T00:00:00Z", 0),
        ("&installation=false", 1),
    ] {
        assert_eq!(audit(&router, query).await.len(), expected, "{query}");
    }
    for bad in ["since=soon", "actor=", "action=%00", "installation=yes", "limit=0", "order=up"] {
        let (status, ..) = ask(&router, get(&format!("/audit?{bad}"))).await.problem();
        assert_eq!(status, 400, "{bad}");
    }
}
