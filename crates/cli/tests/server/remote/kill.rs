//! A worker that is killed in the middle of many tasks.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use duly_core::id::TaskId;
use duly_core::state::Status;
use duly_testkit::effects::{Effect, Ev};
use duly_testkit::journal::{Line, mono_ns};
use duly_testkit::report;

use super::{Site, TTL, task};

const TASKS: usize = 2_000;
/// Commits before the kill.
const BEFORE: usize = 500;
const CONCURRENCY: usize = 50;
/// How long an orphan may wait after the TTL, on a busy machine.
const SOON: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
async fn every_task_ends_once_and_orphans_run_again_soon() -> anyhow::Result<()> {
    let site = Site::start(&[]).await?;
    let victim = site.worker("victim", CONCURRENCY).await?;
    let survivor = site.worker("survivor", CONCURRENCY).await?;
    let ids = site.submit_all(&vec![task("work", Duration::from_millis(50)); TASKS]).await?;
    site.until("work is under way", |effects| {
        let commits = effects.iter().filter(|line| line.event.ev == Ev::CommitOk).count();
        (commits >= BEFORE && !running(effects, "victim").is_empty()).then_some(())
    })
    .await?;
    victim.kill().await?;
    let killed = mono_ns();
    let orphans = running(&site.effects()?, "victim");
    assert!(!orphans.is_empty(), "the kill hit nothing");
    for id in &ids {
        let task = site.outcome(*id).await?;
        assert_eq!((task.status, task.attempt), (Status::Success, 1), "{id}");
    }
    survivor.stop().await?;
    let effects = site.effects()?;
    check_commits(&ids, &effects);
    let slowest = check_orphans(&orphans, &effects, killed);
    report::say(&format!(
        "killed with {} tasks running; the last ran again after {slowest:?}",
        orphans.len()
    ));
    assert!(slowest <= TTL + SOON, "an orphan waited {slowest:?}");
    Ok(())
}

/// Tasks that this worker has started and not committed.
fn running(effects: &[Line<Effect>], worker: &str) -> HashSet<TaskId> {
    let mut running = HashSet::new();
    for line in effects.iter().filter(|line| line.event.worker == worker) {
        match line.event.ev {
            Ev::Start => running.insert(line.event.task),
            Ev::End | Ev::CommitOk | Ev::CommitRefused | Ev::CommitUnknown => {
                running.remove(&line.event.task)
            }
        };
    }
    running
}

/// No outcome is committed twice. The victim may have died before it noted the commits of its last
/// batch, so not every task has a commit in its file.
fn check_commits(ids: &[TaskId], effects: &[Line<Effect>]) {
    let mut commits: HashMap<TaskId, usize> = HashMap::new();
    for line in effects.iter().filter(|line| line.event.ev == Ev::CommitOk) {
        *commits.entry(line.event.task).or_default() += 1;
    }
    assert!(commits.values().all(|count| *count == 1), "an outcome was committed twice");
    let started: HashSet<_> = effects.iter().map(|line| line.event.task).collect();
    assert!(ids.iter().all(|id| started.contains(id)), "a task ended without a start");
}

/// How long the last orphan had to wait.
fn check_orphans(orphans: &HashSet<TaskId>, effects: &[Line<Effect>], killed: u64) -> Duration {
    let again = |id: &TaskId| {
        let mut starts = effects.iter().filter(|line| line.event.ev == Ev::Start);
        let start = starts.find(|it| it.event.task == *id && it.event.worker == "survivor");
        let start = start.unwrap_or_else(|| panic!("{id} never ran again"));
        Duration::from_nanos(start.mono_ns.saturating_sub(killed))
    };
    orphans.iter().map(again).max().unwrap_or_default()
}
