//! `duly dev --samples --allow-shell`: the types that have to be asked for.

use std::path::Path;

use anyhow::Context as _;
use duly_client::ScheduleQuery;
use duly_client::wire::{PauseRequest, SubmitRequest};
use duly_core::id::TaskId;
use duly_core::schedule::ScheduleStatus;
use duly_core::state::Status;
use duly_testkit::wait::PATIENCE;
use duly_testkit::{Server, command};
use serde_json::{Value, json};

use crate::DULY;

async fn generous_server(data: &Path) -> anyhow::Result<Server> {
    Server::start(Path::new(DULY), data, &["--samples", "--allow-shell"]).await
}

async fn submit(server: &Server, task_type: &str, payload: &Value) -> anyhow::Result<TaskId> {
    let payload = Some(serde_json::value::to_raw_value(payload)?);
    let task = SubmitRequest { payload, retries: Some(0), ..SubmitRequest::new(task_type) };
    let answer = server.client().submit(&task).await?;
    assert!(answer.warnings.is_empty(), "{:?}", answer.warnings);
    Ok(answer.task_id)
}

/// The result of a task that must succeed.
async fn result(server: &Server, id: TaskId) -> anyhow::Result<Value> {
    let task = server.client().get_task(id, Some(PATIENCE)).await?;
    assert_eq!(task.status, Status::Success, "{task:?}");
    Ok(serde_json::from_str(task.result.context("no result")?.get())?)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_samples_run() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let mut server = generous_server(data.path()).await?;
    server.says("duly task run daily-report --wait").await?;
    for (task_type, field) in [
        ("daily-report", "rows"),
        ("cleanup-temp-files", "filesRemoved"),
        ("data-backup", "archiveBytes"),
    ] {
        let id = submit(&server, task_type, &json!({"speed": 1000})).await?;
        let result = result(&server, id).await?;
        assert!(result[field].is_u64(), "{task_type}: {result}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_sample_has_a_schedule_that_is_theirs_to_change() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let server = generous_server(data.path()).await?;
    let client = server.client();
    let page = client.list_schedules(&ScheduleQuery::default()).await?;
    let found: Vec<_> = page.items.iter().map(|it| (it.name.as_str(), it.managed)).collect();
    let samples = ["cleanup-temp-files", "daily-report", "data-backup"];
    assert_eq!(found, samples.map(|name| (name, false)));
    let order = PauseRequest { note: Some("mine".to_owned()) };
    client.pause_schedule("daily-report", &order).await?;
    server.kill().await?;
    let server = generous_server(data.path()).await?;
    let kept = server.client().get_schedule("daily-report").await?;
    assert_eq!((kept.status, kept.note), (ScheduleStatus::Paused, order.note));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shell_task_runs_and_one_that_fails_leaves_its_log() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let server = generous_server(data.path()).await?;
    let script = "echo \"I am $DULY_TASK_ID\"; cat";
    let payload = json!({"argv": ["sh", "-c", script], "stdin": "hi"});
    let id = submit(&server, "shell", &payload).await?;
    let printed = result(&server, id).await?;
    assert_eq!(printed["stdoutTail"], format!("I am {id}\nhi"), "{printed}");

    let script = "echo so far so good; echo no space >&2; exit 7";
    let id = submit(&server, "shell", &json!({"argv": ["sh", "-c", script]})).await?;
    let task = server.client().get_task(id, Some(PATIENCE)).await?;
    assert_eq!(task.status, Status::Failed, "{task:?}");
    let attempts = server.client().list_attempts(id).await?.items;
    let [attempt] = attempts.as_slice() else { panic!("not one attempt: {attempts:?}") };
    let error = attempt.error.as_ref().unwrap();
    assert_eq!(error.code, "SHELL_EXIT");
    assert_eq!(error.message, "the program ended with exit status: 7: no space");
    let log = attempt.log.as_deref().context("no log")?;
    assert!(log.contains("so far so good\n") && log.contains("no space\n"), "{log}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn they_are_not_served_by_default() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let server = Server::start(Path::new(DULY), data.path(), &[]).await?;
    for task_type in ["shell", "daily-report"] {
        let answer = server.client().submit(&SubmitRequest::new(task_type)).await?;
        let codes: Vec<_> = answer.warnings.iter().map(|warning| warning.code.as_str()).collect();
        assert_eq!(codes, ["NO_WORKER_FOR_TYPE"], "{task_type}");
    }
    let worker = ["worker", "run", "--server", server.url(), "--type", "shell"];
    let ended = command::run(Path::new(DULY), &worker).await?;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("no built-in handler for `shell`"), "{ended:?}");
    assert!(ended.stderr.contains("--allow-shell"), "{ended:?}");
    Ok(())
}
