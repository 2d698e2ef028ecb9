//! Three nodes, their database and their workers, for a minute and a half.

use std::path::Path;
use std::time::Duration;

use duly_store::postgres::scratch;
use duly_testkit::chaos::{Config, Ground, run};
use duly_testkit::judge::{Decision, Minima, judge};
use duly_testkit::report;
use rand::RngCore as _;

use super::{DULY, TURN};

/// How many workflows are submitted.
const WORKFLOWS: u64 = 90;

/// What has to happen, or the run proves nothing: each fault has its turn in the first round.
const AT_LEAST: [(&str, f64); 13] = [
    ("acked", 2_000.0),
    ("workflows", WORKFLOWS as f64),
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

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_nodes_and_their_database_break_no_promise() -> anyhow::Result<()> {
    // The run starts a database of its own; without a server PostgreSQL is not installed.
    if scratch::server().is_none() {
        return Ok(());
    }
    let _turn = TURN.lock().await;
    let config = Config {
        duly: DULY.into(),
        // The database's user needs access to this folder.
        folder: Path::new(env!("CARGO_TARGET_TMPDIR")).join("cluster_chaos"),
        ground: Ground::Postgres { nodes: 3, is_durable: false },
        seed: report::seeded("cluster_chaos")?.next_u64(),
        duration: Duration::from_secs(90),
        workflows: WORKFLOWS,
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
