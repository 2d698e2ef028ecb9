//! Readers that follow the events of a tenant.

use std::time::Duration;

use duly_core::event::{EventKind, Position};
use duly_core::filter::EventFilter;
use duly_core::id::TaskId;
use duly_core::limits::STREAM_WINDOW;
use duly_core::name::TenantName;
use duly_core::time::Timestamp;
use duly_engine::events::{Begin, EventFeed, Fed};

use super::{Received, run_one};
use crate::world::{World, draft, must_wait, pass};

fn filter(text: &str) -> EventFilter {
    EventFilter::parse(text, Timestamp::EPOCH).unwrap()
}

fn follow(world: &World, text: &str, begin: Begin) -> EventFeed {
    world.engine.follow_events(TenantName::default_tenant(), filter(text), begin)
}

async fn open(world: &World, text: &str, begin: Begin) -> EventFeed {
    let mut feed = follow(world, text, begin);
    feed.open().await.unwrap();
    feed
}

/// The next so many events, each with its place; no more are there.
async fn take(feed: &mut EventFeed, count: usize) -> Vec<(Received, Position)> {
    let all = take_at_least(feed, count).await;
    assert_eq!(all.len(), count, "{all:?}");
    all
}

async fn take_at_least(feed: &mut EventFeed, count: usize) -> Vec<(Received, Position)> {
    let mut all = Vec::new();
    while all.len() < count {
        let Fed::Events(events) = feed.next().await.unwrap() else { panic!("events are missing") };
        all.extend(events.iter().map(|it| (Received::from(it), it.position.clone())));
    }
    all
}

fn tasks(events: &[(Received, Position)]) -> Vec<TaskId> {
    events.iter().filter_map(|(it, _)| it.task).collect()
}

const ENDS: &str = "event:task.succeeded";

#[tokio::test(start_paused = true)]
async fn a_reader_gets_what_is_committed_after_it_has_opened() {
    let world = World::new().await;
    run_one(&world).await;
    let mut feed = open(&world, "", Begin::Now).await;
    let task = run_one(&world).await;
    let events = take(&mut feed, 3).await;
    assert_eq!(tasks(&events), [task; 3]);
    assert_eq!(events[2].0.kind, EventKind::TaskSucceeded);
    let mut next = Box::pin(feed.next());
    must_wait(&mut next).await;
}

#[tokio::test(start_paused = true)]
async fn a_filter_leaves_out_what_it_does_not_mean() {
    let world = World::new().await;
    let mut feed = open(&world, "event:task.* label.a:b", Begin::Now).await;
    run_one(&world).await;
    let mut marked = draft("echo");
    marked.labels = [("a".to_owned(), "b".to_owned())].into();
    let task = world.submit(marked).await.task.id;
    assert_eq!(tasks(&take(&mut feed, 1).await), [task]);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_comes_back_misses_and_repeats_nothing() {
    let world = World::new().await;
    let mut feed = open(&world, ENDS, Begin::Now).await;
    let mut expected = Vec::new();
    let mut received = Vec::new();
    for round in 0..100 {
        for _ in 0..round % 4 {
            expected.push(run_one(&world).await);
        }
        let some = (expected.len() - received.len()).min(2);
        let mut events = take_at_least(&mut feed, some).await;
        // The connection breaks before the rest arrives.
        events.truncate(some);
        received.extend(tasks(&events));
        let Some((_, place)) = events.last() else { continue };
        let place = place.to_string().parse().unwrap();
        drop(feed);
        if round % 3 == 0 {
            expected.push(run_one(&world).await);
        }
        feed = follow(&world, ENDS, Begin::After(place));
    }
    let rest = expected.len() - received.len();
    received.extend(tasks(&take(&mut feed, rest).await));
    assert_eq!(received, expected);
}

#[tokio::test(start_paused = true)]
async fn readers_share_the_reads_of_the_store() {
    let world = World::new().await;
    let mut feeds = Vec::new();
    for _ in 0..50 {
        feeds.push(open(&world, ENDS, Begin::Now).await);
    }
    let before = world.faults.calls("events");
    let task = run_one(&world).await;
    for feed in &mut feeds {
        assert_eq!(tasks(&take(feed, 1).await), [task]);
    }
    let reads = world.faults.calls("events") - before;
    assert!(reads < 10, "{reads} reads for 50 readers");
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_is_slow_misses_nothing() {
    let world = World::new().await;
    let mut slow = open(&world, "", Begin::Now).await;
    let mut fast = open(&world, "event:task.created", Begin::Now).await;
    let mut expected = Vec::new();
    // More events than the ring has room for.
    for _ in 0..11 {
        let specs = (0..1_000).map(|_| draft("echo").check().unwrap()).collect();
        let stored = world.engine.submit(&TenantName::default_tenant(), specs).await.unwrap();
        expected.extend(stored.into_iter().map(|it| it.unwrap().task.id));
        take(&mut fast, 1_000).await;
    }
    for _ in 0..11 {
        for lease in world.source.claim(1_000).await.unwrap() {
            expected.push(lease.task);
        }
    }
    let mut received = Vec::new();
    while received.len() < expected.len() {
        let Fed::Events(events) = slow.next().await.unwrap() else { panic!("events are missing") };
        received.extend(events.iter().filter_map(|it| it.event.task()));
    }
    expected.sort_unstable();
    received.sort_unstable();
    assert_eq!(received, expected);
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_outlives_the_last_reader_for_its_time() {
    let world = World::new().await;
    let mut feed = open(&world, ENDS, Begin::Now).await;
    let first = run_one(&world).await;
    let events = take(&mut feed, 1).await;
    drop(feed);
    let second = run_one(&world).await;
    pass(STREAM_WINDOW - Duration::from_secs(10)).await;
    let mut back = follow(&world, ENDS, Begin::After(events[0].1.clone()));
    assert_eq!(tasks(&take(&mut back, 1).await), [second]);
    let mut oldest = follow(&world, ENDS, Begin::Oldest);
    assert_eq!(tasks(&take(&mut oldest, 2).await), [first, second]);
}

#[tokio::test(start_paused = true)]
async fn a_reader_whose_place_is_no_longer_kept_is_told() {
    let world = World::new().await;
    let mut feed = open(&world, ENDS, Begin::Now).await;
    run_one(&world).await;
    let place = take(&mut feed, 1).await.remove(0).1;
    drop(feed);
    run_one(&world).await;
    pass(2 * STREAM_WINDOW).await;
    assert!(world.engine.list_sinks().await.unwrap().is_empty(), "nobody reads");
    let mut late = follow(&world, ENDS, Begin::After(place));
    assert_eq!(late.next().await.unwrap(), Fed::Reset);
    let task = run_one(&world).await;
    assert_eq!(tasks(&take(&mut late, 1).await), [task], "it goes on with the present");
}

#[tokio::test(start_paused = true)]
async fn tenants_do_not_see_each_other() {
    let world = World::new().await;
    let other = TenantName::new("other").unwrap();
    let mut foreign = world.engine.follow_events(other, filter(""), Begin::Now);
    foreign.open().await.unwrap();
    run_one(&world).await;
    let mut next = Box::pin(foreign.next());
    must_wait(&mut next).await;
    assert!(tokio::time::timeout(Duration::from_secs(60), next).await.is_err());
}

crate::stores::with_lost_hints!(
    all: a_reader_gets_what_is_committed_after_it_has_opened,
    a_reader_that_comes_back_misses_and_repeats_nothing;
    memory: what_is_kept_outlives_the_last_reader_for_its_time,
    a_reader_whose_place_is_no_longer_kept_is_told
);
