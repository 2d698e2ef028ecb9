//! An answer that says a task was taken leaves the server only after the task has been synced to
//! disk. Proved by the order of system calls, since a killed process loses nothing that it has
//! handed to the kernel.

use std::path::Path;

use duly_testkit::raw::Connection;
use duly_testkit::trace::{self, Answered};
use duly_testkit::wait::{PATIENCE, eventually};
use duly_testkit::{Server, report};
use tokio::task::JoinSet;

use crate::DULY;

const CONNECTIONS: usize = 8;
const SUBMITS: usize = 50;
/// Runs tomorrow, so that every sync of the log belongs to a submit.
const TASK: &[u8] = br#"{"type":"echo","delaySeconds":86400}"#;

#[tokio::test(flavor = "multi_thread")]
async fn no_answer_precedes_its_sync() -> anyhow::Result<()> {
    let Some(answers) = trace_submits(&[]).await? else { return Ok(()) };
    let early = answers.iter().filter(|answer| !answer.is_synced).count();
    report::say(&format!("{} answers checked, {early} before their sync", answers.len()));
    assert_eq!(early, 0, "{answers:?}");
    assert!(answers.len() >= 450, "only {} answers were found", answers.len());
    Ok(())
}

#[cfg(feature = "planted-bugs")]
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_before_its_sync_is_caught() -> anyhow::Result<()> {
    let bug = ["--planted-bug", "acknowledge-before-commit"];
    let Some(answers) = trace_submits(&bug).await? else { return Ok(()) };
    let early = answers.iter().filter(|answer| !answer.is_synced).count();
    report::say(&format!("the planted bug: {early} of {} answers were early", answers.len()));
    assert!(early > 0, "none of {} answers was early", answers.len());
    Ok(())
}

/// Submits one after the other and then side by side, all under strace.
async fn trace_submits(extra: &[&str]) -> anyhow::Result<Option<Vec<Answered>>> {
    if std::process::Command::new("strace").arg("-V").output().is_err() {
        report::skip("strace is not installed", "apt-get install strace")?;
        return Ok(None);
    }
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("trace");
    let name = file.to_str().expect("a temporary path is plain");
    let wrapper = [&trace::STRACE[..], &[name]].concat();
    let data = directory.path().join("data");
    let server = Server::start_under(&wrapper, Path::new(DULY), &data, extra).await?;
    submit(server.url()).await?;
    let mut crowd = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let url = server.url().to_owned();
        crowd.spawn(async move { submit(&url).await });
    }
    while let Some(done) = crowd.join_next().await {
        done??;
    }
    let last = format!("{} ", server.pid());
    let (status, _) = server.interrupt().await?;
    assert!(status.success(), "{status}");
    // The tracer outlives the server for a moment.
    let text = eventually("strace ends", PATIENCE, || async {
        let text = std::fs::read_to_string(&file).ok()?;
        let mut lines = text.lines();
        lines.any(|line| line.starts_with(&last) && line.contains("+++ exited")).then_some(text)
    });
    Ok(Some(trace::answers(&text.await?)))
}

async fn submit(url: &str) -> anyhow::Result<()> {
    let mut connection = Connection::open(url).await?;
    for _ in 0..SUBMITS {
        let answer = connection.post("/v1/tasks", TASK).await?;
        assert_eq!(answer.status, 201, "{answer:?}");
    }
    Ok(())
}
