//! A remote worker of a server with keys: `duly worker run` with `DULY_TOKEN`.

use std::path::Path;

use duly_client::Client;
use duly_client::wire::SubmitRequest;
use duly_core::state::Status;
use duly_testkit::keys::Keys;
use duly_testkit::wait::{PATIENCE, eventually};
use duly_testkit::{Node, command};
use tokio::process::Command;

use crate::DULY;

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_with_a_token_runs_the_tasks_of_a_server_with_keys() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let keys = Keys::write(Path::new(DULY), folder.path())?;
    let store = format!("sqlite:{}", folder.path().join("duly.db").display());
    let flags = ["--roles", "api,scheduler"];
    let node =
        Node::start_with_keys(Path::new(DULY), "keyed", &store, keys.config()?, &flags).await?;
    let run = ["worker", "run", "--server", node.url(), "--type", "echo"];
    for (token, reason) in [
        (String::new(), "UNAUTHENTICATED"),
        (keys.token("operator").await?, "FORBIDDEN"),
        ("no.such.token".to_owned(), "UNAUTHENTICATED"),
    ] {
        let variables = [("DULY_TOKEN", token.as_str())];
        let variables = if token.is_empty() { &[][..] } else { &variables };
        let ended = command::run_with(Path::new(DULY), &run, variables).await?;
        assert_ne!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stderr.contains(reason), "{reason}: {ended:?}");
        assert!(token.is_empty() || !ended.stderr.contains(&token), "the token is shown");
    }
    let mut worker = Command::new(DULY);
    worker.args(run).env("DULY_TOKEN", keys.token("worker").await?).kill_on_drop(true);
    let _worker = worker.spawn()?;
    let client = Client::new(node.url(), Some(&keys.token("submitter").await?))?;
    let task = client.submit(&SubmitRequest::new("echo")).await?.task_id;
    let is_done = || async {
        let task = client.get_task(task, Some(PATIENCE)).await.ok()?;
        (task.status == Status::Success).then_some(())
    };
    eventually("the worker runs the task", PATIENCE, is_done).await
}
