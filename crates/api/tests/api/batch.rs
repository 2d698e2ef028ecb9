//! Submit many tasks.

use duly_client::wire::{BatchAnswer, BatchItem};
use serde_json::Value;

use crate::support::{Answer, ask, get, post, post_as, router};

/// `ok` or the code, item by item; checks that the items are numbered.
fn outcomes(items: &[BatchItem]) -> Vec<String> {
    let outcome = |(at, item): (usize, &BatchItem)| match item {
        BatchItem::Accepted { index, .. } => {
            assert_eq!(*index, at);
            "ok".to_owned()
        }
        BatchItem::Refused { index, problem } => {
            assert_eq!(*index, at);
            problem.code.clone()
        }
    };
    items.iter().enumerate().map(outcome).collect()
}

fn items(answer: &Answer) -> Vec<BatchItem> {
    serde_json::from_slice::<BatchAnswer>(&answer.body).unwrap().items
}

#[tokio::test]
async fn a_batch_of_good_tasks_is_taken_whole() {
    let router = router();
    let answer = ask(&router, post("/v1/tasks/batch", r#"[{"type":"a"},{"type":"b"}]"#)).await;
    assert_eq!(answer.status, 201);
    assert_eq!(answer.headers["content-type"], "application/json");
    for item in items(&answer) {
        let BatchItem::Accepted { task_id, .. } = item else { panic!("{item:?}") };
        assert_eq!(ask(&router, get(&format!("/tasks/{task_id}"))).await.status, 200);
    }
    let answer = ask(&router, post("/tasks/batch", "[]")).await;
    assert_eq!((answer.status.as_u16(), answer.body.as_slice()), (201, &br#"{"items":[]}"#[..]));
}

#[tokio::test]
async fn bad_items_are_refused_in_place() {
    let router = router();
    let body = r#"[{"type":"a"},{"type":"!"},{"type":"a","runAt":"2999-01-01T00:00:00Z"},7,
        {"type":"a","notify":1},{"type":"a"}]"#;
    let answer = ask(&router, post("/tasks/batch", body)).await;
    assert_eq!(answer.status, 207);
    let bad = "INVALID_FIELDS";
    let expected = ["ok", bad, bad, bad, "UNSUPPORTED_FIELD", "ok"];
    assert_eq!(outcomes(&items(&answer)), expected);
    let problem = &answer.json()["items"][1]["problem"];
    assert_eq!(problem["errors"][0]["pointer"], "/type");
    assert_eq!(problem["status"], 422);
    assert!(problem.get("requestId").is_none());
    let stored = ask(&router, get("/tasks")).await.json();
    assert_eq!(stored["items"].as_array().unwrap().len(), 2);
    let answer = ask(&router, post("/tasks/batch", r#"[{},{"type":1}]"#)).await;
    assert_eq!(answer.status, 207);
}

#[tokio::test]
async fn nothing_of_a_broken_batch_is_stored() {
    let router = router();
    let too_many = format!("[{}]", vec![r#"{"type":"a"}"#; 10_001].join(","));
    for body in [r#"[{"type":"a"},{"type":"a"]"#.to_owned(), too_many] {
        assert!(ask(&router, post("/tasks/batch", body)).await.status.is_client_error());
    }
    assert_eq!(ask(&router, get("/tasks")).await.json()["items"], serde_json::json!([]));
}

#[tokio::test]
async fn lines_are_answered_with_lines() {
    let router = router();
    for media_type in ["application/x-ndjson", "application/ndjson"] {
        let body = "{\"type\":\"a\"}\n\n{oops\n{\"type\":\"b\"}\r\n";
        let answer = ask(&router, post_as("/tasks/batch", media_type, body)).await;
        assert_eq!(answer.status, 207);
        assert_eq!(answer.headers["content-type"], media_type);
        let text = String::from_utf8(answer.body).unwrap();
        assert!(text.ends_with('\n'));
        let items: Vec<_> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(outcomes(&items), ["ok", "MALFORMED_JSON", "ok"]);
    }
    let answer = ask(&router, post_as("/tasks/batch", "application/x-ndjson", "")).await;
    assert_eq!((answer.status.as_u16(), answer.body.len()), (201, 0));
}

#[tokio::test]
async fn keys_hold_item_by_item() {
    let router = router();
    let body = r#"[{"type":"a","idempotencyKey":"k1"},{"type":"a","idempotencyKey":"k2"}]"#;
    let mut first = ask(&router, post("/tasks/batch", body)).await.json();
    let again = ask(&router, post("/tasks/batch", body)).await;
    assert_eq!(again.status, 201);
    for item in first["items"].as_array_mut().unwrap() {
        assert_eq!(item.get("replayed"), None, "{item}");
        item["replayed"] = true.into();
    }
    assert_eq!(again.json(), first, "the same tasks, and it says so");
    let body = r#"[{"type":"b","idempotencyKey":"k1"},{"type":"a"}]"#;
    let answer = ask(&router, post("/tasks/batch", body)).await;
    assert_eq!(outcomes(&items(&answer)), ["IDEMPOTENCY_KEY_REUSED", "ok"]);
}

#[tokio::test]
async fn the_largest_batch_is_taken_in_order() {
    let router = router();
    let body: Vec<_> = (0..10_000).map(|n| format!(r#"{{"type":"a","payload":{n}}}"#)).collect();
    let answer = ask(&router, post("/tasks/batch", format!("[{}]", body.join(",")))).await;
    assert_eq!(answer.status, 201);
    let items = items(&answer);
    assert_eq!(items.len(), 10_000);
    for at in [0, 999, 1000, 9_999] {
        let BatchItem::Accepted { task_id, .. } = &items[at] else { panic!("{at}") };
        let task = ask(&router, get(&format!("/tasks/{task_id}"))).await.json();
        assert_eq!(task["payload"], Value::from(at));
    }
}
