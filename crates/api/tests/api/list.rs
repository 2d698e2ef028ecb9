//! Pages of tasks.

use axum::Router;
use serde_json::{Value, json};

use crate::support::{Answer, Hand, ask, engine, get, post, router, router_over};

async fn submit_many(router: &Router, count: usize) {
    let items: Vec<_> =
        (0..count).map(|n| format!(r#"{{"type":"a","delaySeconds":{n}}}"#)).collect();
    let answer = ask(router, post("/tasks/batch", format!("[{}]", items.join(",")))).await;
    assert_eq!(answer.status, 201);
}

/// The ids on each page.
async fn pages(router: &Router, limit: usize) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut path = format!("/v1/tasks?limit={limit}");
    loop {
        let answer = ask(router, get(&path)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let page = answer.json();
        let items = page["items"].as_array().unwrap().iter();
        pages.push(items.map(|task| task["taskId"].as_str().unwrap().to_owned()).collect());
        let Some(cursor) = page["nextCursor"].as_str() else {
            assert!(page["nextCursor"].is_null());
            return pages;
        };
        path = format!("/v1/tasks?limit={limit}&cursor={cursor}");
    }
}

#[tokio::test]
async fn pages_cover_every_task_once_newest_first() {
    let router = router();
    submit_many(&router, 6).await;
    for (limit, sizes) in [(2, vec![2, 2, 2]), (4, vec![4, 2]), (6, vec![6]), (200, vec![6])] {
        let pages = pages(&router, limit).await;
        assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), sizes);
        let all = pages.concat();
        assert!(all.is_sorted_by(|newer, older| newer > older), "{all:?}");
    }
}

#[tokio::test]
async fn an_empty_list_is_one_empty_page() {
    let page = ask(&router(), get("/tasks")).await.json();
    let empty = json!({"items": [], "nextCursor": null, "scanned": 0, "partial": false});
    assert_eq!(page, empty);
}

#[tokio::test]
async fn a_page_has_fifty_tasks_unless_told_otherwise() {
    let router = router();
    submit_many(&router, 60).await;
    let page = ask(&router, get("/tasks")).await.json();
    assert_eq!(page["items"].as_array().unwrap().len(), 50);
    assert!(page["nextCursor"].is_string());
}

#[tokio::test]
async fn a_page_of_large_tasks_is_shorter() {
    let router = router();
    let body = format!(r#"{{"type":"a","payload":"{}"}}"#, "x".repeat(1_000_000));
    for _ in 0..10 {
        assert_eq!(ask(&router, post("/tasks", body.clone())).await.status, 201);
    }
    let pages = pages(&router, 200).await;
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [8, 2]);
}

/// A router, and a task each of `a` (which failed), `b` and `c`, newest last.
async fn mixed() -> (Router, Vec<String>) {
    let engine = engine();
    let router = router_over(&engine);
    let worker = Hand::of(&engine, &["a"]).await;
    let mut ids = Vec::new();
    for (kind, queue, labels) in [
        ("a", "mail", json!({"customer": "42"})),
        ("b", "mail", json!({"customer": "42", "city": "New \"York\""})),
        ("c", "default", json!({})),
    ] {
        let body = json!({"type": kind, "queue": queue, "labels": labels}).to_string();
        let task = ask(&router, post("/tasks", body)).await.json();
        ids.push(task["taskId"].as_str().unwrap().to_owned());
        if kind == "a" {
            worker.fail("SMTP_ERROR", "Connection timed out").await;
        }
    }
    (router, ids)
}

async fn filtered(router: &Router, filter: &str, rest: &str) -> Answer {
    let query = encoded(filter);
    ask(router, get(&format!("/v1/tasks?filter={query}{rest}"))).await
}

/// A value as it stands in a query.
fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn ids(page: &Value) -> Vec<String> {
    let items = page["items"].as_array().unwrap().iter();
    items.map(|task| task["taskId"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn filters_narrow_the_list() {
    let (router, stored) = mixed().await;
    for (filter, wanted) in [
        ("", vec![2, 1, 0]),
        (" ", vec![2, 1, 0]),
        ("queue:mail", vec![1, 0]),
        ("type:c", vec![2]),
        ("status:FAILED", vec![0]),
        ("status:FAILED,PENDING queue:mail", vec![1, 0]),
        ("label.customer:42 status:PENDING", vec![1]),
        (r#"label.city:"New \"York\"""#, vec![1]),
        (r#"error:"TIMED OUT""#, vec![0]),
        ("worker:hand", vec![0]),
        ("since:1h", vec![2, 1, 0]),
        ("until:1h", vec![]),
    ] {
        let answer = filtered(&router, filter, "").await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let wanted: Vec<_> = wanted.into_iter().map(|at: usize| stored[at].clone()).collect();
        let page = answer.json();
        assert_eq!(ids(&page), wanted, "{filter}");
        assert_eq!((&page["nextCursor"], &page["partial"]), (&Value::Null, &json!(false)));
        assert!(page["scanned"].as_u64().unwrap() >= wanted.len() as u64);
    }
}

#[tokio::test]
async fn a_bad_filter_says_where_and_what_is_allowed() {
    let (router, _) = mixed().await;
    for (filter, wanted) in [
        ("queue:mail color:red", "`filter`: `color:red` at byte 11 has no known key; keys are"),
        ("mail", "`mail` at byte 0 is not of the form key:value"),
        ("status:faild", "status takes BLOCKED, PENDING, RUNNING,"),
        ("queue:a queue:b", "`queue:b` at byte 8: queue is given twice"),
        ("error:\"a", "quotation marks stand around a whole value"),
        ("since:yesterday", "since takes a time ago such as 24h"),
        (&"x".repeat(1001), "at byte 1000: a filter has at most 1000 characters"),
    ] {
        let answer = filtered(&router, filter, "").await;
        assert_eq!(answer.problem(), (400, "INVALID_PARAMETER".to_owned(), vec![]), "{filter}");
        let detail = answer.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(wanted), "{filter}: {detail}");
    }
}

#[tokio::test]
async fn a_cursor_holds_for_its_filter_only() {
    let (router, stored) = mixed().await;
    let page = filtered(&router, "queue:mail", "&limit=1").await.json();
    let cursor = format!("&cursor={}", page["nextCursor"].as_str().unwrap());
    let next = filtered(&router, "queue:mail", &cursor).await.json();
    assert_eq!((ids(&page), ids(&next)), (vec![stored[1].clone()], vec![stored[0].clone()]));
    for other in ["", "queue:mail type:a", "queue:default"] {
        let answer = filtered(&router, other, &cursor).await;
        assert_eq!(answer.problem().1, "INVALID_CURSOR", "{other}");
        assert!(answer.json()["detail"].as_str().unwrap().contains("the same filter"));
    }
    let answer = filtered(&router, "queue:", &cursor).await;
    assert_eq!(answer.problem().1, "INVALID_PARAMETER", "what is wrong comes first");
}

#[tokio::test]
async fn a_search_that_takes_long_is_partial_and_goes_on() {
    let router = router();
    ask(&router, post("/tasks", r#"{"type":"a","labels":{"rare":"yes"}}"#)).await;
    for _ in 0..2 {
        let items = vec![r#"{"type":"a","delaySeconds":60}"#; 6000];
        let answer = ask(&router, post("/tasks/batch", format!("[{}]", items.join(",")))).await;
        assert_eq!(answer.status, 201);
    }
    let page = filtered(&router, "label.rare:yes", "").await.json();
    assert_eq!((ids(&page).len(), &page["scanned"]), (0, &json!(10_000)));
    assert_eq!(page["partial"], json!(true));
    let cursor = format!("&cursor={}", page["nextCursor"].as_str().unwrap());
    let page = filtered(&router, "label.rare:yes", &cursor).await.json();
    assert_eq!((ids(&page).len(), &page["partial"]), (1, &json!(false)));
}
