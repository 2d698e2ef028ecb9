//! Submits with a delay, judged by the client's clock and by an independent callee: neither asks
//! the server what time it is.

use std::time::{Duration, Instant};

use duly_client::wire::{SubmitRequest, TaskView};
use duly_client::{Client, Error};
use duly_core::id::TaskId;
use duly_testkit::Target;
use duly_testkit::journal::real_ns;
use duly_testkit::wait::{PATIENCE, within};

/// Servers keep times in whole milliseconds: a start may seem this much early.
const MILLISECOND: Duration = Duration::from_millis(1);

/// A submit that was answered.
#[derive(Debug)]
pub(crate) struct Delayed {
    pub(crate) task: TaskId,
    /// When it was sent, on the clock that the callee uses too.
    sent: Instant,
    /// The same on the real-time clock, in milliseconds.
    sent_ms: i64,
    delay: Duration,
    created_ms: i64,
}

/// Submits a task that calls the target after a delay. There is no key: such submits are stored in
/// one round trip. One that is not answered is sent anew, and the newer send counts.
pub(crate) async fn submit(
    client: &Client,
    target: &Target,
    delay: Duration,
) -> anyhow::Result<Delayed> {
    let request = SubmitRequest { delay_seconds: Some(delay.as_secs_f64()), ..target.task() };
    let begin = Instant::now();
    loop {
        let (sent, sent_ms) = (Instant::now(), i64::try_from(real_ns() / 1_000_000)?);
        match client.submit(&request).await {
            // A server that stood still closes connections that have been idle for too long.
            Err(Error::Unreachable { .. }) if begin.elapsed() < PATIENCE => {}
            answer => {
                let TaskView { task_id: task, created_at, .. } = answer?;
                return Ok(Delayed { task, sent, sent_ms, delay, created_ms: created_at.millis() });
            }
        }
    }
}

/// Waits until the target has seen all of them, and tells what is wrong with each: it started
/// before its send time and delay, or was created before it was sent.
pub(crate) async fn find_early(
    target: &Target,
    submits: &[Delayed],
) -> anyhow::Result<Vec<String>> {
    let mut found = find_early_starts(target, submits).await?;
    for it in submits.iter().filter(|it| it.created_ms < it.sent_ms) {
        let before = it.sent_ms - it.created_ms;
        found.push(format!("{} was created {before} ms before it was sent", it.task));
    }
    Ok(found)
}

/// The same without the time of the creation, which is that of a clock that may be wrong.
pub(crate) async fn find_early_starts(
    target: &Target,
    submits: &[Delayed],
) -> anyhow::Result<Vec<String>> {
    let all = target.wait_for(|log| {
        let seen = |it: &Delayed| log.executions.iter().any(|run| run.task == it.task);
        submits.iter().all(seen)
    });
    within("all delayed tasks start", all).await??;
    let mut found = Vec::new();
    let log = target.log();
    for it in submits {
        let due = it.sent + it.delay;
        for run in log.executions.iter().filter(|run| run.task == it.task) {
            let early = due.saturating_duration_since(run.started);
            if early > MILLISECOND {
                let delay = it.delay;
                found.push(format!("{} started {early:?} before its delay of {delay:?}", it.task));
            }
        }
    }
    Ok(found)
}
