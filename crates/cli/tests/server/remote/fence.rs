//! A worker that was paused for so long that others took over.

use std::time::Duration;

use duly_core::state::Status;
use duly_testkit::effects::{Effect, Ev};
use duly_testkit::journal::Line;
use duly_testkit::report;
use duly_testkit::wait::observe_for;

use super::{Site, TTL, task};

/// What came of a worker that was paused for three times the TTL.
#[derive(Debug)]
struct Verdict {
    /// What the paused worker was told when it went on.
    told: Ev,
    /// The task, right after that.
    status: Status,
    /// The lease of the paused worker.
    stale: u32,
    /// The lease of its successor.
    epoch: u32,
}

/// Pauses a worker in the middle of a task until its successor runs it, and lets it go on while
/// the successor is still at it.
async fn pause_and_resume(flags: &[&str]) -> anyhow::Result<Verdict> {
    let site = Site::start(flags).await?;
    let paused = site.worker("paused", 1).await?;
    // Longer than the pause and the resumption take, so that the successor is still running then.
    let id = site.submit(task("work", TTL * 8)).await?;
    site.until("the task starts", |effects| find(effects, "paused", Ev::Start)).await?;
    paused.pause()?;
    let successor = site.worker("successor", 1).await?;
    let epoch = site.until("the successor starts", |effects| find(effects, "successor", Ev::Start));
    let epoch = epoch.await?;
    observe_for(TTL * 3).await;
    paused.resume()?;
    let told = site.until("the paused worker is told", |effects| {
        let own = effects.iter().filter(|line| line.event.worker == "paused");
        own.map(|line| line.event.clone()).find(|effect| is_commit(effect.ev))
    });
    let told = told.await?;
    let now = site.get(id).await?;
    let verdict = Verdict { told: told.ev, status: now.status, stale: told.epoch, epoch };
    site.outcome(id).await?;
    successor.stop().await?;
    drop(paused);
    Ok(verdict)
}

fn find(effects: &[Line<Effect>], worker: &str, ev: Ev) -> Option<u32> {
    let event = |line: &Line<Effect>| line.event.worker == worker && line.event.ev == ev;
    effects.iter().find(|line| event(line)).map(|line| line.event.epoch)
}

fn is_commit(ev: Ev) -> bool {
    matches!(ev, Ev::CommitOk | Ev::CommitRefused | Ev::CommitUnknown)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_worker_is_refused_while_its_successor_runs() -> anyhow::Result<()> {
    let verdict = pause_and_resume(&[]).await?;
    assert_eq!(verdict.told, Ev::CommitRefused, "{verdict:?}");
    assert_eq!(verdict.status, Status::Running, "{verdict:?}");
    assert!(verdict.epoch > verdict.stale, "{verdict:?}");
    Ok(())
}

#[cfg(feature = "planted-bugs")]
#[tokio::test(flavor = "multi_thread")]
async fn a_finish_without_the_epoch_is_caught() -> anyhow::Result<()> {
    let verdict = pause_and_resume(&["--planted-bug", "finish-without-epoch"]).await?;
    assert_eq!(verdict.told, Ev::CommitOk, "the planted bug was not there: {verdict:?}");
    assert_ne!(verdict.status, Status::Running, "{verdict:?}");
    report::say(&format!(
        "the planted bug committed epoch {} while epoch {} ran",
        verdict.stale, verdict.epoch
    ));
    Ok(())
}

const _: () = assert!(TTL.as_millis() <= Duration::from_secs(2).as_millis());
