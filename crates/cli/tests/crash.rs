//! Nothing that was acknowledged is lost, however often the server is killed; and the same tests
//! notice a server that acknowledges too early.

use std::path::Path;
use std::time::Instant;

use duly_testkit::crash::Crash;
use duly_testkit::{checker, report};

const DULY: &str = env!("CARGO_BIN_EXE_duly");
const KILLS: usize = 20;
/// A kill may miss: the last answer can leave the server between the decision and the signal.
const MISSES: usize = 10;

#[tokio::test(flavor = "multi_thread")]
async fn killed_twenty_times_nothing_is_lost() -> anyhow::Result<()> {
    let start = Instant::now();
    let data = tempfile::tempdir()?;
    let random = report::seeded("killed_twenty_times_nothing_is_lost")?;
    let mut run = Crash::start(Path::new(DULY), data.path(), &[], random).await?;
    let mut hits = Vec::new();
    let mut misses = 0;
    while hits.len() < KILLS {
        let (next, hit) = run.kill().await?;
        run = next;
        assert_eq!(hit.lost, [], "lost by kill {}", hits.len() + misses + 1);
        if hit.is_bad() {
            hits.push(hit);
        } else {
            misses += 1;
        }
        assert!(misses <= MISSES, "the kills miss");
    }
    let evidence = run.finish().await?;
    let running: usize = hits.iter().map(|hit| hit.running).sum();
    let unanswered: usize = hits.iter().map(|hit| hit.unanswered).sum();
    let most = evidence.stored.iter().map(|task| task.losses).max().unwrap_or(0);
    report::say(&format!(
        "{} kills (+{misses} that missed) hit {running} running tasks and {unanswered} unanswered \
         submits; {} acknowledged, {} stored, {} executions, at most \
         {most} losses of one task, {:.1} s",
        hits.len(),
        evidence.acked.len(),
        evidence.stored.len(),
        evidence.executions.len(),
        start.elapsed().as_secs_f64(),
    ));
    assert_eq!(checker::violations(&evidence), Vec::<String>::new());
    assert!(evidence.acked.len() >= 1000, "only {} acknowledged", evidence.acked.len());
    assert!(evidence.executions.len() > evidence.stored.len(), "no task ran twice: vacuous");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledging_before_the_commit_is_caught() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let random = report::seeded("acknowledging_before_the_commit_is_caught")?;
    let bug = ["--planted-bug", "acknowledge-before-commit"];
    let mut run = Crash::start(Path::new(DULY), data.path(), &bug, random).await?;
    for kill in 1..=KILLS {
        let (next, hit) = run.kill().await?;
        run = next;
        if !hit.lost.is_empty() {
            report::say(&format!("the planted bug lost {} tasks by kill {kill}", hit.lost.len()));
            return Ok(());
        }
    }
    panic!("{KILLS} kills of a server that acknowledges too early lost nothing");
}
