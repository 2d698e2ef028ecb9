//! Requests made to cost memory cost little of it.

use std::path::Path;

use duly_core::limits::{BATCH_BYTES, BODY_BYTES, WORKFLOW_TASKS};
use duly_testkit::raw::Connection;
use duly_testkit::{Server, process, report};
use serde_json::{Map, json};

use crate::DULY;

/// By how much the process may grow.
const GROWTH: u64 = 64 << 20;

/// Path, body, and the statuses that are right.
type Case = (&'static str, String, &'static [u16]);

fn tasks() -> Vec<Case> {
    let deep = format!(r#"{{"type":"a","payload":{}{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
    let same = vec![r#""k":0"#; 100_000].join(",");
    let digits = "9".repeat(500_000);
    vec![
        ("/v1/tasks", deep, &[422]),
        ("/v1/tasks", format!("{{{}}}", keys(90_000)), &[422]),
        ("/v1/tasks", format!(r#"{{"type":"a","payload":{{{}}}}}"#, keys(90_000)), &[201]),
        ("/v1/tasks", format!("{{{}}}", keys(1_000_000)), &[413]),
        ("/v1/tasks", format!("{{{same}}}"), &[422]),
        ("/v1/tasks", format!(r#"{{"type":"a","payload":{{{same}}}}}"#), &[201]),
        ("/v1/tasks", format!(r#"{{"type":"a","priority":{digits}}}"#), &[422]),
        ("/v1/tasks", format!(r#"{{"type":"a","payload":1e{digits}}}"#), &[201, 400, 422]),
        ("/v1/tasks", " ".repeat(BODY_BYTES + 1), &[413]),
    ]
}

fn many() -> Vec<Case> {
    let list = |item: &str, count| format!("[{}]", vec![item; count].join(","));
    let nested = "[".repeat(60) + &"]".repeat(60);
    vec![
        ("/v1/tasks/batch", format!("[{{{}}}]", keys(1_000_000)), &[207, 422]),
        ("/v1/tasks/batch", list(&nested, 10_000), &[207, 422]),
        ("/v1/tasks/batch", list("{}", 10_001), &[413]),
        ("/v1/tasks/batch", " ".repeat(BATCH_BYTES + 1), &[413]),
        ("/v1/leases/finish", " ".repeat(BATCH_BYTES + 1), &[413]),
        ("/v1/workflows", chain(None), &[201]),
        ("/v1/workflows", chain(Some("t9999")), &[422]),
    ]
}

fn keys(count: usize) -> String {
    (0..count).map(|n| format!(r#""{n}":0"#)).collect::<Vec<_>>().join(",")
}

/// A workflow as long as allowed, in which each task waits for the one before.
fn chain(parent_of_first: Option<&str>) -> String {
    let task = |n: usize| {
        let before = n.checked_sub(1).map(|n| format!("t{n}"));
        let parent = before.or(parent_of_first.map(str::to_owned));
        (format!("t{n}"), json!({"type": "a", "dependsOn": parent.as_slice()}))
    };
    let tasks: Map<_, _> = (0..WORKFLOW_TASKS).map(task).collect();
    json!({"name": "w", "tasks": tasks}).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn s18_hostile_bodies_cost_little_memory() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let server = Server::start(Path::new(DULY), data.path(), &[]).await?;
    // The first requests of a process fill its caches.
    let mut connection = Connection::open(server.url()).await?;
    connection.post("/v1/tasks", br#"{"type":"a"}"#).await?;
    let before = process::resident_bytes(server.pid())?;
    let mut most = 0;
    for (path, body, statuses) in tasks().into_iter().chain(many()) {
        let mut connection = Connection::open(server.url()).await?;
        let answer = connection.post(path, body.as_bytes()).await?;
        let start: String = body.chars().take(60).collect();
        assert!(statuses.contains(&answer.status), "{path} {start}: {:.300}", answer.body);
        let grown = process::resident_bytes(server.pid())?.saturating_sub(before);
        assert!(grown < GROWTH, "{path} {start}: {} MiB", grown >> 20);
        most = most.max(grown);
    }
    report::say(&format!("hostile bodies: the server grew by {} MiB at the most", most >> 20));
    let (status, said) = server.interrupt().await?;
    assert!(status.success() && !said.contains("panicked") && !said.contains("ERROR"), "{said}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn s29_a_result_of_a_gigabyte_is_refused_before_it_is_sent() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let server = Server::start(Path::new(DULY), data.path(), &[]).await?;
    let before = process::resident_bytes(server.pid())?;
    for path in ["/v1/leases/finish", "/v1/leases", "/v1/tasks", "/v1/workflows"] {
        let mut connection = Connection::open(server.url()).await?;
        let head = "content-type: application/json\r\ncontent-length: 1073741824\r\n";
        let answer = connection.ask("POST", path, head, b"{").await?;
        assert_eq!((answer.status, answer.code().as_str()), (413, "BODY_TOO_LARGE"), "{path}");
    }
    assert!(process::resident_bytes(server.pid())?.saturating_sub(before) < GROWTH);
    Ok(())
}
