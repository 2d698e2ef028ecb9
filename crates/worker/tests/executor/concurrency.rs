//! Changes of the number of handlers that run at once.

use std::time::Duration;

use duly_core::lease::Outcome;
use duly_worker::Registry;
use duly_worker::handlers::{Echo, Sleep};
use tokio::time::Instant;

use crate::source::{Rig, echo, outcome, rest, sleep};

fn registry() -> Registry {
    Registry::new().with("echo", Echo).with("sleep", Sleep)
}

/// How many leases the worker holds that have started.
async fn running(rig: &Rig) -> usize {
    let unstarted = rig.source.call_roll().await.len();
    let seen = rig.source.seen();
    seen.granted - seen.finishes().count() - unstarted
}

#[tokio::test(start_paused = true)]
async fn more_places_are_used_at_once() {
    let rig = Rig::start(2, 0, registry());
    rig.source.submit((0..40).map(|n| sleep(n, 10)));
    rest().await;
    assert_eq!(running(&rig).await, 2);
    let started = Instant::now();
    rig.concurrency.set(32);
    rest().await;
    assert_eq!(running(&rig).await, 32);
    assert!(started.elapsed() < Duration::from_secs(1), "nothing had to end first");
    rig.source.finished(40).await;
    assert!(started.elapsed() < Duration::from_secs(21), "32 and then 8 more");
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn with_fewer_places_what_runs_may_end_and_nothing_starts_beyond_them() {
    let rig = Rig::start(8, 0, registry());
    rig.source.submit((0..8).map(|n| sleep(n, 10 + n)));
    rig.source.submit((8..12).map(|n| sleep(n, 10)));
    rest().await;
    assert_eq!(running(&rig).await, 8);
    rig.concurrency.set(2);
    rest().await;
    assert_eq!((running(&rig).await, rig.source.seen().pending), (8, 0), "all of them go on");
    rig.source.finished(6).await;
    rest().await;
    assert_eq!((running(&rig).await, rig.source.seen().granted), (2, 8), "no slot is free yet");
    rig.source.finished(7).await;
    rest().await;
    assert_eq!((running(&rig).await, rig.source.seen().granted), (2, 9));
    let finishes = rig.source.finished(12).await;
    for number in 0..12 {
        assert!(matches!(outcome(&finishes, number), Outcome::Success { .. }), "{number}");
    }
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn leases_that_would_wait_long_are_handed_back_when_places_go() {
    let rig = Rig::start(6, 6, registry()).warmed_up(6).await;
    rig.source.submit((0..12).map(|n| sleep(n, 10)));
    rig.source.until(|seen| seen.granted == 12).await;
    rest().await;
    let started = Instant::now();
    rig.concurrency.set(3);
    let finishes = rig.source.finished(3).await;
    assert_eq!(started.elapsed(), Duration::ZERO);
    // The worker may hold nine: three that run, and six that wait while tasks are short.
    for number in 9..12 {
        assert_eq!(outcome(&finishes, number), Outcome::Release, "{number}");
    }
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_for_places_that_are_gone_is_withdrawn() {
    let rig = Rig::start(10, 0, registry());
    rest().await;
    assert_eq!(rig.source.seen().asked, [10]);
    rig.concurrency.set(3);
    rest().await;
    assert_eq!((rig.source.seen().asked.last(), rig.source.seen().pending), (Some(&3), 1));
    rig.source.submit((0..5).map(echo));
    rig.source.finished(5).await;
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_number_that_is_set_before_the_start_counts() {
    let rig = Rig::start_with(2, registry(), |concurrency| concurrency.set(5));
    rig.source.submit((0..9).map(|n| sleep(n, 10)));
    rest().await;
    assert_eq!(running(&rig).await, 5);
    rig.stop().await;
}
