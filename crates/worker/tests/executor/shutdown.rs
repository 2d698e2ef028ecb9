//! How a worker ends.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use duly_core::lease::Outcome;
use duly_core::ports::work_source::{TakenBack, Why};
use duly_worker::handlers::{Echo, Sleep};
use duly_worker::{Context, ExecutorReport, Handler, HandlerError, Output, Registry};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::source::{Rig, echo, id, lease, outcome, rest, sleep};

fn registry() -> Registry {
    Registry::new().with("echo", Echo).with("sleep", Sleep)
}

/// One task of ten seconds runs, another waits for its slot.
async fn one_runs_one_waits(grace: Duration) -> Rig {
    let rig = Rig::with_grace(1, 1, registry(), grace).warmed_up(1).await;
    rig.source.submit([sleep(0, 10), sleep(1, 10)]);
    rig.source.until(|seen| seen.granted == 2).await;
    rest().await;
    rig
}

#[tokio::test(start_paused = true)]
async fn an_idle_worker_stops_at_once_and_takes_its_claim_along() {
    let rig = Rig::start(4, 4, registry());
    rig.source.submit([echo(0)]);
    rig.source.finished(1).await;
    rest().await;
    let (source, started) = (Arc::clone(&rig.source), Instant::now());
    assert_eq!(rig.stop().await, ExecutorReport { done: 1, ..ExecutorReport::default() });
    assert_eq!(started.elapsed(), Duration::ZERO);
    assert_eq!(source.seen().pending, 0);
}

#[tokio::test(start_paused = true)]
async fn what_waits_is_handed_back_and_what_runs_may_end() {
    let rig = one_runs_one_waits(Duration::from_secs(30)).await;
    let (source, started) = (Arc::clone(&rig.source), Instant::now());
    let report = rig.stop().await;
    let left = Duration::from_secs(10) - started.elapsed();
    assert!(left <= Duration::from_millis(1), "{left:?}");
    assert_eq!(report, ExecutorReport { done: 3, released: 1, ..ExecutorReport::default() });
    let finishes = source.finished(2).await;
    assert_eq!(outcome(&finishes, 1), Outcome::Release);
    assert!(matches!(outcome(&finishes, 0), Outcome::Success { .. }));
    assert_eq!(source.seen().batches[0].len(), 1, "it was handed back at once");
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_stops_still_hears_its_source() {
    let rig = one_runs_one_waits(Duration::from_secs(30)).await;
    let started = Instant::now();
    rig.shutdown.cancel();
    rig.source.finished(1).await;
    assert!(rig.source.call_roll().await.is_empty(), "what waited was handed back");
    let gone = TakenBack { task: id(0), epoch: 1, why: Why::Cancelled };
    rig.source.change(|seen| seen.taken_back.push(gone));
    let report = rig.stop().await;
    assert_eq!(started.elapsed(), Duration::from_secs(5), "the handler was stopped");
    assert_eq!(report, ExecutorReport { done: 3, released: 2, ..ExecutorReport::default() });
}

#[tokio::test(start_paused = true)]
async fn what_runs_beyond_the_grace_is_stopped_and_handed_back() {
    let rig = one_runs_one_waits(Duration::from_secs(5)).await;
    let (source, started) = (Arc::clone(&rig.source), Instant::now());
    let report = rig.stop().await;
    assert_eq!(started.elapsed(), Duration::from_secs(5));
    assert_eq!(report, ExecutorReport { done: 3, released: 2, ..ExecutorReport::default() });
    let finishes = source.finished(2).await;
    assert_eq!(outcome(&finishes, 0), Outcome::Release);
    assert_eq!(outcome(&finishes, 1), Outcome::Release);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_does_not_hold_the_shutdown_for_ever() {
    let rig = Rig::start(1, 1, registry());
    rig.source.change(|seen| seen.hanging = true);
    rig.source.submit([echo(0)]);
    rig.source.finished(1).await;
    let started = Instant::now();
    assert_eq!(rig.stop().await, ExecutorReport { unanswered: 1, ..ExecutorReport::default() });
    assert_eq!(started.elapsed(), Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn a_closed_source_ends_the_worker() {
    let mut rig = Rig::start(2, 2, registry());
    rig.source.submit([sleep(0, 10)]);
    rig.source.until(|seen| seen.granted == 1).await;
    rest().await;
    rig.source.change(|seen| seen.closed = true);
    let report = rig.report().await;
    assert_eq!(report, ExecutorReport { released: 1, unanswered: 1, ..ExecutorReport::default() });
}

#[tokio::test(start_paused = true)]
async fn a_source_that_closes_during_the_shutdown_ends_it() {
    let mut rig = one_runs_one_waits(Duration::from_secs(30)).await;
    rig.source.change(|seen| seen.hanging = true);
    rig.shutdown.cancel();
    rig.source.until(|seen| seen.batches.len() == 1).await;
    let started = Instant::now();
    rig.source.change(|seen| seen.closed = true);
    let report = rig.report().await;
    assert_eq!(started.elapsed(), Duration::ZERO);
    assert_eq!(
        report,
        ExecutorReport { done: 1, released: 2, unanswered: 2, ..ExecutorReport::default() }
    );
}

/// Records when it starts and when it is dropped.
#[derive(Clone, Default)]
struct Endless {
    started: Arc<Notify>,
    dropped: Arc<Notify>,
}

struct TellsItsEnd(Arc<Notify>);

impl Drop for TellsItsEnd {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[async_trait]
impl Handler for Endless {
    async fn run(&self, _: Context) -> Result<Output, HandlerError> {
        let _end = TellsItsEnd(Arc::clone(&self.dropped));
        self.started.notify_one();
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn handlers_do_not_outlive_a_worker_that_is_dropped() {
    let endless = Endless::default();
    let mut rig = Rig::start(1, 0, Registry::new().with("endless", endless.clone()));
    rig.source.submit([lease(0, "endless", "null")]);
    endless.started.notified().await;
    rig.worker.abort_all();
    endless.dropped.notified().await;
}
