//! `duly event`: against a real server, through its restarts.

use std::path::Path;

use duly_client::wire::{CloudEvent, SubmitRequest};
use duly_core::event::EventKind;
use duly_core::id::TaskId;
use duly_testkit::proxy::Proxy;
use duly_testkit::{Server, command};

use crate::DULY;
use crate::logs::Following;

/// No worker has this type: its tasks wait.
const WAITING: &str = "nobody-serves-this";

async fn submit(server: &Server) -> anyhow::Result<TaskId> {
    Ok(server.client().submit(&SubmitRequest::new(WAITING)).await?.task_id)
}

/// The subject of the next event.
async fn subject(tail: &mut Following) -> anyhow::Result<String> {
    let line = tail.line().await?.unwrap_or_default();
    let event: CloudEvent = serde_json::from_str(&line)?;
    assert_eq!(event.kind(), Some(EventKind::TaskCreated), "{line}");
    assert!(!line.contains('\u{1b}'), "{line}");
    Ok(event.subject)
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_printed_as_they_happen_until_ctrl_c() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let server = Server::start(Path::new(DULY), data.path(), &[]).await?;
    let words = ["event", "tail", "event:task.created,task.cancelled", &format!("type:{WAITING}")];
    let mut tail = Following::start(&words, server.url())?;
    tail.until_told("following events").await?;
    let id = submit(&server).await?;
    let line = tail.line().await?.unwrap_or_default();
    let parts: Vec<&str> = line.split_whitespace().skip(1).collect();
    assert_eq!(parts, ["task.created", &id.to_string(), WAITING, "default"], "{line}");
    server.client().submit(&SubmitRequest::new("echo")).await?;
    server.client().cancel_task(id, &Default::default()).await?;
    let line = tail.line().await?.unwrap_or_default();
    assert!(line.contains("task.cancelled") && line.contains(&id.to_string()), "{line}");
    // What was before is kept for those who ask for it.
    let words = ["event", "tail", "--since", "1m", "--limit", "1", "-o", "id"];
    let kept = [&words[..], &["event:task.cancelled", "--server", server.url()]].concat();
    let kept = command::run(Path::new(DULY), &kept).await?;
    assert_eq!((kept.code, kept.stdout.trim()), (Some(0), id.to_string().as_str()), "{kept:?}");
    tail.interrupt()?;
    let (rest, code, _) = tail.end().await?;
    assert_eq!((rest.len(), code), (0, Some(0)));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_followed_through_a_restart_of_the_server() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let proxy = Proxy::start().await?;
    let server = Server::start(Path::new(DULY), data.path(), &[]).await?;
    proxy.lead_to(server.url())?;
    let words = ["event", "tail", "event:task.created", "-o", "json"];
    let mut tail = Following::start(&words, &proxy.url())?;
    tail.until_told("following events").await?;
    let first = submit(&server).await?;
    assert_eq!(subject(&mut tail).await?, first.to_string());
    server.kill().await?;
    tail.until_told("connecting again").await?;
    let server = Server::start(Path::new(DULY), data.path(), &[]).await?;
    // Nobody reads the stream now, and it is kept nevertheless.
    let missed = submit(&server).await?;
    proxy.lead_to(server.url())?;
    tail.until_told("connected again").await?;
    assert_eq!(subject(&mut tail).await?, missed.to_string());
    let last = submit(&server).await?;
    assert_eq!(subject(&mut tail).await?, last.to_string());
    // A server that ends says so, and is waited for as well.
    server.terminate().await?;
    tail.until_told("shutting down").await?;
    tail.interrupt()?;
    assert_eq!(tail.end().await?.1, Some(0));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_refused_ends_the_command() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let server = Server::start(Path::new(DULY), data.path(), &[]).await?;
    for (words, code, says) in [
        (&["event", "tail", "nonsense"][..], 1, "not of the form key:value"),
        (&["event", "tail", "event:task.exploded"], 1, "kinds of events"),
        (&["event", "tail", "--since", "soon"], 1, "`since` must be"),
        (&["event", "tail", "--limit", "0"], 2, "--limit"),
        (&["event", "resume", "kafka"], 3, "GET /sinks"),
    ] {
        let ended = [words, &["--server", server.url()]].concat();
        let ended = command::run(Path::new(DULY), &ended).await?;
        assert_eq!(ended.code, Some(code), "{words:?}: {ended:?}");
        assert!(ended.stderr.contains(says), "{words:?}: {ended:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn sinks_are_listed_and_resumed() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let server = Server::start(Path::new(DULY), data.path(), &[]).await?;
    let duly = async |words: &[&str]| {
        command::run(Path::new(DULY), &[words, &["--server", server.url()]].concat()).await
    };
    let none = duly(&["event", "sinks"]).await?;
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), ""), "{none:?}");
    let mut tail = Following::start(&["event", "tail"], server.url())?;
    tail.until_told("following events").await?;
    let name = "duly.stream:default";
    assert_eq!(duly(&["event", "sinks", "-o", "id"]).await?.stdout.trim(), name);
    let table = duly(&["event", "sinks"]).await?.stdout;
    assert!(table.contains(name) && table.contains("kept"), "{table}");
    let resumed = duly(&["event", "resume", name, "-o", "json"]).await?.json()?;
    assert_eq!(resumed["name"], name);
    Ok(())
}
