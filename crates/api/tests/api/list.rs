//! Pages of tasks.

use axum::Router;

use crate::support::{ask, get, post, router};

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
    assert_eq!(page, serde_json::json!({"items": [], "nextCursor": null}));
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
