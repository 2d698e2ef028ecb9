//! The beginning of an id stands for the id, in paths and nowhere else.

use axum::Router;
use axum::http::Method;
use serde_json::{Value, json};

use crate::support::{ask, engine, get, post, request, router, router_of, router_over};

/// Tasks of one due time have ids that begin alike.
async fn twins(router: &Router, count: usize) -> Vec<String> {
    let task = json!({"type": "a", "runAt": in_an_hour(router).await});
    let batch = Value::Array(vec![task; count]);
    let answer = ask(router, post("/tasks/batch", batch.to_string())).await.json();
    let items = answer["items"].as_array().unwrap();
    items.iter().map(|item| item["taskId"].as_str().unwrap().to_owned()).collect()
}

/// An instant for tasks that are not to start yet.
async fn in_an_hour(router: &Router) -> Value {
    let body = r#"{"type":"clock","delaySeconds":3600}"#;
    ask(router, post("/tasks", body)).await.json()["runAt"].take()
}

#[tokio::test]
async fn a_unique_beginning_is_enough_on_every_route_of_a_task() {
    let router = router();
    let task = ask(&router, post("/tasks", r#"{"type":"a","delaySeconds":60}"#)).await.json();
    let id = task["taskId"].as_str().unwrap();
    for length in [13, 14, 18, 19, 24, 35, 36] {
        for prefix in [id[..length].to_owned(), id[..length].to_uppercase()] {
            let found = ask(&router, get(&format!("/tasks/{prefix}"))).await;
            assert_eq!((found.status.as_u16(), &found.json()["taskId"]), (200, &json!(id)));
        }
    }
    let prefix = &id[..13];
    for below in ["attempts", "explain", "logs"] {
        assert_eq!(ask(&router, get(&format!("/v1/tasks/{prefix}/{below}"))).await.status, 200);
    }
    let headers = [("content-type", "application/json")];
    let edit = request(Method::PATCH, &format!("/tasks/{prefix}"), &headers);
    let edited = ask(&router, edit.map(|_| r#"{"priority":9}"#.into())).await;
    assert_eq!((edited.status.as_u16(), &edited.json()["priority"]), (200, &json!(9)));
    let cancelled = ask(&router, post(&format!("/tasks/{prefix}/cancel"), "")).await;
    assert_eq!(cancelled.json()["status"], "CANCELLED");
    let replayed = ask(&router, post(&format!("/tasks/{prefix}/replay"), "")).await;
    assert_eq!(replayed.json()["taskId"], id);
    let retried = ask(&router, post(&format!("/tasks/{prefix}/retry"), "")).await;
    assert_eq!(retried.problem().1, "STATE_CONFLICT");
}

#[tokio::test]
async fn the_beginning_of_several_names_some_of_them() {
    let router = router();
    let ids = twins(&router, 12).await;
    let prefix = &ids[0][..13];
    for asked in [get(&format!("/tasks/{prefix}")), post(&format!("/tasks/{prefix}/cancel"), "")] {
        let answer = ask(&router, asked).await;
        let (status, code, _) = answer.problem();
        assert_eq!((status, code.as_str()), (409, "AMBIGUOUS_ID"));
        let problem = answer.json();
        let candidates = problem["candidates"].as_array().unwrap();
        assert_eq!(candidates.len(), 10);
        for candidate in candidates {
            let candidate = candidate.as_str().unwrap();
            assert!(ids.iter().any(|id| id == candidate), "{candidate}");
            assert!(problem["detail"].as_str().unwrap().contains(candidate));
        }
    }
    for id in &ids {
        assert_eq!(ask(&router, get(&format!("/tasks/{id}"))).await.json()["status"], "PENDING");
        // All but the last character tells them apart here, or names both.
        let found = ask(&router, get(&format!("/tasks/{}", &id[..35]))).await;
        assert!([200, 409].contains(&found.status.as_u16()));
    }
}

#[tokio::test]
async fn a_beginning_is_looked_for_among_ones_own_tasks() {
    let engine = engine();
    let (own, other) = (router_over(&engine), router_of(&engine, "other"));
    let task = ask(&own, post("/tasks", r#"{"type":"a","delaySeconds":60}"#)).await.json();
    let prefix = &task["taskId"].as_str().unwrap()[..13];
    assert_eq!(ask(&own, get(&format!("/tasks/{prefix}"))).await.status, 200);
    let (status, code, _) = ask(&other, get(&format!("/tasks/{prefix}"))).await.problem();
    assert_eq!((status, code.as_str()), (404, "TASK_NOT_FOUND"));
}

#[tokio::test]
async fn what_is_no_beginning_is_not_found() {
    let router = router();
    let task = ask(&router, post("/tasks", r#"{"type":"a","delaySeconds":60}"#)).await.json();
    let id = task["taskId"].as_str().unwrap();
    let (short, bare) = (&id[..12], id.replace('-', ""));
    let shapeless = format!("{}x", &id[..13]);
    for bad in [short, &bare[..13], &shapeless, "ffffffff-ffff", "00000000-0000", "%ff"] {
        let (status, code, _) = ask(&router, get(&format!("/tasks/{bad}"))).await.problem();
        assert_eq!((status, code.as_str()), (404, "TASK_NOT_FOUND"), "{bad}");
    }
}

#[tokio::test]
async fn a_bulk_action_is_found_by_its_beginning_and_bodies_take_whole_ids() {
    let router = router();
    let order = r#"{"action":"cancel","filter":"type:a"}"#;
    let bulk = ask(&router, post("/bulk-actions", order)).await.json();
    let id = bulk["bulkId"].as_str().unwrap();
    let found = ask(&router, get(&format!("/bulk-actions/{}?wait=30s", &id[..13]))).await.json();
    assert_eq!(found["bulkId"], id);
    let abort = ask(&router, post(&format!("/bulk-actions/{}/abort", &id[..13]), "")).await;
    assert_eq!(abort.problem().1, "STATE_CONFLICT");
    let task = ask(&router, post("/tasks", r#"{"type":"a","delaySeconds":60}"#)).await.json();
    let prefix = &task["taskId"].as_str().unwrap()[..13];
    let (status, code, _) = ask(&router, get(&format!("/bulk-actions/{prefix}"))).await.problem();
    assert_eq!((status, code.as_str()), (404, "BULK_ACTION_NOT_FOUND"));
    let order = json!({"action": "cancel", "ids": [prefix]});
    let (status, _, errors) =
        ask(&router, post("/bulk-actions", order.to_string())).await.problem();
    assert_eq!((status, errors), (422, vec!["/ids/0 INVALID_ID".to_owned()]));
}
