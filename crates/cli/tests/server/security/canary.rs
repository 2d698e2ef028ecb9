//! A secret in a task shows where the task itself is shown, and nowhere else.

use std::path::Path;

use duly_core::state::Status;
use duly_testkit::Server;
use duly_testkit::raw::Connection;
use serde_json::json;

use super::run_http;
use crate::DULY;

const CANARY: &str = "canary-7f3a9c";

#[tokio::test(flavor = "multi_thread")]
async fn s10_a_secret_of_a_task_is_in_no_log_error_or_explanation() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let server = Server::start(Path::new(DULY), data.path(), &["-vv"]).await?;
    let url = server.url().to_owned();
    let secret = json!({"Authorization": format!("Bearer {CANARY}")});
    let with_user = url.replace("http://", &format!("http://user:{CANARY}@"));
    let with_query =
        |base: &str| json!({"url": format!("{base}/x?key={CANARY}"), "headers": secret});
    let mut seen = Vec::new();
    for payload in [
        json!({"url": format!("{url}/livez"), "headers": secret, "body": CANARY, "method": "POST"}),
        json!({"url": format!("{url}/livez"), "headers": secret, "extra": CANARY}),
        json!({"url": with_user}),
        with_query(&url),
        with_query("http://127.0.0.1:1"),
        with_query("http://10.0.0.1"),
        with_query("https://127.0.0.1:1"),
        with_query("ftp://127.0.0.1"),
    ] {
        let task = run_http(&server, &payload).await?;
        assert_eq!(task.status, Status::Failed, "{task:?}");
        seen.push(task.task_id);
    }
    let task =
        run_http(&server, &json!({"url": format!("{url}/livez"), "headers": secret})).await?;
    assert_eq!(task.status, Status::Success, "{task:?}");
    seen.push(task.task_id);

    let mut connection = Connection::open(&url).await?;
    let refused = json!({"type": "http", "payload": {"headers": {"Host": CANARY}, "body": CANARY}});
    let answer = connection.post("/v1/tasks", refused.to_string().as_bytes()).await?;
    assert_eq!((answer.status, answer.body.contains(CANARY)), (422, false), "{answer:?}");
    let stuck = json!({"type": "unserved", "payload": {"password": CANARY}});
    let answer = connection.post("/v1/tasks", stuck.to_string().as_bytes()).await?;
    let stuck = answer.json()["taskId"].as_str().unwrap_or_default().to_owned();

    let parts = |id: &duly_core::id::TaskId| {
        ["attempts", "logs", "explain"].map(|part| format!("/v1/tasks/{id}/{part}"))
    };
    let more = ["/v1/dlq/groups", "/v1/queues", "/v1/workers", "/v1/nodes", "/readyz?verbose"];
    let more = more.map(str::to_owned).into_iter().chain([format!("/v1/tasks/{stuck}/explain")]);
    for path in seen.iter().flat_map(parts).chain(more) {
        let answer = connection.get(&path).await?;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        assert!(!answer.body.contains(CANARY), "{path}: {}", answer.body);
    }
    let task = connection.get(&format!("/v1/tasks/{stuck}")).await?;
    assert!(task.body.contains(CANARY), "the owner sees the payload");
    let (_, said) = server.interrupt().await?;
    assert!(said.contains("task completed") && !said.contains(CANARY), "{said}");
    Ok(())
}
