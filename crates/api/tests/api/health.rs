//! What the server says of itself while it lives and while it ends.

use serde_json::json;

use crate::support::{ask, engine, get, post, router_over};

#[tokio::test]
async fn a_server_is_ready_until_it_closes() {
    let engine = engine();
    let router = router_over(&engine);
    let answer = ask(&router, get("/readyz")).await;
    assert_eq!(
        (answer.status.as_u16(), answer.json()),
        (200, json!({"status": "ready", "reasons": []}))
    );
    let checks = ask(&router, get("/readyz?verbose")).await.json()["checks"].clone();
    assert_eq!(checks, json!([{"name": "open", "ok": true}, {"name": "store", "ok": true}]));
    engine.close().await;
    let answer = ask(&router, get("/v1/readyz")).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.headers["retry-after"]),
        (503, &"1".parse().unwrap())
    );
    assert_eq!(answer.json()["status"], "notReady");
    assert_eq!(answer.json()["reasons"], json!(["the server is shutting down"]));
    assert_eq!(ask(&router, get("/livez")).await.status, 200);
}

#[tokio::test]
async fn a_closed_server_takes_no_task() {
    let engine = engine();
    let router = router_over(&engine);
    engine.close().await;
    for (path, body) in [("/tasks", r#"{"type":"a"}"#), ("/tasks/batch", r#"[{"type":"a"}]"#)] {
        let answer = ask(&router, post(path, body)).await;
        let (status, code, _) = answer.problem();
        assert_eq!((status, code.as_str()), (503, "SHUTTING_DOWN"));
        assert_eq!(answer.headers["retry-after"], "5");
    }
}
