//! Runs under chaos with a planted bug switched on, until the judge finds it.

use std::path::Path;
use std::time::{Duration, Instant};

use duly_store::postgres::scratch;
use duly_testkit::chaos::{Config, Ground, run};
use duly_testkit::history::FaultKind;
use duly_testkit::judge::{Class, Decision, Minima, judge};
use duly_testkit::report;
use rand::RngCore as _;

use super::{DULY, TURN};

/// How long a search goes on. A search on one server has taken 15 to 98 s. If one run misses a bug
/// two times out of three, ten runs miss it once in sixty searches, and the twenty-seven runs that
/// fit into this time almost never.
const SEARCH: Duration = Duration::from_secs(480);
/// How long faults are made in one run of a search.
const RUN: Duration = Duration::from_secs(12);
/// Workflows in a run that searches for a bug of theirs.
const WORKFLOWS: u64 = 60;

fn config(
    bug: &str,
    folder: &Path,
    ground: Ground,
    faults: &[FaultKind],
) -> anyhow::Result<Config> {
    Ok(Config {
        duly: DULY.into(),
        folder: folder.join(bug),
        ground,
        seed: report::seeded(bug)?.next_u64(),
        duration: RUN,
        workflows: 0,
        faults: faults.to_vec(),
        bug: Some(bug.to_owned()),
        // A bug may have broken the run for good; then waiting longer does not help.
        healed_within: Duration::from_secs(10),
    })
}

/// Runs one server under these faults until the judge finds the bug.
async fn is_caught(bug: &str, faults: &[FaultKind]) -> anyhow::Result<()> {
    is_caught_with(bug, faults, 0).await
}

/// The same with so many workflows in each run.
async fn is_caught_with(bug: &str, faults: &[FaultKind], workflows: u64) -> anyhow::Result<()> {
    let _turn = TURN.lock().await;
    let folder = tempfile::tempdir()?;
    let start = Instant::now();
    while start.elapsed() < SEARCH {
        let mut config = config(bug, folder.path(), Ground::File, faults)?;
        config.workflows = workflows;
        let stuck = run(&config).await.err();
        let verdict = judge(&config.folder, &Minima::default());
        if stuck.is_some() || verdict.verdict == Decision::Violated {
            let took = start.elapsed().as_secs();
            let classes: Vec<_> = verdict.violations.keys().map(|class| class.name()).collect();
            report::say(&format!("{bug}: caught after {took} s: {classes:?} {stuck:?}"));
            return Ok(());
        }
    }
    anyhow::bail!("{bug} was not caught within {SEARCH:?}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finish_without_the_epoch_is_caught() -> anyhow::Result<()> {
    is_caught("finish-without-epoch", &[FaultKind::Pause]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_beat_after_the_end_is_caught() -> anyhow::Result<()> {
    is_caught("beat-after-end", &[FaultKind::Pause]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_epoch_that_is_reset_is_caught() -> anyhow::Result<()> {
    is_caught("epoch-reset-on-retry", &[FaultKind::Kill]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_early_acknowledgement_is_caught() -> anyhow::Result<()> {
    is_caught("acknowledge-before-commit", &[FaultKind::Kill]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_swallowed_full_disk_is_caught() -> anyhow::Result<()> {
    is_caught("swallow-disk-full", &[FaultKind::DiskFull]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parent_that_is_not_counted_is_caught() -> anyhow::Result<()> {
    is_caught_with("count-parents-once", &[FaultKind::Kill], WORKFLOWS).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_early_release_is_caught() -> anyhow::Result<()> {
    is_caught_with("release-before-commit", &[FaultKind::Kill], WORKFLOWS).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_reading_taken_for_a_step_back_is_caught() -> anyhow::Result<()> {
    // The run starts a database of its own; without a server PostgreSQL is not installed.
    if scratch::server().is_none() {
        return Ok(());
    }
    let _turn = TURN.lock().await;
    let ground = Ground::Postgres { nodes: 3, is_durable: false };
    // The database's user needs access to this folder.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let start = Instant::now();
    while start.elapsed() < SEARCH {
        let faults = [FaultKind::Pause, FaultKind::Delay];
        let mut config = config("late-reading", folder, ground, &faults)?;
        config.healed_within = Duration::from_secs(120);
        run(&config).await?;
        let verdict = judge(&config.folder, &Minima::default());
        if let Some(count) = verdict.violations.get(&Class::EarlyStart) {
            let took = start.elapsed().as_secs();
            report::say(&format!("late-reading: {count} early starts, found after {took} s"));
            return Ok(());
        }
        assert_eq!(verdict.verdict, Decision::Valid, "{:?}", verdict.violations);
    }
    anyhow::bail!("late-reading was not caught within {SEARCH:?}")
}
