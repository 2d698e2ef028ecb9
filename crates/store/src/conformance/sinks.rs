//! Sinks: who receives events, which node serves them, and what is kept for whom.

use std::time::Duration;

use duly_core::event::{EventKind, Kinds, Position, Subscription};
use duly_core::id::{NodeId, TaskId};
use duly_core::limits::{SINK_AGE, SINK_ROWS, SINKS};
use duly_core::ports::store::{
    Events, HeldSink, HoldSinks, PassEvents, PutSink, SinkChange, SinkState, Tidied, TidyEvents,
};

use super::Harness;
use super::outbox::{events, read, sink, stored, subscribe, subscribe_to_all};

const MINUTE: Duration = Duration::from_secs(60);
const LIMITS: TidyEvents = TidyEvents { rows: SINK_ROWS, age: SINK_AGE };

fn node(number: u8) -> NodeId {
    NodeId::from_bytes([number; 16])
}

/// The node takes what it can get of these sinks.
async fn hold(harness: &Harness, who: u8, names: &[&str]) -> Vec<HeldSink> {
    hold_most(harness, who, names, 10).await
}

async fn hold_most(harness: &Harness, who: u8, names: &[&str], most: usize) -> Vec<HeldSink> {
    let names = names.iter().map(|name| sink(name)).collect();
    let order = HoldSinks { node: node(who), ttl: MINUTE, names, most };
    harness.store().hold_sinks(order).await.unwrap()
}

fn names(held: &[HeldSink]) -> Vec<&str> {
    held.iter().map(|it| it.name.as_str()).collect()
}

async fn pass(harness: &Harness, who: u8, held: &HeldSink, position: Option<&Position>) -> bool {
    let order = PassEvents {
        sink: held.name.clone(),
        node: node(who),
        term: held.term,
        position: position.cloned(),
        trouble: None,
    };
    harness.store().pass_events(order).await.unwrap()
}

/// The sink receives everything there is.
async fn catch_up(harness: &Harness, who: u8, name: &str) {
    let held = hold(harness, who, &[name]).await.remove(0);
    while let Events::Page(page) = read(harness, name, None).await {
        assert!(pass(harness, who, &held, Some(&page.next)).await);
        if !page.more {
            return;
        }
    }
    panic!("{name} is closed");
}

async fn state(harness: &Harness, name: &str) -> SinkState {
    let states = harness.store().sinks().await.unwrap();
    states.into_iter().find(|it| it.sink.name == sink(name)).expect("it is stored")
}

async fn tidy(harness: &Harness, order: TidyEvents) -> Tidied {
    harness.store().tidy_events(order).await.unwrap()
}

async fn windowed(harness: &Harness, name: &str, window: Duration) {
    let subscriptions = vec![Subscription::to(Kinds::ALL)];
    let put = PutSink { name: sink(name), subscriptions, window: Some(window) };
    harness.store().put_sink(put).await.unwrap();
}

async fn submit(harness: &Harness) -> TaskId {
    harness.submit_one(harness.task("email")).await
}

async fn received(harness: &Harness, name: &str) -> Vec<TaskId> {
    events(harness, name).await.iter().filter_map(duly_core::event::Event::task).collect()
}

pub async fn one_that_is_put_again_keeps_its_place(harness: Harness) {
    subscribe_to_all(&harness, "all").await;
    submit(&harness).await;
    let failures = Subscription::to([EventKind::TaskFailed].into_iter().collect());
    let put = PutSink { name: sink("all"), subscriptions: vec![failures.clone()], window: None };
    let again = harness.store().put_sink(put).await.unwrap();
    assert_eq!(again, SinkChange::Done { created: false });
    assert_eq!(state(&harness, "all").await.sink.subscriptions, [failures]);
    submit(&harness).await;
    assert!(events(&harness, "all").await.is_empty(), "what it no longer wants is left out");
    subscribe_to_all(&harness, "all").await;
    assert_eq!(events(&harness, "all").await.len(), 1, "the second was not written");
}

pub async fn one_that_is_removed_gets_nothing(harness: Harness) {
    subscribe_to_all(&harness, "all").await;
    submit(&harness).await;
    assert!(read(&harness, "unknown", None).await == Events::Closed);
    harness.store().remove_sink(&sink("all")).await.unwrap();
    assert_eq!(read(&harness, "all", None).await, Events::Closed);
    assert!(harness.store().sinks().await.unwrap().is_empty());
    assert!(!harness.store().remove_sink(&sink("all")).await.unwrap());
    subscribe_to_all(&harness, "all").await;
    assert!(events(&harness, "all").await.is_empty(), "it begins at the present");
}

pub async fn they_are_bounded(harness: Harness) {
    for number in 0..SINKS {
        let put = PutSink {
            name: sink(&format!("sink-{number}")),
            subscriptions: vec![Subscription::to(Kinds::NONE)],
            window: None,
        };
        harness.store().put_sink(put).await.unwrap();
    }
    let put = PutSink { name: sink("more"), subscriptions: Vec::new(), window: None };
    assert_eq!(harness.store().put_sink(put).await.unwrap(), SinkChange::TooMany);
    subscribe_to_all(&harness, "sink-0").await;
}

pub async fn each_is_served_by_one_node(harness: Harness) {
    for name in ["a", "b", "c"] {
        subscribe_to_all(&harness, name).await;
    }
    let first = hold_most(&harness, 1, &["a", "b", "c", "unknown"], 2).await;
    assert_eq!(names(&first), ["a", "b"]);
    assert_eq!(names(&hold(&harness, 2, &["a", "b", "c"]).await), ["c"]);
    assert_eq!(names(&hold(&harness, 1, &["a", "b", "c"]).await), ["a", "b"], "it renews");
    let relay = state(&harness, "a").await.relay.unwrap();
    assert_eq!((relay.node, relay.term), (node(1), first[0].term));
    assert_eq!(relay.until, harness.now().plus(MINUTE));
}

pub async fn one_that_is_not_renewed_goes_to_another_node(harness: Harness) {
    subscribe_to_all(&harness, "a").await;
    let first = hold(&harness, 1, &["a"]).await.remove(0);
    harness.advance(MINUTE);
    assert_eq!(state(&harness, "a").await.relay, None);
    let second = hold(&harness, 2, &["a"]).await.remove(0);
    assert!(second.term > first.term);
    submit(&harness).await;
    let Events::Page(page) = read(&harness, "a", None).await else { panic!("it is open") };
    assert!(!pass(&harness, 1, &first, Some(&page.next)).await, "it serves it no longer");
    assert_eq!(received(&harness, "a").await.len(), 1);
    assert!(pass(&harness, 2, &second, Some(&page.next)).await);
    assert!(received(&harness, "a").await.is_empty());
}

pub async fn what_a_node_releases_is_free_at_once(harness: Harness) {
    subscribe_to_all(&harness, "a").await;
    let held = hold(&harness, 1, &["a"]).await.remove(0);
    harness.store().release_sinks(node(1)).await.unwrap();
    assert_eq!(state(&harness, "a").await.relay, None);
    let next = hold(&harness, 2, &["a"]).await.remove(0);
    assert!(next.term > held.term);
}

pub async fn a_position_never_goes_back(mut harness: Harness) {
    subscribe_to_all(&harness, "a").await;
    let tasks = [submit(&harness).await, submit(&harness).await, submit(&harness).await];
    let places: Vec<_> = stored(&harness, "a", 1).await.into_iter().map(|it| it.position).collect();
    let held = hold(&harness, 1, &["a"]).await.remove(0);
    assert!(pass(&harness, 1, &held, Some(&places[1])).await);
    assert_eq!(received(&harness, "a").await, [tasks[2]]);
    assert!(pass(&harness, 1, &held, Some(&places[0])).await, "it still serves it");
    assert_eq!(received(&harness, "a").await, [tasks[2]]);
    harness.crash().await;
    assert_eq!(received(&harness, "a").await, [tasks[2]]);
}

pub async fn a_page_may_be_passed_in_part(harness: Harness) {
    subscribe_to_all(&harness, "a").await;
    let tasks: Vec<_> = (0..3).map(|_| harness.task("email")).collect();
    harness.submit(&tasks).await;
    let ids: Vec<_> = tasks.iter().map(|task| task.id).collect();
    let places: Vec<_> =
        stored(&harness, "a", 100).await.into_iter().map(|it| it.position).collect();
    let held = hold(&harness, 1, &["a"]).await.remove(0);
    for (seen, place) in places.iter().enumerate() {
        assert!(pass(&harness, 1, &held, Some(place)).await);
        assert_eq!(received(&harness, "a").await, ids[seen + 1..]);
    }
    tidy(&harness, LIMITS).await;
    submit(&harness).await;
    assert_eq!(received(&harness, "a").await.len(), 1);
}

pub async fn trouble_shows_until_it_is_over(harness: Harness) {
    subscribe_to_all(&harness, "a").await;
    submit(&harness).await;
    let held = hold(&harness, 1, &["a"]).await.remove(0);
    let order = PassEvents {
        sink: held.name.clone(),
        node: node(1),
        term: held.term,
        position: None,
        trouble: Some("the peer refuses".to_owned()),
    };
    assert!(harness.store().pass_events(order).await.unwrap());
    let troubled = state(&harness, "a").await;
    assert_eq!(troubled.trouble.as_deref(), Some("the peer refuses"));
    assert_eq!((troubled.lag.rows, troubled.lag.since), (1, Some(harness.now())));
    catch_up(&harness, 1, "a").await;
    let state = state(&harness, "a").await;
    assert_eq!((state.trouble, state.lag.rows), (None, 0));
}

pub async fn what_all_have_received_is_removed(harness: Harness) {
    subscribe_to_all(&harness, "fast").await;
    subscribe_to_all(&harness, "slow").await;
    submit(&harness).await;
    catch_up(&harness, 1, "fast").await;
    assert_eq!(tidy(&harness, LIMITS).await, Tidied::default());
    assert_eq!(events(&harness, "slow").await.len(), 1, "the slow one still gets it");
    catch_up(&harness, 1, "slow").await;
    until_empty(&harness).await;
    submit(&harness).await;
    assert_eq!(events(&harness, "slow").await.len(), 1);
    assert_eq!(events(&harness, "fast").await.len(), 1);
}

/// Stores may remove rows by whole segments, in more than one call.
async fn until_empty(harness: &Harness) {
    for _ in 0..100 {
        if harness.store().event_rows().await.unwrap() == 0 {
            return;
        }
        tidy(harness, LIMITS).await;
    }
    panic!("rows that every sink has received stay");
}

pub async fn what_no_sink_will_receive_is_removed(harness: Harness) {
    subscribe_to_all(&harness, "a").await;
    submit(&harness).await;
    harness.store().remove_sink(&sink("a")).await.unwrap();
    until_empty(&harness).await;
}

pub async fn one_that_is_far_behind_is_suspended(harness: Harness) {
    subscribe_to_all(&harness, "old").await;
    submit(&harness).await;
    harness.advance(MINUTE);
    subscribe_to_all(&harness, "new").await;
    submit(&harness).await;
    let held = hold(&harness, 1, &["old"]).await.remove(0);
    assert!(tidy(&harness, TidyEvents { age: 2 * MINUTE, ..LIMITS }).await.suspended.is_empty());
    suspend(&harness, TidyEvents { age: MINUTE, ..LIMITS }).await;
    let suspended = state(&harness, "old").await;
    assert!(suspended.suspended.unwrap().reason.contains("60 seconds"));
    assert_eq!((suspended.relay, suspended.lag.rows), (None, 0));
    assert_eq!(read(&harness, "old", None).await, Events::Closed);
    assert!(!pass(&harness, 1, &held, None).await);
    assert!(hold(&harness, 1, &["old"]).await.is_empty());
    catch_up(&harness, 1, "new").await;
    until_empty(&harness).await;
    assert!(harness.store().resume_sink(&sink("old")).await.unwrap());
    assert!(!harness.store().resume_sink(&sink("unknown")).await.unwrap());
    let id = submit(&harness).await;
    assert_eq!(received(&harness, "old").await, [id], "from the present on");
    let resumed = state(&harness, "old").await;
    assert_eq!((resumed.suspended, resumed.lag.rows), (None, 1));
}

/// Tidies, which suspends no other sink. The answer that says so may be lost.
async fn suspend(harness: &Harness, order: TidyEvents) {
    let suspended = tidy(harness, order).await.suspended;
    assert!(suspended.iter().all(|name| *name == sink("old")), "{suspended:?}");
}

pub async fn one_with_many_rows_behind_is_suspended(harness: Harness) {
    subscribe_to_all(&harness, "old").await;
    submit(&harness).await;
    submit(&harness).await;
    suspend(&harness, TidyEvents { rows: 3, ..LIMITS }).await;
    assert_eq!(state(&harness, "old").await.suspended, None);
    suspend(&harness, TidyEvents { rows: 2, ..LIMITS }).await;
    let reason = state(&harness, "old").await.suspended.unwrap().reason;
    assert!(reason.contains("2 rows"), "{reason}");
    until_empty(&harness).await;
    submit(&harness).await;
    assert_eq!(harness.store().event_rows().await.unwrap(), 0, "it wants no more");
}

pub async fn a_window_keeps_events_for_its_time(harness: Harness) {
    windowed(&harness, "stream", 5 * MINUTE).await;
    assert!(hold(&harness, 1, &["stream"]).await.is_empty(), "no node serves it");
    let first = submit(&harness).await;
    tidy(&harness, LIMITS).await;
    harness.advance(2 * MINUTE);
    tidy(&harness, LIMITS).await;
    windowed(&harness, "stream", 5 * MINUTE).await;
    let second = submit(&harness).await;
    tidy(&harness, LIMITS).await;
    assert_eq!(received(&harness, "stream").await, [first, second]);
    let places: Vec<_> =
        stored(&harness, "stream", 100).await.into_iter().map(|it| it.position).collect();
    harness.advance(4 * MINUTE);
    tidy(&harness, LIMITS).await;
    tidy(&harness, LIMITS).await;
    assert_eq!(received(&harness, "stream").await, [second]);
    let Events::Page(page) = read(&harness, "stream", Some(places[0].clone())).await else {
        panic!("what follows the first is kept")
    };
    assert_eq!(page.events.len(), 1);
    harness.advance(MINUTE);
    tidy(&harness, LIMITS).await;
    tidy(&harness, LIMITS).await;
    assert_eq!(
        read(&harness, "stream", Some(places[1].clone())).await,
        Events::Closed,
        "it is over"
    );
}

pub async fn a_reader_who_comes_back_late_is_told(harness: Harness) {
    windowed(&harness, "stream", 5 * MINUTE).await;
    submit(&harness).await;
    submit(&harness).await;
    let place = stored(&harness, "stream", 100).await[0].position.clone();
    for _ in 0..4 {
        harness.advance(2 * MINUTE);
        windowed(&harness, "stream", 5 * MINUTE).await;
        submit(&harness).await;
        tidy(&harness, LIMITS).await;
    }
    until(&harness, 3).await;
    assert_eq!(read(&harness, "stream", Some(place)).await, Events::Gone);
    assert_eq!(received(&harness, "stream").await.len(), 3, "of the last five minutes");
}

async fn until(harness: &Harness, left: usize) {
    for _ in 0..100 {
        if received(harness, "stream").await.len() == left {
            return;
        }
        tidy(harness, LIMITS).await;
    }
    panic!("more than {left} events are kept");
}

pub async fn one_without_readers_expires(harness: Harness) {
    windowed(&harness, "stream", 5 * MINUTE).await;
    harness.advance(4 * MINUTE);
    windowed(&harness, "stream", 5 * MINUTE).await;
    harness.advance(4 * MINUTE);
    tidy(&harness, LIMITS).await;
    assert_eq!(harness.store().sinks().await.unwrap().len(), 1);
    harness.advance(MINUTE);
    tidy(&harness, LIMITS).await;
    assert!(harness.store().sinks().await.unwrap().is_empty());
    submit(&harness).await;
    assert_eq!(harness.store().event_rows().await.unwrap(), 0);
}

pub async fn a_place_of_another_store_is_refused(harness: Harness) {
    subscribe(&harness, "a", Subscription::to(Kinds::ALL)).await;
    submit(&harness).await;
    let mut place = stored(&harness, "a", 100).await[0].position.clone();
    place.number = u64::MAX / 4;
    place.view = "99999999999:99999999999:".into();
    assert_eq!(read(&harness, "a", Some(place)).await, Events::Gone);
}
