//! A minute and a half of everything at once on three nodes and their database, judged from outside;
//! and the same with a bug switched on, which must be found out.

use std::path::Path;
use std::time::Duration;

use duly_store::postgres::scratch;
use duly_testkit::chaos::{Config, Ground, run};
#[cfg(feature = "planted-bugs")]
use duly_testkit::history::FaultKind;
#[cfg(feature = "planted-bugs")]
use duly_testkit::judge::Class;
use duly_testkit::judge::{Decision, Minima, judge};
use duly_testkit::report;
use rand::RngCore as _;
use tokio::sync::Mutex;

const DULY: &str = env!("CARGO_BIN_EXE_duly");
/// What has to happen, or it proves nothing: each fault has its turn in the first round.
const AT_LEAST: [(&str, f64); 12] = [
    ("acked", 2_000.0),
    ("delayed-starts", 300.0),
    ("kills", 6.0),
    ("pauses", 6.0),
    ("leader-kills", 1.0),
    ("database-restarts", 1.0),
    ("terminations", 2.0),
    ("cuts", 2.0),
    ("resets", 8.0),
    ("losses", 5.0),
    ("refusals", 1.0),
    ("unknown", 10.0),
];

/// One run at a time: each is a dozen processes.
static TURN: Mutex<()> = Mutex::const_new(());

fn config(name: &str, duration: Duration) -> anyhow::Result<Config> {
    Ok(Config {
        duly: DULY.into(),
        // The user of the database must be able to enter it.
        folder: Path::new(env!("CARGO_TARGET_TMPDIR")).join(name),
        ground: Ground::Postgres { nodes: 3, is_durable: false },
        seed: report::seeded(name)?.next_u64(),
        duration,
        faults: Vec::new(),
        bug: None,
        healed_within: Duration::from_secs(120),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_nodes_and_their_database_break_no_promise() -> anyhow::Result<()> {
    // Not for its database, which others use: where there is none, PostgreSQL is not installed.
    if scratch::server().is_none() {
        return Ok(());
    }
    let _turn = TURN.lock().await;
    let config = config("cluster_chaos", Duration::from_secs(90))?;
    run(&config).await?;
    let mut minima = Minima::default();
    for (name, wanted) in AT_LEAST {
        minima.ask(name, wanted)?;
    }
    let verdict = judge(&config.folder, &minima);
    report::say(&verdict.to_string());
    assert_eq!(verdict.verdict, Decision::Valid, "{:?} {:?}", verdict.violations, verdict.first);
    Ok(())
}

/// How long a bug may hide, and how long one look for it takes.
#[cfg(feature = "planted-bugs")]
const BUG_HIDES: Duration = Duration::from_secs(240);
#[cfg(feature = "planted-bugs")]
const LOOK: Duration = Duration::from_secs(12);

#[cfg(feature = "planted-bugs")]
#[tokio::test(flavor = "multi_thread")]
async fn a_late_reading_taken_for_a_step_back_is_caught() -> anyhow::Result<()> {
    if scratch::server().is_none() {
        return Ok(());
    }
    let _turn = TURN.lock().await;
    let start = std::time::Instant::now();
    while start.elapsed() < BUG_HIDES {
        let mut config = config("late_reading", LOOK)?;
        config.faults = vec![FaultKind::Pause, FaultKind::Delay];
        config.bug = Some("late-reading".to_owned());
        run(&config).await?;
        let verdict = judge(&config.folder, &Minima::default());
        if let Some(count) = verdict.violations.get(&Class::EarlyStart) {
            let took = start.elapsed().as_secs();
            report::say(&format!("late-reading: {count} early starts, found after {took} s"));
            return Ok(());
        }
        assert_eq!(verdict.verdict, Decision::Valid, "{:?}", verdict.violations);
    }
    anyhow::bail!("late-reading was not caught within {BUG_HIDES:?}")
}
