//! What a real process does with hostile input, and what it gives away. The numbers are those of the
//! security checklist.

mod canary;
mod memory;

use std::path::Path;
use std::process::Stdio;

use duly_client::wire::TaskView;
use duly_core::state::Status;
use duly_testkit::Server;
use duly_testkit::command;
use duly_testkit::raw::Connection;
use duly_testkit::wait::PATIENCE;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::DULY;

/// Submits a task of type `http`, waits for its end and returns it.
async fn run_http(server: &Server, payload: &Value) -> anyhow::Result<TaskView> {
    let body = json!({"type": "http", "payload": payload, "retries": 0});
    let mut connection = Connection::open(server.url()).await?;
    let answer = connection.post("/v1/tasks", body.to_string().as_bytes()).await?;
    let task: TaskView = serde_json::from_str(&answer.body)?;
    Ok(server.client().get_task(task.task_id, Some(PATIENCE)).await?)
}

#[tokio::test(flavor = "multi_thread")]
async fn s14_proxies_of_the_environment_are_not_used() -> anyhow::Result<()> {
    let (data, proxy) = (tempfile::tempdir()?, TcpListener::bind("127.0.0.1:0").await?);
    let address = format!("http://{}", proxy.local_addr()?);
    let variables = ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"];
    let variables: Vec<_> = variables.map(|name| format!("{name}={address}")).into();
    let wrapper: Vec<&str> = ["env", "-u", "NO_PROXY", "-u", "no_proxy"]
        .into_iter()
        .chain(variables.iter().map(String::as_str))
        .collect();
    let server = Server::start_under(&wrapper, DULY.as_ref(), data.path(), &[]).await?;
    let task = run_http(&server, &json!({"url": format!("{}/livez", server.url())})).await?;
    assert_eq!(task.status, Status::Success, "{task:?}");
    let proxy = proxy.into_std()?;
    assert!(proxy.accept().is_err(), "the proxy was dialled");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn s23_each_event_is_one_line() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let server = Server::start(Path::new(DULY), data.path(), &["-vv"]).await?;
    let evil = "x\r\n2030-01-01T00:00:00Z ERROR duly: forged\u{1b}[2J\u{202e}\u{7}\"}{";
    // What the target says is part of the error, which is logged.
    let target = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/", target.local_addr()?);
    let answer = format!("HTTP/1.1 404 X\r\nConnection: close\r\n\r\n{evil}");
    let say_evil = async {
        let (mut stream, _) = target.accept().await?;
        let read = stream.read(&mut [0; 4096]).await?;
        anyhow::ensure!(read > 0, "the handler sends a request");
        stream.write_all(answer.as_bytes()).await?;
        anyhow::Ok(())
    };
    let payload = json!({"url": url});
    let (task, said_evil) = tokio::join!(run_http(&server, &payload), say_evil);
    said_evil?;
    assert_eq!(task?.status, Status::Failed);
    let mut connection = Connection::open(server.url()).await?;
    let worker = json!({"name": evil, "types": ["forged"]});
    connection.post("/v1/sessions", worker.to_string().as_bytes()).await?;
    let task = json!({"type": "flaky", "payload": {evil: evil}, "labels": {"a": evil}});
    connection.post("/v1/tasks?wait=10s", task.to_string().as_bytes()).await?;
    let (_, said) = server.interrupt().await?;
    assert!(said.contains("Z ERROR duly: forged"), "the text is in the log: {said}");
    for line in said.lines() {
        assert!(!line.starts_with("2030-01-01"), "{line}");
        let is_dangerous = |c: char| c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c);
        assert!(!line.contains(is_dangerous), "{line:?}");
    }
    Ok(())
}

#[tokio::test]
async fn s27_a_server_without_keys_is_for_this_machine_alone() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let store = format!("sqlite:{}", data.path().join("duly.db").display());
    let data = data.path().to_str().expect("a plain path");
    for line in [
        &["dev", "--data", data, "--listen", "0.0.0.0:0"][..],
        &["dev", "--data", data, "--listen", "[::]:0"],
        &["serve", "--store", &store, "--insecure", "--listen", "0.0.0.0:0"],
        &["serve", "--store", &store, "--insecure", "--listen", "[::]:0"],
        &["serve", "--store", &store, "--listen", "127.0.0.1:0"],
    ] {
        let ended = command::run(DULY.as_ref(), line).await?;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{line:?}: {ended:?}");
    }
    let help = command::run(DULY.as_ref(), &["serve", "--help"]).await?.stdout;
    assert!(help.contains("[default: 127.0.0.1:8080]"), "{help}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn s28_shell_is_not_served_unless_the_operator_allows_it() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let server = Server::start(Path::new(DULY), data.path(), &[]).await?;
    let mut connection = Connection::open(server.url()).await?;
    let answer =
        connection.post("/v1/tasks", br#"{"type":"shell","payload":{"command":"id"}}"#).await?;
    assert_eq!(answer.json()["warnings"][0]["code"], "NO_WORKER_FOR_TYPE", "{answer:?}");
    for name in ["--allow-shell", "DULY_ALLOW_SHELL"] {
        let set = std::process::Command::new(DULY)
            .args(["serve", "--help"])
            .env("DULY_ALLOW_SHELL", "true")
            .stdin(Stdio::null())
            .output()?;
        let help = String::from_utf8(set.stdout)?;
        assert_eq!(help.contains(name), name.starts_with("--"), "{help}");
    }
    Ok(())
}
