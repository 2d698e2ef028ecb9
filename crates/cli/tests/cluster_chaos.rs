//! A minute and a half of everything at once on three nodes and their database, judged from outside.

use std::path::Path;
use std::time::Duration;

use duly_store::postgres::scratch;
use duly_testkit::chaos::{Config, Ground, run};
use duly_testkit::judge::{Decision, Minima, judge};
use duly_testkit::report;
use rand::RngCore as _;

const DULY: &str = env!("CARGO_BIN_EXE_duly");
/// What has to happen, or it proves nothing: each fault has its turn in the first round.
const AT_LEAST: [(&str, f64); 11] = [
    ("acked", 2_000.0),
    ("kills", 6.0),
    ("pauses", 3.0),
    ("leader-kills", 1.0),
    ("database-restarts", 1.0),
    ("terminations", 2.0),
    ("cuts", 2.0),
    ("resets", 8.0),
    ("losses", 5.0),
    ("refusals", 1.0),
    ("unknown", 10.0),
];

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_nodes_and_their_database_break_no_promise() -> anyhow::Result<()> {
    let name = "faults_of_nodes_and_their_database_break_no_promise";
    // Not for its database, which others use: where there is none, PostgreSQL is not installed.
    if scratch::server().is_none() {
        return Ok(());
    }
    let config = Config {
        duly: DULY.into(),
        // The user of the database must be able to enter it.
        folder: Path::new(env!("CARGO_TARGET_TMPDIR")).join("cluster_chaos"),
        ground: Ground::Postgres { nodes: 3, is_durable: false },
        seed: report::seeded(name)?.next_u64(),
        duration: Duration::from_secs(90),
        faults: Vec::new(),
        bug: None,
        healed_within: Duration::from_secs(120),
    };
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
