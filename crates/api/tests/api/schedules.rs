//! Schedules: what is created, replaced, paused and triggered, and what is refused.

use std::collections::BTreeMap;

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request};
use duly_core::lease::Outcome;
use duly_core::name::{ScheduleName, TenantName};
use duly_core::ports::store::Expected;
use duly_core::schedule::{ScheduleDraft, ScheduleStatus, Template};
use duly_core::submit::Draft;
use duly_engine::command::schedules::NewSchedule;
use serde_json::{Value, json};

use crate::support::{
    Answer, Hand, ask, engine, get, post, request, router, router_of, router_over,
};

const PATH: &str = "/schedules/nightly";

fn put(path: &str, headers: &[(&str, &str)], body: &Value) -> Request<Body> {
    let headers = [&[("content-type", "application/json")], headers].concat();
    request(Method::PUT, path, &headers).map(|_| body.to_string().into())
}

/// Due so late that no test sees it fire.
fn nightly() -> Value {
    json!({"cron": "0 2 29 2 *", "timeZone": "Europe/Rome", "task": {"type": "a"}})
}

fn hourly() -> Value {
    json!({"every": "1h", "task": {"type": "a"}})
}

async fn create(router: &Router, body: &Value) -> Value {
    let answer = ask(router, put(PATH, &[("if-none-match", "*")], body)).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()
}

async fn send(router: &Router, path: &str, body: &Value) -> Answer {
    ask(router, post(path, body.to_string())).await
}

async fn read(router: &Router, path: &str) -> Value {
    let answer = ask(router, get(path)).await;
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    answer.json()
}

/// Triggers in a later millisecond: two triggers in one are the same slot.
async fn trigger_after(router: &Router, slot: &Value) -> Value {
    loop {
        let next = ask(router, post(&format!("{PATH}/trigger"), "{}")).await;
        assert_eq!(next.status, 201, "{next:?}");
        if next.json()["slot"] != *slot {
            return next.json();
        }
    }
}

fn code(answer: &Answer) -> (u16, String) {
    let (status, code, _) = answer.problem();
    (status, code)
}

fn names(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_schedule_is_read_as_it_was_written_with_every_default() {
    let router = router();
    let body = json!({
        "name": "nightly", "cron": "0 2 * * MON-FRI", "timeZone": "europe/rome",
        "task": {"type": "a", "payload": {"b": 1, "a": [1.50]}, "retries": 7, "delaySeconds": 2,
            "labels": {"x": "y"}},
        "overlap": "bufferOne", "misfire": "all", "catchUpSeconds": 60, "jitterSeconds": 1.5,
        "startAt": "2027-01-01T00:00:00Z", "endAt": "2090-01-01T00:00:00Z", "status": "PAUSED",
        "note": "for the auditors", "labels": {"team": "core"},
    });
    let made = create(&router, &body).await;
    let answer = ask(&router, get(PATH)).await;
    let etag = format!("\"{}\"", made["version"]);
    assert_eq!(answer.headers["etag"], etag.as_str());
    assert_eq!(answer.json(), made);
    for (field, value) in body.as_object().unwrap() {
        match field.as_str() {
            "timeZone" => assert_eq!(made[field], "Europe/Rome"),
            "startAt" | "endAt" => assert!(made[field].as_str().unwrap().ends_with("00:00.000Z")),
            "catchUpSeconds" => assert_eq!(made[field], 60.0),
            "task" => {
                for (field, value) in value.as_object().unwrap() {
                    assert_eq!(made["task"][field].as_f64(), value.as_f64(), "{field}");
                }
                assert_eq!(made["task"]["payload"], value["payload"]);
                assert_eq!(made["task"]["queue"], "default");
            }
            _ => assert_eq!(made[field], *value, "{field}"),
        }
    }
    assert!(made["description"].as_str().unwrap().ends_with("(Europe/Rome)"), "{made}");
    let (generation, managed) = (&made["generation"], &made["managed"]);
    assert_eq!((generation, managed, &made["nextAt"]), (&json!(1), &json!(false), &Value::Null));
    let plain = ask(&router, put("/schedules/plain", &[], &hourly())).await.json();
    for (field, value) in [
        ("overlap", json!("skip")),
        ("misfire", json!("latest")),
        ("catchUpSeconds", json!(3600.0)),
        ("jitterSeconds", json!(0.0)),
        ("timeZone", json!("UTC")),
        ("status", json!("ACTIVE")),
        ("note", Value::Null),
        ("labels", json!({})),
        ("cron", Value::Null),
        ("at", Value::Null),
        ("every", json!("3600s")),
        ("workflow", Value::Null),
    ] {
        assert_eq!(plain[field], value, "{field}");
    }
    assert!(plain["nextAt"].as_str().unwrap().ends_with(":00:00.000Z"), "{plain}");
}

#[tokio::test]
async fn a_workflow_is_read_as_it_was_written() {
    let router = router();
    let workflow = json!({"name": "etl", "failFast": true, "labels": {"a": "b"}, "tasks": {
        "load": {"type": "a", "dependsOn": ["fetch", {"task": "clean", "on": "done"}]},
        "clean": {"type": "a"}, "fetch": {"type": "a", "payload": [1]},
    }});
    let made = create(&router, &json!({"at": "2027-06-01T00:00:00Z", "workflow": workflow})).await;
    assert_eq!((&made["task"], &made["at"]), (&Value::Null, &json!("2027-06-01T00:00:00.000Z")));
    let read = &made["workflow"];
    for field in ["name", "failFast", "labels"] {
        assert_eq!(read[field], workflow[field], "{field}");
    }
    assert_eq!(read["tasks"]["load"]["dependsOn"], workflow["tasks"]["load"]["dependsOn"]);
    assert_eq!(read["tasks"]["fetch"]["payload"], json!([1]));
}

#[tokio::test]
async fn the_version_keeps_changes_apart() {
    let router = router();
    let made = create(&router, &nightly()).await;
    let again = ask(&router, put(PATH, &[("if-none-match", "*")], &hourly())).await;
    assert_eq!(code(&again), (412, "VERSION_MISMATCH".to_owned()));
    let same = ask(&router, put(PATH, &[], &nightly())).await;
    assert_eq!((same.status.as_u16(), &same.json()), (200, &made), "nothing has changed");
    let first = format!("\"{}\"", made["version"]);
    let changed = ask(&router, put(PATH, &[("if-match", &first)], &hourly())).await;
    assert_eq!(changed.status, 200, "{changed:?}");
    let second = changed.headers["etag"].to_str().unwrap().to_owned();
    assert!(second != first && changed.json()["generation"] == 2, "{changed:?}");
    assert_eq!(changed.json()["scheduleId"], made["scheduleId"]);
    for (method, path) in [
        (Method::PUT, PATH.to_owned()),
        (Method::POST, format!("{PATH}/pause")),
        (Method::DELETE, PATH.to_owned()),
    ] {
        let headers = [("content-type", "application/json"), ("if-match", first.as_str())];
        let body = if method == Method::PUT { nightly().to_string() } else { "{}".to_owned() };
        let stale = request(method.clone(), &path, &headers).map(|_| body.into());
        let stale = ask(&router, stale).await;
        assert_eq!(code(&stale), (412, "VERSION_MISMATCH".to_owned()), "{method} {path}");
    }
    assert_eq!(read(&router, PATH).await, changed.json(), "nothing of it happened");
    let gone = ask(&router, request(Method::DELETE, PATH, &[("if-match", &second)])).await;
    assert_eq!((gone.status.as_u16(), gone.body.len()), (204, 0));
    for value in ["*", second.as_str()] {
        let absent = ask(&router, put(PATH, &[("if-match", value)], &hourly())).await;
        assert_eq!(code(&absent), (412, "VERSION_MISMATCH".to_owned()), "{value}");
    }
    for headers in [
        &[("if-match", "soon")][..],
        &[("if-none-match", "\"1\"")],
        &[("if-match", "*"), ("if-none-match", "*")],
    ] {
        let bad = ask(&router, put(PATH, headers, &hourly())).await;
        assert_eq!(code(&bad), (400, "INVALID_PARAMETER".to_owned()), "{headers:?}");
    }
    assert_eq!(ask(&router, put(PATH, &[], &hourly())).await.status, 201);
    assert_eq!(ask(&router, put(PATH, &[("if-match", "*")], &nightly())).await.status, 200);
}

/// Puts a bad body, and previews it: both name exactly these errors.
async fn assert_refused(router: &Router, body: &Value, errors: &[&str]) {
    let mut answers = vec![ask(router, put(PATH, &[], body)).await];
    if body.get("name").is_none() {
        answers.push(send(router, "/schedules/preview", body).await);
    }
    for answer in answers {
        let (status, code, mut found) = answer.problem();
        found.sort();
        assert_eq!((status, code.as_str()), (422, "INVALID_FIELDS"), "{body}: {found:?}");
        assert_eq!(found, errors, "{body}");
    }
}

#[tokio::test]
async fn everything_wrong_with_a_body_is_said_at_once() {
    let router = router();
    for (body, errors) in [
        (
            json!({"cron": "61 * * * *", "timeZone": "Europe/Roma", "overlap": "maybe",
                "misfire": "never", "catchUpSeconds": -1, "jitterSeconds": "x", "startAt": "soon",
                "status": "GONE", "labels": {"": "x"}, "note": "x".repeat(501), "oops": 1,
                "task": {"type": "!", "priority": 10, "runAt": "2030-01-01T00:00:00Z",
                    "dependsOn": ["a"], "oops": 1}}),
            &[
                "/catchUpSeconds OUT_OF_RANGE",
                "/cron INVALID_CRON",
                "/jitterSeconds WRONG_TYPE",
                "/labels INVALID_LABEL",
                "/misfire UNKNOWN_WORD",
                "/note OUT_OF_RANGE",
                "/oops UNKNOWN_FIELD",
                "/overlap UNKNOWN_WORD",
                "/startAt INVALID_TIME",
                "/status UNKNOWN_WORD",
                "/task/dependsOn CONFLICTING_FIELDS",
                "/task/oops UNKNOWN_FIELD",
                "/task/priority OUT_OF_RANGE",
                "/task/runAt UNSUPPORTED_FIELD",
                "/task/type INVALID_NAME",
                "/timeZone UNKNOWN_TIME_ZONE",
            ][..],
        ),
        (json!({}), &["/cron CONFLICTING_FIELDS", "/task REQUIRED"]),
        (json!({"every": 5}), &["/every WRONG_TYPE", "/task REQUIRED"]),
        (json!({"every": "1h", "task": {}}), &["/task/type REQUIRED"]),
        (json!({"every": "1h", "task": 7}), &["/task WRONG_TYPE"]),
        (
            json!({"every": "1h", "at": "2030-01-01T00:00:00Z", "task": {"type": "a"},
                "workflow": {"tasks": {"a": {"type": "a"}}}}),
            &["/at CONFLICTING_FIELDS", "/workflow CONFLICTING_FIELDS"],
        ),
        (json!({"every": "1ms", "task": {"type": "a"}}), &["/every TOO_FREQUENT"]),
        (json!({"every": "often", "task": {"type": "a"}}), &["/every INVALID_DURATION"]),
        (json!({"cron": "0 0 30 2 *", "task": {"type": "a"}}), &["/cron NEVER_FIRES"]),
        (json!({"at": "2001-01-01T00:00:00Z", "task": {"type": "a"}}), &["/at NEVER_FIRES"]),
        (
            json!({"name": "other", "every": "1h", "task": {"type": "a"}}),
            &["/name CONFLICTING_FIELDS"],
        ),
    ] {
        assert_refused(&router, &body, errors).await;
    }
    for body in ["[]", "7", "null"] {
        let body: Value = serde_json::from_str(body).unwrap();
        assert_eq!(ask(&router, put(PATH, &[], &body)).await.status, 422, "{body}");
    }
    assert_eq!(code(&ask(&router, get(PATH)).await), (404, "SCHEDULE_NOT_FOUND".to_owned()));
}

#[tokio::test]
async fn everything_wrong_with_a_workflow_is_said_with_the_rest() {
    let router = router();
    for (body, errors) in [
        (
            json!({"every": "soon", "workflow": {"failFast": 1, "idempotencyKey": "k", "tasks": {
                "a": {"type": "!"}, "b": {"type": "a", "runAt": "2030-01-01T00:00:00Z"}}}}),
            &[
                "/every INVALID_DURATION",
                "/workflow/failFast WRONG_TYPE",
                "/workflow/idempotencyKey UNSUPPORTED_FIELD",
                "/workflow/tasks/a/type INVALID_NAME",
                "/workflow/tasks/b/runAt UNSUPPORTED_FIELD",
            ][..],
        ),
        (
            json!({"every": "1h", "labels": {"": "x"}, "workflow": {"tasks": {
                "a": {"type": "a", "dependsOn": ["a"]}}}}),
            &["/labels INVALID_LABEL", "/workflow/tasks/a/dependsOn/0 SELF_DEPENDENCY"],
        ),
        (json!({"every": "1h", "workflow": {"tasks": {}}}), &["/workflow/tasks REQUIRED"]),
    ] {
        assert_refused(&router, &body, errors).await;
    }
}

#[tokio::test]
async fn only_tasks_can_wait_for_the_run_before() {
    let router = router();
    let body = json!({"every": "1h", "overlap": "bufferOne", "workflow": {"tasks": {
        "a": {"type": "a"}}}});
    let (status, code, errors) = ask(&router, put(PATH, &[], &body)).await.problem();
    assert_eq!((status, code.as_str()), (422, "UNSUPPORTED_FIELD"));
    assert_eq!(errors, ["/overlap UNSUPPORTED_FIELD"]);
    for overlap in ["skip", "allow", "cancelOther"] {
        let mut body = body.clone();
        body["overlap"] = overlap.into();
        assert!(ask(&router, put(PATH, &[], &body)).await.status.is_success(), "{overlap}");
    }
}

#[tokio::test]
async fn names_follow_the_rule_of_names() {
    let router = router();
    for name in ["duly.sweep", "-x", "a%20b", "a%2Fb"] {
        let path = format!("/schedules/{name}");
        let (status, _, errors) = ask(&router, put(&path, &[], &hourly())).await.problem();
        assert_eq!((status, errors), (422, vec!["/name INVALID_NAME".to_owned()]), "{name}");
        let absent = ask(&router, get(&path)).await;
        assert_eq!(code(&absent), (404, "SCHEDULE_NOT_FOUND".to_owned()), "{name}");
    }
    let mut body = hourly();
    body["name"] = "preview".into();
    let (.., errors) = send(&router, "/schedules/preview", &body).await.problem();
    assert_eq!(errors, ["/name INVALID_NAME"]);
}

#[tokio::test]
async fn a_preview_says_when_it_would_fire_and_keeps_nothing() {
    let router = router();
    let body = json!({"cron": "30 2 * * *", "timeZone": "Europe/Rome", "task": {"type": "a"}});
    let answer = send(&router, "/schedules/preview", &body).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let preview = answer.json();
    assert!(preview["description"].as_str().unwrap().contains("02:30"), "{preview}");
    assert!(preview["dstNote"].as_str().unwrap().contains("Europe/Rome"), "{preview}");
    let next = preview["next"].as_array().unwrap();
    assert_eq!(next.len(), 5);
    for time in next {
        let local = time["local"].as_str().unwrap();
        let is_local = local.contains("02:30:00 CET") || local.contains(" CEST");
        assert!(is_local && time["slot"].as_str().unwrap().ends_with(":00.000Z"), "{time}");
    }
    let plain = send(&router, "/schedules/preview", &hourly()).await.json();
    assert_eq!(plain.get("dstNote"), None, "{plain}");
    assert_eq!(read(&router, "/schedules").await, json!({"items": [], "nextCursor": null}));
}

#[tokio::test]
async fn the_next_slots_are_counted() {
    let router = router();
    create(&router, &hourly()).await;
    for (query, count) in [("", 5), ("?count=1", 1), ("?count=100", 100)] {
        let next = read(&router, &format!("{PATH}/next{query}")).await;
        let items = next["items"].as_array().unwrap();
        assert_eq!((items.len(), &next["timeZone"]), (count, &json!("UTC")));
        assert!(items.is_sorted_by_key(|it| it["slot"].as_str().unwrap()));
    }
    for bad in ["0", "101", "-1", "x", ""] {
        let answer = ask(&router, get(&format!("{PATH}/next?count={bad}"))).await;
        assert_eq!(code(&answer), (400, "INVALID_PARAMETER".to_owned()), "{bad}");
    }
}

#[tokio::test]
async fn a_paused_schedule_says_so_until_it_is_resumed() {
    let router = router();
    let made = create(&router, &hourly()).await;
    let answer = send(&router, &format!("{PATH}/pause"), &json!({"note": "deploying"})).await;
    let paused = answer.json();
    assert_eq!((&paused["status"], &paused["note"]), (&json!("PAUSED"), &json!("deploying")));
    assert_eq!((&paused["nextAt"], &paused["generation"]), (&Value::Null, &json!(2)));
    assert_eq!(answer.headers["etag"], format!("\"{}\"", paused["version"]).as_str());
    assert_eq!(read(&router, &format!("{PATH}/next")).await["status"], "PAUSED");
    let again = ask(&router, post(&format!("{PATH}/pause"), "")).await.json();
    assert_eq!(again, paused, "without a note the note stays");
    let resumed = ask(&router, post(&format!("{PATH}/resume"), "")).await.json();
    assert_eq!((&resumed["status"], &resumed["nextAt"]), (&json!("ACTIVE"), &made["nextAt"]));
    for (verb, body) in [
        ("pause", json!({"oops": 1})),
        ("resume", json!({"note": "x"})),
        ("trigger", json!({"x": 1})),
    ] {
        let answer = send(&router, &format!("{PATH}/{verb}"), &body).await;
        assert_eq!(code(&answer), (422, "INVALID_FIELDS".to_owned()), "{verb}");
    }
}

#[tokio::test]
async fn schedules_are_listed_by_name_and_filtered() {
    let router = router();
    for (name, status, team) in
        [("a", "ACTIVE", "x"), ("b", "PAUSED", "x"), ("c", "ACTIVE", "y"), ("d", "ACTIVE", "x")]
    {
        let mut body = nightly();
        body["status"] = status.into();
        body["labels"] = json!({"team": team, "re.gion": "eu"});
        let answer = ask(&router, put(&format!("/schedules/{name}"), &[], &body)).await;
        assert_eq!(answer.status, 201, "{answer:?}");
    }
    for (query, found) in [
        ("", &["a", "b", "c", "d"][..]),
        ("?status=ACTIVE", &["a", "c", "d"]),
        ("?status=paused", &["b"]),
        ("?label.team=x", &["a", "b", "d"]),
        ("?label.team=x&label.re.gion=eu&status=ACTIVE", &["a", "d"]),
        ("?label.team=z", &[]),
    ] {
        let page = read(&router, &format!("/schedules{query}")).await;
        assert_eq!(names(&page), found, "{query}");
    }
    let first = read(&router, "/schedules?limit=2&label.team=x").await;
    assert_eq!(names(&first), ["a", "b"]);
    let cursor = first["nextCursor"].as_str().unwrap();
    let rest = read(&router, &format!("/schedules?limit=2&label.team=x&cursor={cursor}")).await;
    assert_eq!((names(&rest), &rest["nextCursor"]), (vec!["d"], &Value::Null));
    for query in ["limit=2", "label.team=y", "label.team=x&status=ACTIVE"] {
        let answer = ask(&router, get(&format!("/schedules?{query}&cursor={cursor}"))).await;
        assert_eq!(code(&answer), (400, "INVALID_CURSOR".to_owned()), "{query}");
    }
    for query in ["status=gone", "label=x", "label.=x", "labels=a:b", "limit=0", "filter=x"] {
        let answer = ask(&router, get(&format!("/schedules?{query}"))).await;
        assert_eq!(code(&answer), (400, "INVALID_PARAMETER".to_owned()), "{query}");
    }
}

#[tokio::test]
async fn a_trigger_runs_the_task_and_the_run_is_listed() {
    let engine = engine();
    let router = router_over(&engine);
    create(&router, &nightly()).await;
    let triggered = ask(&router, post(&format!("{PATH}/trigger"), "")).await;
    assert_eq!(triggered.status, 201, "{triggered:?}");
    let slot = triggered.json();
    let id = slot["taskId"].as_str().unwrap();
    let task = read(&router, &format!("/tasks/{id}")).await;
    assert_eq!(task["schedule"], json!({"name": "nightly", "slot": slot["slot"]}), "{task}");
    let explained = read(&router, &format!("/tasks/{id}/explain")).await;
    assert_eq!(explained["schedule"], task["schedule"], "{explained}");
    let skipped = trigger_after(&router, &slot["slot"]).await;
    assert_eq!(
        (&skipped["skipped"], skipped.get("taskId")),
        (&json!("OVERLAP"), None),
        "{skipped}"
    );
    let hand = Hand::of(&engine, &["a"]).await;
    let ended = hand.end(Outcome::Success { result: None }, None).await;
    assert_eq!(ended, id);
    let runs = read(&router, &format!("{PATH}/runs")).await;
    let statuses: Vec<_> =
        runs["items"].as_array().unwrap().iter().map(|it| &it["status"]).collect();
    assert_eq!(statuses, [&Value::Null, &json!("SUCCESS")], "{runs}");
    assert_eq!(runs["items"][1]["taskId"], id);
}

#[tokio::test]
async fn a_workflow_of_a_schedule_names_it() {
    let router = router();
    let body = json!({"every": "9000h", "workflow": {"tasks": {"a": {"type": "a"}}}});
    create(&router, &body).await;
    let slot = ask(&router, post(&format!("{PATH}/trigger"), "")).await.json();
    let id = slot["workflowId"].as_str().unwrap();
    let workflow = read(&router, &format!("/workflows/{id}")).await;
    assert_eq!(workflow["schedule"], json!({"name": "nightly", "slot": slot["slot"]}));
    let listed = read(&router, "/workflows").await;
    assert_eq!(listed["items"][0]["schedule"]["name"], "nightly");
    assert_eq!(read(&router, &format!("{PATH}/runs")).await["items"][0]["status"], "RUNNING");
}

#[tokio::test]
async fn a_schedule_fires_by_itself() {
    let engine = engine();
    let router = router_over(&engine);
    create(&router, &json!({"every": "1s", "overlap": "allow", "task": {"type": "a"}})).await;
    let hand = Hand::of(&engine, &["a"]).await;
    let first = hand.end(Outcome::Success { result: None }, None).await;
    let task = read(&router, &format!("/tasks/{first}")).await;
    assert_eq!(task["schedule"]["name"], "nightly", "{task}");
    let runs = read(&router, &format!("{PATH}/runs")).await;
    let items = runs["items"].as_array().unwrap();
    assert!(items.iter().any(|it| it["taskId"] == first && it["status"] == "SUCCESS"), "{runs}");
}

#[tokio::test]
async fn slots_of_the_past_are_run_once() {
    let engine = engine();
    let router = router_over(&engine);
    let body = json!({"every": "9000h", "overlap": "allow", "task": {"type": "a"}});
    create(&router, &body).await;
    let path = format!("{PATH}/backfill");
    let period = json!({"from": "1970-01-01T00:00:00Z", "to": "2099-01-01T00:00:00Z"});
    let mut trial = period.clone();
    trial["dryRun"] = true.into();
    let dry = send(&router, &path, &trial).await;
    assert_eq!(dry.status, 200, "{dry:?}");
    let dry = dry.json();
    let slot = dry["slots"][0]["slot"].clone();
    let expected = json!({"slots": [{"slot": slot, "ranBefore": false}], "more": false,
        "taskId": null});
    assert_eq!(dry, expected, "one of the last 400 days");
    let started = send(&router, &path, &period).await;
    assert_eq!(started.status, 202, "{started:?}");
    let task = started.json()["taskId"].as_str().unwrap().to_owned();
    assert_eq!(started.headers["location"], format!("/v1/tasks/{task}").as_str());
    assert_eq!(started.json()["slots"], json!([]));
    let ended = Hand::of(&engine, &["a"]).await.end(Outcome::Success { result: None }, None).await;
    let run = read(&router, &format!("/tasks/{ended}")).await;
    assert_eq!(run["schedule"], json!({"name": "nightly", "slot": slot}));
    let order = read(&router, &format!("/tasks/{task}?wait=10s")).await;
    assert_eq!(order["status"], "SUCCESS", "{order}");
    let again = send(&router, &path, &trial).await.json();
    assert_eq!(again["slots"], json!([{"slot": slot, "ranBefore": true}]));
    let none = json!({"from": "2001-01-01T00:00:00Z", "to": "2002-01-01T00:00:00Z"});
    let none = send(&router, &path, &none).await;
    assert_eq!((none.status.as_u16(), &none.json()["taskId"]), (200, &Value::Null));
    for (body, errors) in [
        (json!({}), &["/from REQUIRED", "/to REQUIRED"][..]),
        (
            json!({"from": "soon", "to": 7, "x": 1}),
            &["/from INVALID_TIME", "/to WRONG_TYPE", "/x UNKNOWN_FIELD"],
        ),
        (
            json!({"from": "2002-01-01T00:00:00Z", "to": "2001-01-01T00:00:00Z", "dryRun": 1}),
            &["/dryRun WRONG_TYPE", "/to OUT_OF_RANGE"],
        ),
    ] {
        let (status, _, mut found) = send(&router, &path, &body).await.problem();
        found.sort();
        assert_eq!((status, found), (422, errors.iter().map(|it| (*it).to_owned()).collect()));
    }
    let absent = send(&router, "/schedules/absent/backfill", &period).await;
    assert_eq!(code(&absent), (404, "SCHEDULE_NOT_FOUND".to_owned()));
}

#[tokio::test]
async fn requests_cannot_change_what_a_configuration_file_defines() {
    let engine = engine();
    let draft = ScheduleDraft { every: Some("1h".to_owned()), ..ScheduleDraft::default() };
    let task = Draft { task_type: Some("a".to_owned()), ..Draft::default() };
    let managed = NewSchedule {
        rule: draft.read().unwrap(),
        template: Template::task(task.check().unwrap()).unwrap(),
        status: ScheduleStatus::Active,
        note: None,
        labels: BTreeMap::new(),
        managed: true,
    };
    let (tenant, name) = (TenantName::default_tenant(), ScheduleName::new("nightly").unwrap());
    engine.put_schedule(&tenant, &name, managed, Expected::Any).await.unwrap();
    let router = router_over(&engine);
    let made = read(&router, PATH).await;
    assert_eq!(made["managed"], true);
    let json = [("content-type", "application/json")];
    for change in [
        put(PATH, &[], &nightly()),
        request(Method::DELETE, PATH, &[]),
        request(Method::POST, &format!("{PATH}/pause"), &json),
        request(Method::POST, &format!("{PATH}/resume"), &json),
    ] {
        let uri = change.uri().clone();
        let answer = ask(&router, change).await;
        assert_eq!(code(&answer), (409, "SCHEDULE_MANAGED".to_owned()), "{uri}");
    }
    assert_eq!(read(&router, PATH).await, made);
    let triggered = ask(&router, post(&format!("{PATH}/trigger"), "")).await;
    assert_eq!(triggered.status, 201, "a trigger is no change");
}

#[tokio::test]
async fn a_schedule_of_another_tenant_is_not_there() {
    let engine = engine();
    let (ada, bob) = (router_of(&engine, "ada"), router_of(&engine, "bob"));
    let own = create(&ada, &nightly()).await;
    assert_eq!(read(&bob, "/schedules").await["items"], json!([]));
    for (method, suffix) in [
        (Method::GET, ""),
        (Method::GET, "/next"),
        (Method::GET, "/runs"),
        (Method::POST, "/pause"),
        (Method::POST, "/resume"),
        (Method::POST, "/trigger"),
        (Method::DELETE, ""),
    ] {
        let asked = |name| request(method.clone(), &format!("/schedules/{name}{suffix}"), &[]);
        let foreign = ask(&bob, asked("nightly")).await;
        let absent = ask(&bob, asked("absent")).await;
        assert_eq!(code(&foreign), (404, "SCHEDULE_NOT_FOUND".to_owned()), "{method} {suffix}");
        assert_eq!(foreign.json()["detail"], absent.json()["detail"]);
    }
    let other = create(&bob, &hourly()).await;
    assert_ne!(other["scheduleId"], own["scheduleId"]);
    assert_eq!(read(&ada, PATH).await, own);
}
