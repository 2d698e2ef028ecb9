//! Order, concurrency, batches, prefetch and back-pressure.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use duly_core::id::TaskId;
use duly_core::lease::{Finished, Lease, Outcome};
use duly_core::limits::{STORE_BATCH, STORE_BATCH_BYTES};
use duly_core::ports::work_source::{TakenBack, Why};
use duly_worker::handlers::{Echo, Sleep};
use duly_worker::{Context, Handler, HandlerError, Output, Registry};
use tokio::time::Instant;

use crate::source::{Rig, Seen, echo, id, lease, outcome, rest, sleep};

/// Sleeps, and records which tasks run.
#[derive(Clone, Default)]
struct Watched(Arc<Mutex<Notes>>);

#[derive(Default)]
struct Notes {
    order: Vec<TaskId>,
    running: usize,
    most: usize,
}

#[async_trait]
impl Handler for Watched {
    async fn run(&self, context: Context) -> Result<Output, HandlerError> {
        {
            let mut notes = self.0.lock().unwrap();
            notes.order.push(context.task());
            notes.running += 1;
            notes.most = notes.most.max(notes.running);
        }
        let slept = Sleep.run(context).await;
        self.0.lock().unwrap().running -= 1;
        slept
    }
}

fn registry() -> Registry {
    Registry::new().with("echo", Echo).with("sleep", Sleep)
}

fn watched() -> (Watched, Registry) {
    let watched = Watched::default();
    (watched.clone(), registry().with("watched", watched))
}

fn watched_lease(number: u32, seconds: u32) -> Lease {
    let mut lease = sleep(number, seconds);
    lease.lane.task_type = duly_core::name::TypeName::new("watched").unwrap();
    lease
}

fn is_release(outcome: &Outcome) -> bool {
    *outcome == Outcome::Release
}

#[tokio::test(start_paused = true)]
async fn leases_start_in_the_order_they_came() {
    let (watched, registry) = watched();
    let rig = Rig::start(3, 30, registry);
    rig.source.submit((0..200).map(|n| watched_lease(n, 0)));
    rig.source.finished(200).await;
    let order = watched.0.lock().unwrap().order.clone();
    assert_eq!(order, (0..200).map(id).collect::<Vec<_>>());
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn no_more_handlers_run_than_allowed() {
    let (watched, registry) = watched();
    let rig = Rig::start(5, 100, registry);
    // Short tasks first, so that later ones start in chunks.
    rig.source.submit((0..100).map(echo));
    rig.source.submit((100..150).map(|n| watched_lease(n, 1)));
    let finishes = rig.source.finished(150).await;
    assert_eq!(watched.0.lock().unwrap().most, 5);
    assert!(finishes.len() >= 150);
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn one_long_attempt_does_not_hold_up_the_short_ones_beside_it() {
    let rig = Rig::start(8, 100, registry());
    rig.source.submit((0..100).map(echo));
    rig.source.finished(100).await;
    let started = Instant::now();
    rig.source.submit([echo(100), sleep(101, 600), echo(102), sleep(103, 600), echo(104)]);
    rig.source.finished(103).await;
    assert_eq!(started.elapsed(), Duration::ZERO);
    rig.source.finished(105).await;
    assert_eq!(started.elapsed(), Duration::from_secs(600));
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn outcomes_share_a_call_while_another_is_under_way() {
    let rig = Rig::start(10, 10, registry());
    rig.source.change(|seen| seen.hanging = true);
    rig.source.submit([echo(0)]);
    rig.source.until(|seen| seen.batches.len() == 1).await;
    rig.source.submit((1..=50).map(echo));
    rest().await;
    assert_eq!(rig.source.seen().batches.len(), 1, "one call at a time");
    rig.source.change(|seen| seen.hanging = false);
    rig.source.finished(51).await;
    let sizes: Vec<_> = rig.source.seen().batches.iter().map(Vec::len).collect();
    assert_eq!(sizes, [1, 50]);
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_stops_the_claims() {
    let rig = Rig::start(10, 10, registry());
    rig.source.change(|seen| seen.hanging = true);
    let all = 10 * STORE_BATCH;
    rig.source.submit((0..u32::try_from(all).unwrap()).map(echo));
    rest().await;
    let seen = rig.source.seen();
    assert!(seen.granted > STORE_BATCH, "{}", seen.granted);
    assert!(seen.granted < 2 * STORE_BATCH, "{}", seen.granted);
    rig.source.change(|seen| seen.hanging = false);
    rig.source.finished(all).await;
    assert!(rig.source.seen().batches.iter().all(|batch| batch.len() <= STORE_BATCH));
    assert_eq!(rig.stop().await.done, all as u64);
}

#[tokio::test(start_paused = true)]
async fn large_results_make_small_batches() {
    let rig = Rig::start(4, 4, registry());
    rig.source.change(|seen| seen.hanging = true);
    let large = format!("\"{}\"", "x".repeat(STORE_BATCH_BYTES / 4 - 2));
    rig.source.submit((0..100).map(|n| lease(n, "echo", &large)));
    rest().await;
    let granted = rig.source.seen().granted;
    assert!(granted < 30, "{granted} results are kept in memory");
    rig.source.change(|seen| seen.hanging = false);
    rig.source.finished(100).await;
    assert!(rig.source.seen().batches.iter().all(|batch| batch.len() <= 4));
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn refused_outcomes_are_counted() {
    let rig = Rig::start(2, 0, registry());
    for answer in [Finished::LeaseLost, Finished::Unknown, Finished::Done] {
        rig.source.change(|seen| seen.answer = Some(answer));
        let number = u32::try_from(rig.source.seen().granted).unwrap();
        rig.source.submit([echo(number)]);
        rig.source.until(|seen| seen.answered > usize::try_from(number).unwrap()).await;
    }
    rest().await;
    let report = rig.stop().await;
    assert_eq!((report.lost, report.done, report.unanswered), (2, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_roll_call_names_what_waits() {
    let rig = Rig::start(1, 2, registry()).warmed_up(2).await;
    assert!(rig.source.call_roll().await.is_empty());
    rig.source.submit([sleep(0, 10), sleep(1, 10)]);
    rig.source.until(|seen| seen.granted == 2).await;
    rest().await;
    assert_eq!(rig.source.call_roll().await, [id(1)]);
    assert_eq!(rig.source.call_roll().await, [id(1)], "it can be asked again");
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_gone_before_its_start_is_not_started() {
    let (watched, registry) = watched();
    let rig = Rig::start(1, 2, registry).warmed_up(2).await;
    rig.source.submit([watched_lease(0, 10), watched_lease(1, 10)]);
    rig.source.until(|seen| seen.granted == 2).await;
    rest().await;
    let gone = TakenBack { task: id(1), epoch: 1, why: Why::Lost };
    rig.source.change(|seen| seen.taken_back.push(gone));
    let started = Instant::now();
    let finishes = rig.source.finished(1).await;
    assert!(is_release(&outcome(&finishes, 1)));
    assert_eq!(started.elapsed(), Duration::ZERO);
    rig.source.finished(2).await;
    rig.stop().await;
    assert_eq!(watched.0.lock().unwrap().order, [id(0)]);
}

#[tokio::test(start_paused = true)]
async fn short_tasks_are_taken_ahead() {
    let rig = Rig::start(2, 100, registry());
    rest().await;
    assert_eq!(rig.source.seen().asked, [2], "nothing is known yet");
    rig.source.submit((0..5).map(echo));
    rig.source.finished(5).await;
    rest().await;
    rig.source.submit([echo(5)]);
    rig.source.finished(6).await;
    rest().await;
    assert_eq!(rig.source.seen().asked.last(), Some(&41), "eight for each that ended lately");
    rig.source.submit((6..200).map(echo));
    rig.source.finished(200).await;
    rest().await;
    rig.source.submit([echo(200)]);
    rig.source.finished(201).await;
    rest().await;
    assert_eq!(rig.source.seen().asked.last(), Some(&101), "as many as may be taken ahead");
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn long_tasks_are_not_taken_ahead() {
    let rig = Rig::start(2, 100, registry());
    rig.source.submit([sleep(0, 60)]);
    rig.source.finished(1).await;
    rest().await;
    let before = rig.source.seen().asked.len();
    rig.source.submit((1..=20).map(|n| sleep(n, 60)));
    rig.source.finished(21).await;
    let seen = rig.source.seen();
    // The claim that was pending all the time may bring one round too many, which is released.
    assert!(seen.asked[before..].iter().all(|max| *max <= 2), "{:?}", seen.asked);
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_cannot_start_is_handed_back_after_a_second() {
    let rig = Rig::start(2, 2, registry()).warmed_up(2).await;
    let started = Instant::now();
    rig.source.submit((0..3).map(|n| sleep(n, 10)));
    rig.source.until(|seen| seen.granted == 3).await;
    rest().await;
    assert_eq!(rig.source.seen().pending, 1, "there is room for one more");

    let finishes = rig.source.finished(1).await;
    assert_eq!(started.elapsed(), Duration::from_secs(1));
    assert!(is_release(&outcome(&finishes, 2)));
    rest().await;
    let seen = rig.source.seen();
    assert_eq!(seen.pending, 0, "nothing is taken ahead of long tasks");

    rig.source.finished(3).await;
    rig.source.until(|seen| seen.pending == 1).await;
    assert_eq!(started.elapsed(), Duration::from_secs(10));
    let freed = |seen: &Seen| seen.asked.last() == Some(&2);
    assert!(freed(&rig.source.seen()), "{:?}", rig.source.seen().asked);
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_another_worker_could_run_is_handed_back_soon() {
    let rig = Rig::start(2, 2, registry()).warmed_up(2).await;
    rig.source.change(|seen| seen.wanted = true);
    let started = Instant::now();
    rig.source.submit((0..3).map(|n| sleep(n, 10)));
    let finishes = rig.source.finished(1).await;
    assert!(is_release(&outcome(&finishes, 2)));
    assert!(started.elapsed() < Duration::from_millis(250), "{:?}", started.elapsed());
    rest().await;
    assert_eq!(rig.source.seen().pending, 0, "nothing is taken ahead of long tasks");
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn short_tasks_are_not_handed_back_although_another_worker_is_ready() {
    let rig = Rig::start(1, 20, registry()).warmed_up(20).await;
    rig.source.change(|seen| seen.wanted = true);
    // The first ones in, 40 ms each: the last one waits for longer than 100 ms.
    let short = |n| lease(n, "sleep", "{\"seconds\":0.04}");
    rig.source.submit((0..8).map(short));
    let finishes = rig.source.finished(8).await;
    assert!(finishes.iter().all(|finish| !is_release(&finish.outcome)), "{finishes:?}");
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_new_worker_takes_no_more_than_it_can_start() {
    let rig = Rig::start(64, 2000, registry());
    rig.source.submit((0..190).map(|n| sleep(n, 4)));
    rest().await;
    assert_eq!(rig.source.seen().granted, 64);
    rig.stop().await;
}
