//! Sinks receive what was committed.

use std::time::Duration;

use duly_core::event::EventKind;
use duly_core::id::NodeId;
use duly_core::ports::event_sink::Details;
use duly_core::ports::store::{Events, HoldSinks, PassEvents, PutSink, ReadEvents};
use duly_engine::Engine;
use duly_engine::random::OsRandom;

use super::{Archive, everything, name, outcomes, run_one};
use crate::world::{CONFIG, TTL, World, draft, pass, settle};

use EventKind::{TaskCreated, TaskStarted, TaskSucceeded};

#[tokio::test(start_paused = true)]
async fn a_sink_receives_what_happens_after_it_was_added() {
    let world = World::new().await;
    run_one(&world).await;
    let archive = Archive::with(Details::Payloads);
    world.engine.add_sink(name("archive"), everything(), archive.clone()).await.unwrap();
    let task = run_one(&world).await;
    let received = archive.until(3).await;
    assert_eq!(archive.kinds(), [TaskCreated, TaskStarted, TaskSucceeded]);
    assert!(received.iter().all(|it| it.task == Some(task)));
    let last = archive.received.lock().last().cloned().unwrap();
    assert_eq!(*last.task.unwrap(), world.get(task).await, "as it is when it is delivered");
}

#[tokio::test(start_paused = true)]
async fn what_a_sink_refuses_comes_again_under_the_same_id() {
    let world = World::new().await;
    let (slow, fast) = (Archive::new(), Archive::new());
    world.engine.add_sink(name("slow"), outcomes(), slow.clone()).await.unwrap();
    world.engine.add_sink(name("fast"), outcomes(), fast.clone()).await.unwrap();
    slow.refuse(3);
    let mut tasks = Vec::new();
    for _ in 0..10 {
        tasks.push(Some(run_one(&world).await));
    }
    let expected = fast.until(10).await;
    assert_eq!(expected.iter().map(|it| it.task).collect::<Vec<_>>(), tasks);
    let state = async || {
        let sinks = world.engine.list_sinks().await.unwrap();
        sinks.into_iter().find(|it| it.sink.name == name("slow")).unwrap()
    };
    assert_eq!(state().await.trouble.as_deref(), Some("not now"), "it can be seen");
    assert_eq!(slow.until(10).await, expected);
    pass(Duration::from_secs(1)).await;
    let state = state().await;
    assert_eq!((state.trouble, state.lag.rows), (None, 0));
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_fails_for_an_hour_misses_nothing() {
    let world = World::new().await;
    let archive = Archive::new();
    world.engine.add_sink(name("archive"), outcomes(), archive.clone()).await.unwrap();
    archive.refuse(usize::MAX);
    let mut tasks = Vec::new();
    for _ in 0..60 {
        tasks.push(Some(run_one(&world).await));
        pass(Duration::from_secs(60)).await;
    }
    archive.refuse(0);
    let received = archive.until(60).await;
    assert_eq!(received.iter().map(|it| it.task).collect::<Vec<_>>(), tasks);
}

#[tokio::test(start_paused = true)]
async fn a_sink_goes_on_where_it_was_after_a_restart() {
    let world = World::new().await;
    let archive = Archive::new();
    world.engine.add_sink(name("archive"), outcomes(), archive.clone()).await.unwrap();
    let first = run_one(&world).await;
    archive.until(1).await;
    pass(Duration::from_secs(1)).await;
    archive.refuse(usize::MAX);
    let second = run_one(&world).await;
    pass(Duration::from_secs(1)).await;
    world.engine.close().await;
    archive.refuse(0);
    let next = Engine::start(world.store.clone(), std::sync::Arc::new(OsRandom::new()), CONFIG);
    next.add_sink(name("archive"), outcomes(), archive.clone()).await.unwrap();
    let received = archive.until(2).await;
    assert_eq!(received.iter().map(|it| it.task).collect::<Vec<_>>(), [Some(first), Some(second)]);
    next.close().await;
}

#[tokio::test(start_paused = true)]
async fn what_every_sink_has_received_is_removed() {
    let world = World::new().await;
    let archive = Archive::new();
    world.engine.add_sink(name("archive"), outcomes(), archive.clone()).await.unwrap();
    run_one(&world).await;
    archive.until(1).await;
    pass(Duration::from_secs(20)).await;
    assert_eq!(world.store.event_rows().await.unwrap(), 0);
    world.engine.remove_sink(&name("archive")).await.unwrap();
    run_one(&world).await;
    pass(Duration::from_secs(20)).await;
    assert_eq!(archive.received().len(), 1);
    assert!(world.engine.list_sinks().await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn without_sinks_nobody_asks_for_events() {
    let world = World::new().await;
    settle().await;
    let looks =
        || ["sinks", "hold_sinks", "events", "tidy_events"].map(|it| world.faults.calls(it));
    let before = looks();
    for _ in 0..10 {
        run_one(&world).await;
    }
    pass(Duration::from_secs(3600)).await;
    assert_eq!(looks(), before);
    world.submit(draft("echo")).await;
}

#[tokio::test(start_paused = true)]
async fn a_sink_is_left_to_the_node_that_serves_it() {
    let world = World::among_others().await;
    let archive = Archive::new();
    let put = PutSink { name: name("archive"), subscriptions: outcomes(), window: None };
    world.store.put_sink(put).await.unwrap();
    let other = NodeId::from_bytes([9; 16]);
    let hold = HoldSinks { node: other, ttl: 6 * TTL, names: vec![name("archive")], most: 1 };
    let held = world.store.hold_sinks(hold).await.unwrap().remove(0);
    world.engine.add_sink(name("archive"), outcomes(), archive.clone()).await.unwrap();
    let first = run_one(&world).await;
    pass(5 * TTL).await;
    assert_eq!(archive.received(), []);
    let read = ReadEvents { sink: name("archive"), after: None, rows: 10 };
    let Events::Page(page) = world.store.events(read).await.unwrap() else { panic!("it is open") };
    assert_eq!(page.events[0].event.task(), Some(first));
    let passed = PassEvents {
        sink: name("archive"),
        node: other,
        term: held.term,
        position: Some(page.next),
        trouble: None,
    };
    assert!(world.store.pass_events(passed).await.unwrap());
    let second = run_one(&world).await;
    pass(2 * TTL).await;
    let received = archive.received();
    assert_eq!(received.iter().map(|it| it.task).collect::<Vec<_>>(), [Some(second)]);
    let relay = world.engine.list_sinks().await.unwrap().remove(0).relay.unwrap();
    assert!(relay.node != other && relay.term > held.term);
    world.engine.close().await;
    assert_eq!(world.store.sinks().await.unwrap()[0].relay, None, "it is free at once");
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_another_node_takes_over_is_served_no_longer() {
    let world = World::among_others().await;
    let archive = Archive::new();
    world.engine.add_sink(name("archive"), outcomes(), archive.clone()).await.unwrap();
    run_one(&world).await;
    archive.until(1).await;
    pass(Duration::from_secs(1)).await;
    // As if this node had not renewed in time.
    world.store.release_sinks(world.store.node()).await.unwrap();
    let other = NodeId::from_bytes([9; 16]);
    let hold = HoldSinks { node: other, ttl: 60 * TTL, names: vec![name("archive")], most: 1 };
    assert_eq!(world.store.hold_sinks(hold).await.unwrap().len(), 1);
    run_one(&world).await;
    pass(2 * TTL).await;
    let before = archive.received().len();
    assert!(before <= 2, "one delivery may have been under way");
    for _ in 0..5 {
        run_one(&world).await;
    }
    pass(4 * TTL).await;
    assert_eq!(archive.received().len(), before);
}

crate::stores::with_lost_hints!(
    all: a_sink_receives_what_happens_after_it_was_added,
    a_sink_goes_on_where_it_was_after_a_restart;
    one_process: what_every_sink_has_received_is_removed;
    memory: a_sink_that_fails_for_an_hour_misses_nothing
);
