//! A minute of everything at once, judged from outside; and the same with bugs switched on, which
//! must be found out.

use std::path::Path;
use std::time::Duration;

use duly_testkit::chaos::{Config, Ground, run};
use duly_testkit::history::FaultKind;
use duly_testkit::judge::{Decision, Minima, Verdict, judge};
use duly_testkit::report;
use rand::RngCore as _;
use tokio::sync::Mutex;

const DULY: &str = env!("CARGO_BIN_EXE_duly");
/// What has to happen in a minute, or it proves nothing.
const AT_LEAST: [(&str, f64); 8] = [
    ("acked", 2_000.0),
    ("delayed-starts", 300.0),
    ("kills", 10.0),
    ("pauses", 5.0),
    ("refusals", 5.0),
    ("resets", 8.0),
    ("losses", 5.0),
    ("unknown", 10.0),
];
/// One run at a time: each is a dozen processes.
static TURN: Mutex<()> = Mutex::const_new(());
/// How long a bug may hide. One run found them after 15 to 98 s. A look that misses two of three times
/// would miss ten in a row once in sixty runs, and twenty-seven hardly ever.
const BUG_HIDES: Duration = Duration::from_secs(480);
/// One look for a bug.
const LOOK: Duration = Duration::from_secs(12);

fn config(name: &str, folder: &Path, duration: Duration) -> anyhow::Result<Config> {
    Ok(Config {
        duly: DULY.into(),
        folder: folder.join("run"),
        ground: Ground::File,
        seed: report::seeded(name)?.next_u64(),
        duration,
        faults: Vec::new(),
        bug: None,
        healed_within: Duration::from_secs(90),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_minute_of_faults_breaks_no_promise() -> anyhow::Result<()> {
    let _turn = TURN.lock().await;
    let folder = tempfile::tempdir()?;
    let name = "a_minute_of_faults_breaks_no_promise";
    let config = config(name, folder.path(), Duration::from_secs(60))?;
    run(&config).await?;
    let mut minima = Minima::default();
    for (name, wanted) in AT_LEAST {
        minima.ask(name, wanted)?;
    }
    let verdict = judge(&config.folder, &minima);
    say(&verdict);
    assert_eq!(verdict.verdict, Decision::Valid, "{:?} {:?}", verdict.violations, verdict.first);
    Ok(())
}

/// Looks for a bug under these faults until it is found.
async fn is_caught(bug: &str, faults: &[FaultKind]) -> anyhow::Result<()> {
    let _turn = TURN.lock().await;
    let folder = tempfile::tempdir()?;
    let start = std::time::Instant::now();
    while start.elapsed() < BUG_HIDES {
        let mut config = config(bug, folder.path(), LOOK)?;
        config.faults = faults.to_vec();
        config.bug = Some(bug.to_owned());
        // What a bug has broken for good is not waited for.
        config.healed_within = Duration::from_secs(10);
        let stuck = run(&config).await.err();
        let verdict = judge(&config.folder, &Minima::default());
        if stuck.is_some() || verdict.verdict == Decision::Violated {
            let took = start.elapsed().as_secs();
            let classes: Vec<_> = verdict.violations.keys().map(|class| class.name()).collect();
            report::say(&format!("{bug}: caught after {took} s: {classes:?} {stuck:?}"));
            return Ok(());
        }
    }
    anyhow::bail!("{bug} was not caught within {BUG_HIDES:?}")
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

fn say(verdict: &Verdict) {
    let figures = &verdict.figures;
    report::say(&format!(
        "{} acknowledged, {} executions, {} kills, {} pauses, {} refusals, {} resets, {} times a \
         full disk, {} losses, {} unknown answers: {:?}",
        figures.acked,
        figures.executions,
        figures.kills,
        figures.pauses,
        figures.refusals,
        figures.resets,
        figures.disk_full,
        figures.lease_losses,
        figures.unknown_answers,
        verdict.verdict,
    ));
}
