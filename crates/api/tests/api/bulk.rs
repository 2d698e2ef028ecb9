//! One order for many tasks.

use axum::Router;
use axum::http::Method;
use serde_json::{Value, json};

use crate::support::{
    Hand, ask, engine, get, pause_system, post, request, router, router_of, router_over,
};

async fn submit(router: &Router, body: &Value) -> String {
    let answer = ask(router, post("/tasks", body.to_string())).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()["taskId"].as_str().unwrap().to_owned()
}

/// Gives an order and waits for its end.
async fn carried_out(router: &Router, order: &Value) -> Value {
    let answer = ask(router, post("/v1/bulk-actions", order.to_string())).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    let id = answer.json()["bulkId"].as_str().unwrap().to_owned();
    assert_eq!(answer.headers["location"], format!("/v1/bulk-actions/{id}"));
    let ended = ask(router, get(&format!("/v1/bulk-actions/{id}?wait=30s"))).await.json();
    assert_eq!((&ended["bulkId"], &ended["status"]), (&json!(id), &json!("SUCCESS")), "{ended}");
    ended
}

async fn status(router: &Router, id: &str) -> Value {
    ask(router, get(&format!("/tasks/{id}"))).await.json()["status"].take()
}

#[tokio::test]
async fn every_action_does_what_it_says() {
    let engine = engine();
    let router = router_over(&engine);
    let worker = Hand::of(&engine, &["a"]).await;
    let mut failed = Vec::new();
    for _ in 0..3 {
        submit(&router, &json!({"type": "a", "queue": "mail"})).await;
        failed.push(worker.fail("BROKEN", "it broke").await);
    }
    submit(&router, &json!({"type": "a", "queue": "other"})).await;
    let other = worker.fail("BROKEN", "it broke").await;
    let order = json!({"action": "replay", "filter": "queue:mail"});
    let ended = carried_out(&router, &order).await;
    let numbers = |it: &Value| [it["done"].clone(), it["skipped"].clone(), it["total"].clone()];
    assert_eq!(numbers(&ended), [json!(3), json!(0), json!(3)], "{ended}");
    for id in &failed {
        assert_eq!(status(&router, id).await, "PENDING");
    }
    assert_eq!(status(&router, &other).await, "FAILED");
    let order = json!({"action": "cancel", "filter": "queue:mail", "reason": "enough"});
    assert_eq!(carried_out(&router, &order).await["done"], 3);
    let task = ask(&router, get(&format!("/tasks/{}", failed[0]))).await.json();
    assert_eq!(
        (&task["status"], &task["error"]["message"]),
        (&json!("CANCELLED"), &json!("enough"))
    );
    let order = json!({"action": "delete", "ids": [failed[0], other, failed[0]]});
    let ended = carried_out(&router, &order).await;
    assert_eq!(ended["total"], 2, "{ended}");
    for id in [&failed[0], &other] {
        assert_eq!(ask(&router, get(&format!("/tasks/{id}"))).await.status, 404);
    }
    let order = json!({"action": "delete", "all": true});
    assert_eq!(carried_out(&router, &order).await["done"], 2, "the orders themselves stay");
    let list = ask(&router, get("/bulk-actions?limit=3")).await.json();
    let actions: Vec<_> =
        list["items"].as_array().unwrap().iter().map(|it| &it["action"]).collect();
    assert_eq!(actions, ["delete", "delete", "cancel"]);
    let cursor = list["nextCursor"].as_str().unwrap();
    let rest = ask(&router, get(&format!("/bulk-actions?cursor={cursor}"))).await.json();
    assert_eq!(rest["items"][0]["action"], "replay");
}

#[tokio::test]
async fn a_trial_changes_nothing() {
    let router = router();
    for _ in 0..3 {
        submit(&router, &json!({"type": "a"})).await;
    }
    let order = json!({"action": "cancel", "filter": "type:a", "dryRun": true});
    let answer = ask(&router, post("/bulk-actions", order.to_string())).await;
    let found = answer.json();
    assert_eq!(
        (answer.status.as_u16(), &found["count"], &found["more"]),
        (200, &json!(3), &json!(false))
    );
    assert_eq!(found["sample"].as_array().unwrap().len(), 3);
    for id in found["sample"].as_array().unwrap() {
        assert_eq!(status(&router, id.as_str().unwrap()).await, "PENDING");
    }
    assert_eq!(ask(&router, get("/bulk-actions")).await.json()["items"], json!([]));
}

#[tokio::test]
async fn an_order_that_waits_can_be_aborted_and_one_that_ended_cannot() {
    let engine = engine();
    let router = router_over(&engine);
    submit(&router, &json!({"type": "a"})).await;
    let order = json!({"action": "cancel", "filter": "type:a"});
    let ended = carried_out(&router, &order).await;
    let id = ended["bulkId"].as_str().unwrap();
    let answer = ask(&router, post(&format!("/bulk-actions/{id}/abort"), "")).await;
    assert_eq!(answer.problem().1, "STATE_CONFLICT");
    pause_system(&engine).await;
    let answer = ask(&router, post("/bulk-actions", order.to_string())).await.json();
    let id = answer["bulkId"].as_str().unwrap();
    for _ in 0..2 {
        let answer = ask(&router, post(&format!("/bulk-actions/{id}/abort"), "")).await;
        assert_eq!(answer.json()["status"], "CANCELLED", "{answer:?}");
    }
}

#[tokio::test]
async fn bad_orders_are_refused() {
    let router = router();
    for (body, errors) in [
        ("{}", vec!["/action REQUIRED"]),
        (r#"{"action":"explode","all":true}"#, vec!["/action UNKNOWN_WORD"]),
        (r#"{"action":"cancel"}"#, vec!["/all REQUIRED"]),
        (r#"{"action":"cancel","filter":" "}"#, vec!["/all REQUIRED"]),
        (r#"{"action":"cancel","filter":"status:FAILED"}"#, vec!["/filter INVALID_FILTER"]),
        (r#"{"action":"cancel","filter":"x"}"#, vec!["/filter INVALID_FILTER"]),
        (r#"{"action":"cancel","filter":"error:\u0000"}"#, vec!["/filter INVALID_FILTER"]),
        (r#"{"action":"cancel","ids":[]}"#, vec!["/ids REQUIRED"]),
        (r#"{"action":"cancel","ids":["x",1]}"#, vec!["/ids/0 INVALID_ID", "/ids/1 WRONG_TYPE"]),
        (r#"{"action":"retry","all":true,"reason":"x"}"#, vec!["/reason CONFLICTING_FIELDS"]),
        (r#"{"action":"delete","all":true,"perSecond":1}"#, vec!["/perSecond CONFLICTING_FIELDS"]),
        (r#"{"action":"replay","all":true,"perSecond":0}"#, vec!["/perSecond OUT_OF_RANGE"]),
        (
            r#"{"action":"replay","all":1,"dryRun":"no"}"#,
            vec!["/all WRONG_TYPE", "/dryRun WRONG_TYPE", "/all REQUIRED"],
        ),
    ] {
        let (status, _, found) = ask(&router, post("/bulk-actions", body)).await.problem();
        assert_eq!(
            (status, found),
            (422, errors.iter().map(ToString::to_string).collect()),
            "{body}"
        );
    }
    let own = json!({"type": "duly.bulk"});
    let (status, _, errors) = ask(&router, post("/tasks", own.to_string())).await.problem();
    assert_eq!((status, errors), (422, vec!["/type INVALID_NAME".to_owned()]));
    let worker = r#"{"types":["duly.bulk"]}"#;
    let (status, _, errors) = ask(&router, post("/sessions", worker)).await.problem();
    assert_eq!((status, errors), (422, vec!["/types/0 INVALID_NAME".to_owned()]));
}

#[tokio::test]
async fn the_same_key_gives_the_same_order() {
    let router = router();
    let order = r#"{"action":"cancel","filter":"type:a"}"#;
    let give = || {
        let headers = [("content-type", "application/json"), ("idempotency-key", "k1")];
        request(Method::POST, "/bulk-actions", &headers).map(|_| order.into())
    };
    let first = ask(&router, give()).await;
    assert_eq!(first.status, 202, "{first:?}");
    let id = first.json()["bulkId"].as_str().unwrap().to_owned();
    ask(&router, get(&format!("/bulk-actions/{id}?wait=30s"))).await;
    let again = ask(&router, give()).await;
    assert_eq!((again.status.as_u16(), &again.json()["bulkId"]), (200, &json!(id)));
    assert_eq!(again.headers["idempotency-replayed"], "true");
}

#[tokio::test]
async fn an_order_cannot_be_changed_behind_its_back() {
    let router = router();
    let bulk = carried_out(&router, &json!({"action": "cancel", "all": true})).await;
    let id = bulk["bulkId"].as_str().unwrap();
    let body = r#"{"payload":{"action":"delete","filter":""}}"#;
    let answer = ask(&router, post(&format!("/tasks/{id}/replay"), body)).await;
    assert_eq!(answer.problem().1, "STATE_CONFLICT");
    let headers = [("content-type", "application/json")];
    let edit = request(Method::PATCH, &format!("/tasks/{id}"), &headers).map(|_| body.into());
    assert_eq!(ask(&router, edit).await.problem().1, "STATE_CONFLICT");
}

#[tokio::test]
async fn other_tasks_and_the_orders_of_others_are_no_orders() {
    let engine = engine();
    let (router, other) = (router_over(&engine), router_of(&engine, "other"));
    let task = submit(&router, &json!({"type": "a"})).await;
    let bulk = carried_out(&router, &json!({"action": "cancel", "all": true})).await;
    let foreign = bulk["bulkId"].as_str().unwrap();
    for (router, id) in [(&router, task.as_str()), (&other, foreign), (&router, "x")] {
        for asked in
            [get(&format!("/bulk-actions/{id}")), post(&format!("/bulk-actions/{id}/abort"), "")]
        {
            let (status, code, _) = ask(router, asked).await.problem();
            assert_eq!((status, code.as_str()), (404, "BULK_ACTION_NOT_FOUND"));
        }
    }
}
