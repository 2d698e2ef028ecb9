//! Backups of a server that works, and the way back.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, ensure};
use duly_client::Client;
use duly_client::wire::{BatchItem, SubmitRequest};
use duly_core::id::TaskId;
use duly_core::state::Status;
use duly_testkit::Server;
use duly_testkit::command::{Ended, run_long};
use duly_testkit::wait::{PATIENCE, eventually};

use crate::DULY;

/// Tasks before the backup begins, and in each call beside it.
const BEFORE: usize = 2_000;
const BATCH: usize = 20;

/// A place for a server and for backups of it.
struct Site(tempfile::TempDir);

impl Site {
    fn new() -> anyhow::Result<Self> {
        Ok(Self(tempfile::tempdir()?))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    async fn start(&self, data: &str, extra: &[&str]) -> anyhow::Result<Server> {
        Server::start(Path::new(DULY), &self.path(data), extra).await
    }

    async fn duly(&self, arguments: &[&str]) -> anyhow::Result<Ended> {
        run_long(Path::new(DULY), arguments).await
    }

    async fn back_up(&self, server: &Server, file: &str) -> anyhow::Result<PathBuf> {
        let file = self.path(file);
        let name = file.display().to_string();
        let ended = self.duly(&["backup", &name, "--server", server.url()]).await?;
        ensure!(ended.code == Some(0), "{ended:?}");
        ensure!(ended.line()? == name, "the file is the only line: {ended:?}");
        Ok(file)
    }

    async fn restore(&self, file: &Path, data: &str, extra: &[&str]) -> anyhow::Result<Ended> {
        let (file, data) = (file.display().to_string(), self.path(data).display().to_string());
        let mut arguments = vec!["restore", &file, "--data", &data];
        arguments.extend(extra);
        self.duly(&arguments).await
    }
}

async fn submit(client: &Client, tasks: &[SubmitRequest]) -> anyhow::Result<Vec<TaskId>> {
    let answer = client.submit_batch(tasks).await?;
    let id = |item| match item {
        BatchItem::Accepted { task_id, .. } => Some(task_id),
        BatchItem::Refused { .. } => None,
    };
    Ok(answer.items.into_iter().filter_map(id).collect())
}

/// The tasks that a server lists.
async fn listed(client: &Client) -> anyhow::Result<HashSet<TaskId>> {
    let (mut tasks, mut cursor) = (HashSet::new(), None);
    loop {
        let page = client.list_tasks("", Some(200), cursor.as_deref()).await?;
        tasks.extend(page.items.into_iter().map(|task| task.task_id));
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(tasks);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_of_a_busy_server_holds_what_was_acknowledged_before() -> anyhow::Result<()> {
    let site = Site::new()?;
    let server = site.start("live", &["--concurrency", "0"]).await?;
    let client = server.client().clone();
    let echo = vec![SubmitRequest::new("echo"); BEFORE];
    let before = submit(&client, &echo).await?;
    let stop = AtomicBool::new(false);
    let writing = async {
        let mut count = 0;
        while !stop.load(Ordering::Relaxed) {
            count += submit(&client, &vec![SubmitRequest::new("echo"); BATCH]).await?.len();
        }
        anyhow::Ok(count)
    };
    let backing_up = async {
        let file = site.back_up(&server, "busy.db").await;
        stop.store(true, Ordering::Relaxed);
        file
    };
    let (written, file) = tokio::join!(writing, backing_up);
    let file = file?;
    ensure!(written? > 0, "nothing was submitted beside the backup");
    ensure!(!site.path("live/duly.db.copy").exists(), "the server keeps no copy");

    let ended = site.restore(&file, "restored", &[]).await?;
    ensure!(ended.code == Some(0), "{ended:?}");
    let restored = site.start("restored", &[]).await?;
    let tasks = listed(restored.client()).await?;
    let missing = before.iter().filter(|id| !tasks.contains(id)).count();
    assert_eq!(missing, 0, "acknowledged before the backup began");
    for id in &tasks {
        let task = || async {
            let task = restored.client().get_task(id, Some(PATIENCE)).await.ok()?;
            task.status.is_terminal().then_some(task.status)
        };
        assert_eq!(eventually("the task ends", PATIENCE, task).await?, Status::Success);
    }
    restored.terminate().await?;
    server.terminate().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_in_a_backup_come_back() -> anyhow::Result<()> {
    let site = Site::new()?;
    let server = site.start("live", &[]).await?;
    let mut sleep = SubmitRequest::new("sleep");
    sleep.payload = Some(serde_json::value::to_raw_value(&serde_json::json!({"seconds": 600}))?);
    let id = server.client().submit(&sleep).await?.task_id;
    let runs = || async {
        let task = server.client().get_task(id, None).await.ok()?;
        (task.status == Status::Running).then_some(())
    };
    eventually("the task runs", PATIENCE, runs).await?;
    let file = site.back_up(&server, "running.db").await?;
    site.restore(&file, "restored", &[]).await?;
    let restored = site.start("restored", &["--concurrency", "0"]).await?;
    let task = restored.client().get_task(id, None).await?;
    assert_eq!((task.status, task.losses, task.epoch), (Status::Pending, 1, 1));
    assert_eq!(server.client().get_task(id, None).await?.status, Status::Running, "it goes on");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_overwritten_unless_it_is_asked_for() -> anyhow::Result<()> {
    let site = Site::new()?;
    let server = site.start("live", &[]).await?;
    let first = server.client().submit(&SubmitRequest::new("echo")).await?.task_id;
    let file = site.back_up(&server, "one.db").await?;
    let name = file.display().to_string();
    let again = site.duly(&["backup", &name, "--server", server.url()]).await?;
    assert_eq!(again.code, Some(2), "{again:?}");
    let second = server.client().submit(&SubmitRequest::new("echo")).await?.task_id;

    let data = site.path("live").display().to_string();
    let running = site.restore(&file, "live", &["--replace"]).await?;
    assert_eq!(running.code, Some(1), "{running:?}");
    assert!(running.stderr.contains("another process"), "{}", running.stderr);
    let offline = site.path("offline.db").display().to_string();
    let locked = site.duly(&["backup", &offline, "--data", &data]).await?;
    assert_eq!(locked.code, Some(1), "{locked:?}");
    server.terminate().await?;

    let copied = site.duly(&["backup", &offline, "--data", &data]).await?;
    assert_eq!(copied.code, Some(0), "{copied:?}");
    let refused = site.restore(&file, "live", &[]).await?;
    assert!(refused.code == Some(1) && refused.stderr.contains("--replace"), "{refused:?}");
    let replaced = site.restore(&file, "live", &["--replace"]).await?;
    assert_eq!(replaced.code, Some(0), "{replaced:?}");
    let server = site.start("live", &[]).await?;
    assert_eq!(listed(server.client()).await?, HashSet::from([first]));
    server.terminate().await?;
    let replaced = site.restore(Path::new(&offline), "live", &["--replace"]).await?;
    assert_eq!(replaced.code, Some(0), "{replaced:?}");
    let server = site.start("live", &[]).await?;
    assert_eq!(listed(server.client()).await?, HashSet::from([first, second]));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_backup_is_refused_and_changes_nothing() -> anyhow::Result<()> {
    let site = Site::new()?;
    let server = site.start("live", &[]).await?;
    for number in 0..200 {
        let mut echo = SubmitRequest::new("echo");
        let payload = serde_json::json!({"number": number, "text": "x".repeat(2_000)});
        echo.payload = Some(serde_json::value::to_raw_value(&payload)?);
        server.client().submit(&echo).await?;
    }
    let whole = std::fs::read(site.back_up(&server, "whole.db").await?)?;
    let mut damaged = whole.clone();
    let middle = whole.len() / 2;
    damaged[middle..middle + 8192].fill(0xa5);
    let cases: [(&str, &[u8]); 4] = [
        ("empty", b""),
        ("text", b"not a database at all, but long enough to be looked at"),
        ("half", &whole[..whole.len() / 2]),
        ("damaged", &damaged),
    ];
    for (name, content) in cases {
        let file = site.path(name);
        std::fs::write(&file, content)?;
        let ended = site.restore(&file, "fresh", &[]).await?;
        assert_eq!(ended.code, Some(1), "{name}: {ended:?}");
        assert!(ended.stderr.contains("is not a backup of duly"), "{name}: {}", ended.stderr);
        assert!(!site.path("fresh/duly.db").exists(), "{name}");
    }
    let missing = site.restore(&site.path("nowhere"), "fresh", &[]).await?;
    assert!(missing.code == Some(1) && missing.stderr.contains("nowhere"), "{missing:?}");
    let client = server.client();
    client.submit(&SubmitRequest::new("echo")).await.context("the server goes on")?;
    Ok(())
}
