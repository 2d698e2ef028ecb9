//! What went wrong with a task, attempt by attempt.

use duly_core::lease::Outcome;
use duly_core::task::Failure;
use serde_json::{Value, json};

use crate::support::{Hand, ask, engine, get, post, router_of, router_over};

#[tokio::test]
async fn failed_attempts_are_listed_oldest_first() {
    let engine = engine();
    let router = router_over(&engine);
    let worker = Hand::of(&engine, &["a"]).await;
    let none = json!({"strategy": "none"});
    let body = json!({"type": "a", "retries": 1, "backoff": none}).to_string();
    let task = ask(&router, post("/tasks", body)).await.json();
    let path = format!("/v1/tasks/{}/attempts", task["taskId"].as_str().unwrap());
    let page = ask(&router, get(&path)).await;
    assert_eq!(
        (page.status.as_u16(), page.json()),
        (200, json!({"items": [], "nextCursor": null}))
    );
    let retry = Outcome::Retry { error: Failure::new("BUSY", "busy"), entropy: 0, after: None };
    worker.end(retry, Some("hello\n")).await;
    worker.fail("BROKEN", "gone").await;
    let page = ask(&router, get(&path)).await.json();
    let [first, second] = page["items"].as_array().unwrap().as_slice() else { panic!("{page}") };
    assert_eq!(
        (&first["run"], &first["attempt"], &first["epoch"]),
        (&json!(1), &json!(1), &json!(1))
    );
    assert_eq!(first["error"], json!({"code": "BUSY", "message": "busy"}));
    assert_eq!((&first["log"], &first["worker"]), (&json!("hello\n"), &json!("hand")));
    assert!(first["startedAt"].as_str() <= first["endedAt"].as_str());
    assert_eq!((&second["attempt"], &second["error"]["code"]), (&json!(2), &json!("BROKEN")));
    assert_eq!((&second["log"], &page["nextCursor"]), (&Value::Null, &Value::Null));
}

#[tokio::test]
async fn attempts_of_unknown_tasks_and_of_other_tenants_are_not_found() {
    let engine = engine();
    let (ada, bob) = (router_of(&engine, "ada"), router_of(&engine, "bob"));
    let task = ask(&ada, post("/tasks", r#"{"type":"a"}"#)).await.json();
    let mine = task["taskId"].as_str().unwrap();
    assert_eq!(ask(&ada, get(&format!("/tasks/{mine}/attempts"))).await.status, 200);
    for id in [mine, "01920000-0000-7000-8000-000000000000", "x"] {
        let (status, code, _) = ask(&bob, get(&format!("/tasks/{id}/attempts"))).await.problem();
        assert_eq!((status, code.as_str()), (404, "TASK_NOT_FOUND"), "{id}");
    }
    let answer = ask(&ada, get(&format!("/tasks/{mine}/attempts?limit=1"))).await;
    assert_eq!(answer.problem().1, "INVALID_PARAMETER");
}
