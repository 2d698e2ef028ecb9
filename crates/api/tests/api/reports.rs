//! Progress and logs: told by remote workers, read by everybody.

use axum::Router;
use duly_core::lease::Outcome;
use duly_core::limits::CHECKPOINT_BYTES;
use serde_json::{Value, json};

use crate::support::{Answer, Hand, ask, engine, get, post, router, router_of, router_over};

const ID: &str = "01920000-0000-7000-8000-00000000000a";

async fn send(router: &Router, path: &str, body: &Value) -> Answer {
    ask(router, post(path, body.to_string())).await
}

/// A session that holds one task: its id and the task's.
async fn held(router: &Router) -> (String, String) {
    let answer = ask(router, post("/sessions", r#"{"types":["a"]}"#)).await.json();
    let session = answer["sessionId"].as_str().unwrap().to_owned();
    ask(router, post("/tasks", r#"{"type":"a"}"#)).await;
    let claim = json!({"sessionId": session, "seq": 1, "max": 1});
    let leases = send(router, "/leases", &claim).await.json();
    (session, leases["leases"][0]["task"]["taskId"].as_str().unwrap().to_owned())
}

/// Reports one item, and returns what became of it.
async fn report(router: &Router, what: &str, session: &str, item: Value) -> Value {
    let body = json!({"sessionId": session, "items": [item]});
    let answer = send(router, &format!("/leases/{what}"), &body).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["items"][0]["status"].clone()
}

async fn log(router: &Router, (session, task): &(String, String), offset: u64, text: &str) {
    let item = json!({"taskId": task, "epoch": 1, "offset": offset, "text": text});
    assert_eq!(report(router, "logs", session, item).await, "DONE");
}

async fn logs(router: &Router, task: &str, query: &str) -> Value {
    let answer = ask(router, get(&format!("/v1/tasks/{task}/logs{query}"))).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

fn texts(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|it| it["text"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn progress_shows_on_the_task() {
    let router = router();
    let (session, task) = held(&router).await;
    let shown =
        async || ask(&router, get(&format!("/tasks/{task}"))).await.json()["progress"].clone();
    assert_eq!(shown().await, Value::Null);
    let checkpoint = json!({"row": 7});
    let item = json!({"taskId": task, "epoch": 1, "done": 2, "total": 3, "message": "at it",
        "checkpoint": checkpoint});
    assert_eq!(report(&router, "progress", &session, item).await, "DONE");
    let mut progress = shown().await;
    assert!(progress["updatedAt"].as_str().unwrap().ends_with('Z'));
    progress.as_object_mut().unwrap().remove("updatedAt");
    let expected = json!({"done": 2, "total": 3, "percent": 66, "message": "at it",
        "checkpoint": checkpoint});
    assert_eq!(progress, expected);
    let item = json!({"taskId": task, "epoch": 1, "done": 9007199254740991_u64});
    assert_eq!(report(&router, "progress", &session, item).await, "DONE");
    let progress = shown().await;
    assert_eq!((&progress["total"], &progress["percent"]), (&Value::Null, &Value::Null));
    assert_eq!(progress["checkpoint"], checkpoint, "it stays");
}

#[tokio::test]
async fn an_outcome_brings_the_rest() {
    let router = router();
    let (session, task) = held(&router).await;
    let lease = (session.clone(), task.clone());
    log(&router, &lease, 0, "one\n").await;
    let outcome = json!({"taskId": task, "epoch": 1, "outcome": "success",
        "progress": {"done": 3, "total": 3}, "log": "one\ntwo\n", "logOffset": 0});
    let body = json!({"sessionId": session, "outcomes": [outcome]});
    assert_eq!(send(&router, "/leases/finish", &body).await.json()["items"][0]["status"], "DONE");
    let page = logs(&router, &task, "").await;
    assert_eq!((texts(&page), &page["live"]), (vec!["one\ntwo\n"], &json!(false)));
    let ended = ask(&router, get(&format!("/tasks/{task}"))).await.json();
    assert_eq!(ended["progress"]["percent"], 100);
}

#[tokio::test]
async fn logs_are_read_page_by_page() {
    let router = router();
    let lease = held(&router).await;
    // What lies between was dropped: what follows at once would be one piece.
    for (offset, text) in [(0, "eins\n"), (50, "zwölf\n")] {
        log(&router, &lease, offset, text).await;
    }
    let page = logs(&router, &lease.1, "?limit=1").await;
    let mut first = page["items"][0].clone();
    assert!(first["at"].is_string());
    first.as_object_mut().unwrap().remove("at");
    let expected = json!({"run": 1, "attempt": 1, "epoch": 1, "offset": 0, "text": "eins\n"});
    assert_eq!((first, &page["live"]), (expected, &json!(true)));
    let next = page["next"].as_str().unwrap();
    let page = logs(&router, &lease.1, &format!("?after={next}")).await;
    assert_eq!(texts(&page), ["zwölf\n"]);
    let next = page["next"].as_str().unwrap();
    assert_eq!(texts(&logs(&router, &lease.1, &format!("?after={next}")).await), [""; 0]);
    assert_eq!(texts(&logs(&router, &lease.1, "?epoch=1").await).len(), 2);
    assert_eq!(texts(&logs(&router, &lease.1, "?epoch=2").await), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_with_the_next_line() {
    let router = router();
    let lease = held(&router).await;
    let start = tokio::time::Instant::now();
    let waiting = logs(&router, &lease.1, "?wait=60s");
    let (page, ()) = tokio::join!(waiting, log(&router, &lease, 0, "news\n"));
    assert_eq!(texts(&page), ["news\n"]);
    assert!(start.elapsed().is_zero(), "by a wake-up and not by looking again");
    let next = page["next"].as_str().unwrap();
    let page = logs(&router, &lease.1, &format!("?after={next}&wait=1s")).await;
    assert_eq!((texts(&page), &page["live"]), (vec![], &json!(true)));
    assert!(start.elapsed().as_secs() >= 1, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_with_the_run() {
    let engine = engine();
    let router = router_over(&engine);
    let hand = Hand::of(&engine, &["b"]).await;
    let task = ask(&router, post("/tasks", r#"{"type":"b"}"#)).await.json();
    let task = task["taskId"].as_str().unwrap();
    let start = tokio::time::Instant::now();
    let waiting = logs(&router, task, "?wait=60s");
    let ending = hand.end(Outcome::Success { result: None }, Some("bye\n"));
    let (page, _) = tokio::join!(waiting, ending);
    assert_eq!((texts(&page), &page["live"]), (vec!["bye\n"], &json!(false)));
    assert!(start.elapsed().is_zero());
    let next = page["next"].as_str().unwrap();
    let page = logs(&router, task, &format!("?after={next}&wait=60s")).await;
    assert_eq!((texts(&page), start.elapsed().is_zero()), (vec![], true), "there is no more");
}

#[tokio::test(start_paused = true)]
async fn a_report_does_not_end_the_wait_for_an_outcome() {
    let router = router();
    let lease = held(&router).await;
    let start = tokio::time::Instant::now();
    let path = format!("/tasks/{}?wait=2s", lease.1);
    let waiting = ask(&router, get(&path));
    let (answer, ()) = tokio::join!(waiting, log(&router, &lease, 0, "x"));
    assert_eq!(answer.json()["status"], "RUNNING");
    assert!(start.elapsed().as_secs() >= 2, "{:?}", start.elapsed());
}

#[tokio::test]
async fn stale_and_foreign_reports_are_refused_item_by_item() {
    let engine = engine();
    let (router, other) = (router_over(&engine), router_of(&engine, "other"));
    let (session, task) = held(&router).await;
    let line =
        |task: &str, epoch: u32| json!({"taskId": task, "epoch": epoch, "offset": 0, "text": "x"});
    let items = json!([line(&task, 1), line(&task, 2), line(ID, 1)]);
    let body = json!({"sessionId": session, "items": items});
    let answer = send(&router, "/leases/logs", &body).await.json();
    let said: Vec<_> = answer["items"].as_array().unwrap().iter().map(|it| &it["status"]).collect();
    assert_eq!(said, ["DONE", "LEASE_LOST", "UNKNOWN"]);
    for path in ["/leases/logs", "/leases/progress"] {
        let item = if path.ends_with("logs") {
            line(&task, 1)
        } else {
            json!({"taskId": task, "epoch": 1, "done": 1})
        };
        let body = json!({"sessionId": session, "items": [item]});
        let (status, code, _) = send(&other, path, &body).await.problem();
        assert_eq!((status, code.as_str()), (404, "SESSION_NOT_FOUND"), "{path}");
    }
    let foreign = ask(&other, get(&format!("/tasks/{task}/logs"))).await;
    assert_eq!(foreign.problem().1, "TASK_NOT_FOUND");
}

#[tokio::test]
async fn bad_input_is_refused_with_its_place() {
    let router = router();
    let item = |more: &str| {
        format!(r#"{{"sessionId":"{ID}","items":[{{"taskId":"{ID}","epoch":1{more}}}]}}"#)
    };
    let long = "x".repeat(501);
    let large = format!("\"{}\"", "x".repeat(CHECKPOINT_BYTES));
    for (what, more, wanted) in [
        ("progress", String::new(), "/items/0/done REQUIRED"),
        ("progress", r#","done":-1"#.to_owned(), "/items/0/done OUT_OF_RANGE"),
        ("progress", r#","done":1.5"#.to_owned(), "/items/0/done OUT_OF_RANGE"),
        ("progress", r#","done":1,"total":"9""#.to_owned(), "/items/0/total WRONG_TYPE"),
        ("progress", r#","done":1,"percent":9"#.to_owned(), "/items/0/percent UNKNOWN_FIELD"),
        ("progress", format!(r#","done":1,"message":"{long}""#), "/items/0/message OUT_OF_RANGE"),
        (
            "progress",
            format!(r#","done":1,"checkpoint":{large}"#),
            "/items/0/checkpoint OUT_OF_RANGE",
        ),
        (
            "progress",
            r#","done":1,"checkpoint":"\u0000""#.to_owned(),
            "/items/0/checkpoint NUL_CHARACTER",
        ),
        ("logs", r#","offset":0"#.to_owned(), "/items/0/text REQUIRED"),
        ("logs", r#","text":"x""#.to_owned(), "/items/0/offset REQUIRED"),
        ("logs", r#","text":1,"offset":0"#.to_owned(), "/items/0/text WRONG_TYPE"),
        (
            "logs",
            r#","text":"x","offset":9007199254740992"#.to_owned(),
            "/items/0/offset OUT_OF_RANGE",
        ),
    ] {
        let answer = ask(&router, post(&format!("/leases/{what}"), item(&more))).await;
        let (status, code, errors) = answer.problem();
        assert_eq!((status, code.as_str()), (422, "INVALID_FIELDS"), "{more:.60}");
        assert_eq!(errors, [wanted], "{more:.60}");
    }
    for (what, body) in [("progress", "{}"), ("logs", r#"{"items":[]}"#), ("logs", "[]")] {
        let answer = ask(&router, post(&format!("/leases/{what}"), body)).await;
        assert_eq!(answer.problem().0, 422, "{body}");
    }
}

#[tokio::test]
async fn bad_parameters_are_refused() {
    let router = router();
    let lease = held(&router).await;
    let other = held(&router).await;
    let next = logs(&router, &other.1, "").await["next"].as_str().unwrap().to_owned();
    let foreign = format!("after={next}");
    for (query, wanted) in [
        ("epoch=x", "INVALID_PARAMETER"),
        ("epoch=-1", "INVALID_PARAMETER"),
        ("wait=61s", "INVALID_PARAMETER"),
        ("wait=soon", "INVALID_PARAMETER"),
        ("limit=0", "INVALID_PARAMETER"),
        ("limit=1048577", "INVALID_PARAMETER"),
        ("follow=true", "INVALID_PARAMETER"),
        ("after=", "INVALID_CURSOR"),
        ("after=AQ", "INVALID_CURSOR"),
        (&foreign, "INVALID_CURSOR"),
    ] {
        let answer = ask(&router, get(&format!("/tasks/{}/logs?{query}", lease.1))).await;
        let (status, code, _) = answer.problem();
        assert_eq!((status, code.as_str()), (400, wanted), "{query}");
    }
    for id in [ID, "x"] {
        let (status, code, _) = ask(&router, get(&format!("/tasks/{id}/logs"))).await.problem();
        assert_eq!((status, code.as_str()), (404, "TASK_NOT_FOUND"), "{id}");
    }
}
