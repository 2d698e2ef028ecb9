//! One server, its workers and its disk, for a minute.

use std::time::Duration;

use duly_testkit::chaos::{Config, Ground, run};
use duly_testkit::judge::{Decision, Minima, Verdict, judge};
use duly_testkit::report;
use rand::RngCore as _;

use super::{DULY, TURN};

/// How many workflows are submitted.
const WORKFLOWS: u64 = 60;

/// What has to happen in a minute, or the run proves nothing.
const AT_LEAST: [(&str, f64); 9] = [
    ("acked", 2_000.0),
    ("workflows", WORKFLOWS as f64),
    ("delayed-starts", 300.0),
    ("kills", 10.0),
    ("pauses", 5.0),
    ("refusals", 5.0),
    ("resets", 8.0),
    ("losses", 5.0),
    ("unknown", 10.0),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_minute_of_faults_breaks_no_promise() -> anyhow::Result<()> {
    let _turn = TURN.lock().await;
    let folder = tempfile::tempdir()?;
    let config = Config {
        duly: DULY.into(),
        folder: folder.path().join("run"),
        ground: Ground::File,
        seed: report::seeded("a_minute_of_faults_breaks_no_promise")?.next_u64(),
        duration: Duration::from_secs(60),
        workflows: WORKFLOWS,
        faults: Vec::new(),
        bug: None,
        healed_within: Duration::from_secs(90),
    };
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

fn say(verdict: &Verdict) {
    let figures = &verdict.figures;
    report::say(&format!(
        "{} acknowledged, {} workflows, {} executions, {} kills, {} pauses, {} refusals, {} resets, \
         {} times a full disk, {} losses, {} unknown answers: {:?}",
        figures.acked,
        figures.workflows,
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
