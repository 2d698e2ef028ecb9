//! A batch that fits into the free slots of a fresh cluster starts within half a second.

use std::time::{Duration, Instant};

use duly_testkit::wait::within;
use duly_testkit::{Target, report};

use super::TURN;
use super::harness::{Cluster, submit_all};

const NODES: usize = 3;
/// 64 slots on each node, and two of them free.
const TASKS: usize = 190;
/// How long each task runs: a task that waits for the end of another one is late.
const RUN: Duration = Duration::from_secs(4);
/// All tasks start within this time after the answer to the batch.
const SOON: Duration = Duration::from_millis(500);
/// The best of these fresh clusters counts: a busy machine makes a start late, never early.
const ROUNDS: usize = 3;

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_fits_starts_within_half_a_second() -> anyhow::Result<()> {
    let _turn = TURN.lock().await;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let Some(late) = last_starts().await? else { return Ok(()) };
        let soon = late.iter().filter(|late| **late <= SOON).count();
        let last = late.iter().max().copied().unwrap_or_default();
        rounds.push(format!("{soon} of {TASKS} started within {SOON:?}, the last after {last:?}"));
        report::say(rounds.last().expect("one was added"));
        if soon == TASKS {
            return Ok(());
        }
    }
    anyhow::bail!("no round was good: {rounds:#?}")
}

/// When each task of a batch started on a fresh cluster, as the callee saw it, counted from the
/// answer to the batch. Nothing if there is no server to test on.
async fn last_starts() -> anyhow::Result<Option<Vec<Duration>>> {
    let flags = ["--concurrency", "64"];
    let Some(cluster) = Cluster::with_ttl("10s", NODES, &flags).await? else { return Ok(None) };
    let target = Target::start(RUN).await?;
    submit_all(cluster.client(), &vec![target.task(); TASKS]).await?;
    let answered = Instant::now();
    within("all tasks start", target.wait_for(|log| log.executions.len() >= TASKS)).await??;
    let log = target.log();
    let late = |started: Instant| started.saturating_duration_since(answered);
    Ok(Some(log.executions.iter().map(|it| late(it.started)).collect()))
}
