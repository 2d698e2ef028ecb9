//! Settings of a real server, changed while it works.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use duly_client::wire::SubmitRequest;
use duly_core::id::TaskId;
use duly_core::state::Status;
use duly_testkit::command::{self, Ended};
use duly_testkit::target::Log;
use duly_testkit::wait::{PATIENCE, eventually, within};
use duly_testkit::{Server, Target, report};

use crate::DULY;

const TASKS: usize = 3_000;
/// How long each execution takes.
const EXECUTION: Duration = Duration::from_millis(150);
/// How soon a change must show, on a busy machine.
const EFFECTIVE: Duration = Duration::from_secs(10);

/// Sets the number of handlers; returns when it was ordered.
async fn set_concurrency(server: &Server, places: u32) -> anyhow::Result<Instant> {
    let before = server.client().get_settings().await?;
    let mut settings = before.current.settings;
    settings.worker_concurrency = Some(places);
    let (ordered, request) = (Instant::now(), settings.into_request(None));
    let after = server.client().put_settings(before.current.version, &request).await?;
    assert_eq!(after.effective.worker_concurrency, places);
    Ok(ordered)
}

/// Waits until so many executions are under way; returns how long that took from the order on.
async fn reaches(
    target: &Target,
    ordered: Instant,
    condition: impl Fn(usize) -> bool,
) -> anyhow::Result<Duration> {
    within("the concurrency changes", target.wait_for(|log| condition(log.in_flight))).await??;
    let took = ordered.elapsed();
    assert!(took <= EFFECTIVE, "it took {took:?}");
    Ok(took)
}

/// Waits until this many more executions have begun.
async fn goes_on(target: &Target, executions: usize) -> anyhow::Result<()> {
    let begun = target.log().executions.len();
    let more = target.wait_for(|log| log.executions.len() >= begun + executions);
    within("more executions begin", more).await?
}

/// The most executions that overlapped at a moment of this window.
fn most_at_once(log: &Log, from: Instant, to: Instant) -> usize {
    let mut moments = Vec::new();
    for execution in &log.executions {
        let ended = execution.ended.unwrap_or(to).min(to);
        if execution.started < to && ended > from {
            moments.push((execution.started.max(from), 1_isize));
            moments.push((ended, -1));
        }
    }
    // At one moment ends come before starts.
    moments.sort_unstable();
    let (mut now, mut most) = (0, 0);
    for (_, step) in moments {
        now += step;
        most = most.max(now);
    }
    most.unsigned_abs()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_concurrency_changes_under_load_and_nothing_is_lost() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let target = Target::start(EXECUTION).await?;
    let server = Server::start(Path::new(DULY), data.path(), &["--concurrency", "2"]).await?;
    let begun = Instant::now();
    for _ in 0..TASKS / 1_000 {
        let batch = server.client().submit_batch(&vec![target.task(); 1_000]).await?;
        assert_eq!(batch.items.len(), 1_000);
    }
    within("two executions run", target.wait_for(|log| log.in_flight == 2)).await??;
    goes_on(&target, 10).await?;

    let more = set_concurrency(&server, 32).await?;
    let grown = reaches(&target, more, |in_flight| in_flight > 16).await?;
    goes_on(&target, 200).await?;
    let fewer = set_concurrency(&server, 4).await?;
    let shrunk = reaches(&target, fewer, |in_flight| in_flight <= 4).await?;
    let settled = Instant::now();
    goes_on(&target, 40).await?;
    let drained = set_concurrency(&server, 256).await?;

    let all = |log: &Log| log.executions.len() >= TASKS && log.in_flight == 0;
    within("everything runs", target.wait_for(all)).await??;
    let log = target.log();
    let most = |from, to| most_at_once(&log, from, to);
    let phases = [most(begun, more), most(more, fewer), most(settled, drained)];
    report::say(&format!(
        "concurrency 2 → 32 in {grown:?}, → 4 in {shrunk:?}; at once: {phases:?} of {TASKS} tasks"
    ));
    assert_eq!(phases[0], 2);
    assert!((17..=32).contains(&phases[1]), "{phases:?}");
    assert!((1..=4).contains(&phases[2]), "{phases:?}");
    every_task_ran_once(&server, &log).await
}

async fn every_task_ran_once(server: &Server, log: &Log) -> anyhow::Result<()> {
    let mut runs: HashMap<TaskId, usize> = HashMap::new();
    for execution in &log.executions {
        *runs.entry(execution.task).or_default() += 1;
    }
    assert_eq!((runs.len(), log.executions.len()), (TASKS, TASKS), "each task once");
    for task in runs.keys() {
        let view = server.client().get_task(*task, Some(PATIENCE)).await?;
        let found = (view.status, view.attempt, view.losses);
        assert_eq!(found, (Status::Success, 1, 0), "{view:?}");
    }
    Ok(())
}

async fn duly(server: &Server, arguments: &[&str]) -> anyhow::Result<Ended> {
    let ended =
        command::run(Path::new(DULY), &[arguments, &["--server", server.url()]].concat()).await?;
    assert!(!ended.stderr.contains("panicked"), "{ended:?}");
    Ok(ended)
}

#[tokio::test]
async fn settings_are_changed_from_a_terminal_and_outlive_a_restart() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let server = Server::start(Path::new(DULY), data.path(), &["--concurrency", "5"]).await?;
    let shown = duly(&server, &["settings", "get"]).await?;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.stdout.contains("null (started with 5)"), "{shown:?}");
    assert!(shown.stdout.contains("never changed"), "{shown:?}");
    assert!(shown.stderr.contains("duly settings set"), "{shown:?}");
    let none = duly(&server, &["settings", "history"]).await?;
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), ""), "{none:?}");

    let changes = [
        "settings",
        "set",
        "retries=5",
        "backoff.strategy=fixed",
        "backoff.baseSeconds=2",
        "workerConcurrency=32",
        "retention.success=1d",
        "retention.cancelled=forever",
        "--comment",
        "a busy night",
        "-o",
        "json",
    ];
    let set = duly(&server, &changes).await?;
    assert_eq!(set.code, Some(0), "{set:?}");
    assert!(set.stderr.contains("duly settings rollback 0"), "{set:?}");
    let set = set.json()?;
    assert_eq!((&set["version"], &set["comment"]), (&1.into(), &"a busy night".into()), "{set}");
    assert_eq!(set["effective"]["workerConcurrency"], 32);
    assert_eq!(set["settings"]["retention"]["successSeconds"], 86_400.0);
    assert!(set["settings"]["retention"]["cancelledSeconds"].is_null(), "{set}");
    let next = duly(&server, &["settings", "set", "workerConcurrency=null", "-o", "id"]).await?;
    assert_eq!((next.code, next.line()?), (Some(0), "2"));
    let run = duly(&server, &["task", "run", "unserved", "-o", "json"]).await?.json()?;
    assert_eq!(run["retries"], 5, "others than the named one stay");

    drop(server.terminate().await?);
    let server = Server::start(Path::new(DULY), data.path(), &["--concurrency", "7"]).await?;
    let shown = duly(&server, &["settings", "get", "-o", "json"]).await?.json()?;
    assert_eq!((&shown["version"], &shown["settings"]["retries"]), (&2.into(), &5.into()));
    assert_eq!(shown["effective"]["workerConcurrency"], 7);
    let back = duly(&server, &["settings", "rollback", "1", "-o", "json"]).await?.json()?;
    assert_eq!((&back["version"], &back["settings"]), (&3.into(), &set["settings"]));
    let history = duly(&server, &["settings", "history", "-o", "id"]).await?;
    assert_eq!(history.stdout, "3\n2\n1\n");
    let listed = duly(&server, &["settings", "history", "--limit", "2"]).await?;
    assert!(listed.stdout.contains("as in version 1"), "{listed:?}");
    assert!(listed.stderr.contains("--cursor"), "{listed:?}");
    Ok(())
}

#[tokio::test]
async fn old_tasks_are_deleted_while_the_server_runs() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let server = Server::start(Path::new(DULY), data.path(), &[]).await?;
    let client = server.client();
    let old = client.submit(&SubmitRequest::new("echo")).await?.task_id;
    client.get_task(old, Some(PATIENCE)).await?;
    let waits = client.submit(&SubmitRequest::new("unserved")).await?.task_id;
    // Every change is followed by a pass; the first may come before the task is old enough.
    let is_gone = || async {
        let before = client.get_settings().await.ok()?.current;
        let comment = Some(format!("try {}", before.version));
        let mut settings = before.settings;
        settings.retention.success_seconds = Some(1.0);
        client.put_settings(before.version, &settings.into_request(comment)).await.ok()?;
        let gone = client.get_task(old, None).await.err()?;
        (gone.code() == Some("TASK_NOT_FOUND")).then_some(())
    };
    eventually("the old task is deleted", PATIENCE, is_gone).await?;
    assert_eq!(client.get_task(waits, None).await?.status, Status::Pending);
    Ok(())
}

#[tokio::test]
async fn what_cannot_be_set_is_refused_with_an_exit_code() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let server = Server::start(Path::new(DULY), data.path(), &[]).await?;
    for (arguments, code, words) in [
        (&["set"][..], 2, "KEY=VALUE"),
        (&["set", "retries"], 2, "KEY=VALUE"),
        (&["set", "colour=red"], 2, "unknown setting"),
        (&["set", "retries=many"], 2, "whole number"),
        (&["set", "retention.success=soon"], 2, "7d"),
        (&["set", "retries=1001"], 1, "/retries"),
        (&["set", "backoff.strategy=quadratic"], 1, "/backoff/strategy"),
        (&["rollback", "9"], 3, "version 9"),
        (&["rollback", "x"], 2, "VERSION"),
    ] {
        let ended = duly(&server, &[&["settings"], arguments].concat()).await?;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(code), ""), "{arguments:?}");
        assert!(ended.stderr.contains(words), "{ended:?}");
    }
    assert_eq!(server.client().get_settings().await?.current.version, 0);
    Ok(())
}
