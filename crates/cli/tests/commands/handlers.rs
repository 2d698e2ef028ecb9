//! `duly handler`, and what it says about the built-in task types, tried on a real server.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Context as _;
use duly_client::wire::{SubmitRequest, TaskView};
use duly_core::state::Status;
use duly_testkit::wait::PATIENCE;
use duly_testkit::{Server, command};
use futures_util::future::try_join_all;
use serde_json::{Value, json};

use crate::DULY;

/// The address in the examples.
const USUAL: &str = "http://127.0.0.1:8080";

async fn generous_server(data: &Path) -> anyhow::Result<Server> {
    Server::start(Path::new(DULY), data, &["--samples", "--allow-shell"]).await
}

/// What `duly handler list -o json` knows.
async fn references() -> anyhow::Result<Vec<Value>> {
    let listed = command::run(Path::new(DULY), &["handler", "list", "-o", "json"]).await?.json()?;
    listed["items"].as_array().cloned().context("no items")
}

/// Submits a task as the examples do and waits for its end.
async fn ended(server: &Server, task_type: &str, payload: &str) -> anyhow::Result<TaskView> {
    let payload = Some(serde_json::from_str(payload)?);
    let task = SubmitRequest { payload, ..SubmitRequest::new(task_type) };
    let id = server.client().submit(&task).await?.task_id;
    Ok(server.client().get_task(id, Some(PATIENCE)).await?)
}

/// Whether two values differ only in numbers and texts.
fn is_alike(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(name, value)| b.get(name).is_some_and(|it| is_alike(value, it)))
        }
        (Value::Number(a), Value::Number(b)) => a.is_f64() == b.is_f64(),
        (Value::String(_), Value::String(_)) => true,
        _ => a == b,
    }
}

async fn try_example(server: &Server, task_type: &str, example: &Value) -> anyhow::Result<()> {
    let payload = example["payload"].to_string().replace(USUAL, server.url());
    let task = ended(server, task_type, &payload).await?;
    let outcome = &example["outcome"];
    if let Some(code) = outcome["error"].as_str() {
        assert_eq!(task.status, Status::Failed, "{task_type} {payload}");
        assert_eq!(task.error.context("no error")?.code, code, "{task_type} {payload}");
    } else {
        assert_eq!(task.status, Status::Success, "{task_type} {payload}: {:?}", task.error);
        let result: Value = serde_json::from_str(task.result.context("no result")?.get())?;
        assert!(is_alike(&outcome["result"], &result), "{task_type} {payload}: {result}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_example_ends_as_described() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let server = generous_server(data.path()).await?;
    let references = references().await?;
    let mut tries = Vec::new();
    for reference in &references {
        let task_type = reference["type"].as_str().context("a type")?;
        for example in reference["examples"].as_array().context("examples")? {
            tries.push(try_example(&server, task_type, example));
        }
    }
    assert!(tries.len() >= references.len(), "{} examples", tries.len());
    try_join_all(tries).await?;
    Ok(())
}

/// A handler names the fields that it takes when it meets another, and the first that it misses.
#[tokio::test(flavor = "multi_thread")]
async fn the_described_fields_are_those_that_the_handlers_take() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let server = generous_server(data.path()).await?;
    for reference in references().await? {
        let task_type = reference["type"].as_str().context("a type")?;
        let fields = reference["payload"].as_array().context("fields")?;
        let is_required = |field: &&Value| field["default"].is_null();
        let name = |field: &Value| field["name"].as_str().unwrap_or_default().to_owned();
        if fields.is_empty() {
            continue;
        }
        let task = ended(&server, task_type, r#"{"no such field": 1}"#).await?;
        let message = task.error.context("no error")?.message;
        let known: BTreeSet<String> =
            message.split('`').skip(3).step_by(2).map(str::to_owned).collect();
        assert_eq!(known, fields.iter().map(name).collect(), "{task_type}: {message}");

        let Some(field) = fields.iter().find(is_required) else { continue };
        let task = ended(&server, task_type, r#"{}"#).await?;
        let message = task.error.context("no error")?.message;
        let expected = format!("missing field `{}`", name(field));
        assert!(message.contains(&expected), "{task_type}: {message}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn types_are_listed_with_the_flags_that_they_need() -> anyhow::Result<()> {
    let listed = command::run(Path::new(DULY), &["handler", "list"]).await?;
    assert_eq!(listed.code, Some(0), "{listed:?}");
    let needs = |task_type: &str| {
        let line = listed.stdout.lines().find(|line| line.starts_with(task_type));
        line.and_then(|line| line.split_whitespace().nth(1)).map(str::to_owned)
    };
    for (task_type, flag) in
        [("echo", "-"), ("shell", "--allow-shell"), ("data-backup", "--samples")]
    {
        assert_eq!(needs(task_type).as_deref(), Some(flag), "{listed:?}");
    }
    let ids = command::run(Path::new(DULY), &["handler", "list", "-o", "id"]).await?;
    assert!(ids.stdout.lines().any(|line| line == "http"), "{ids:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_type_is_shown_in_text_and_as_json() -> anyhow::Result<()> {
    let shown = command::run(Path::new(DULY), &["handler", "show", "http"]).await?;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    for word in ["expectStatus", "truncated", "HTTP_STATUS", "INVALID_PAYLOAD", "EXAMPLE"] {
        assert!(shown.stdout.contains(word), "{word}: {shown:?}");
    }
    let shown = command::run(Path::new(DULY), &["handler", "show", "sleep", "-o", "json"]).await?;
    let shown = shown.json()?;
    assert_eq!(shown["payload"][0]["name"], "seconds");
    assert_eq!(shown["examples"][0]["payload"], json!({"seconds": 0.5}));

    let unknown = command::run(Path::new(DULY), &["handler", "show", "slep"]).await?;
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(unknown.stderr.contains("'sleep'"), "{unknown:?}");
    Ok(())
}
