//! Events go by whole segments, once every sink has received them, and never before.

use std::time::Duration;

use duly_core::event::EventKind::{TaskCreated, TaskSucceeded};
use duly_core::event::Position;
use duly_core::ports::store::{Events, Exchange, Home, Leases as _, Outbox as _};
use tokio_postgres::error::SqlState;

use super::reader::{LIMITS, Reader, SUBMIT, application_submits, begin, commit};
use crate::gate::Gate;
use crate::world::{World, success};

/// Rows of a transaction that is still open are in the segment, and nobody sees them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_segment_that_is_written_to_is_not_emptied() {
    let Some(world) = World::new().await else { return };
    let sink = world.subscribe("all").await;
    let held = world.hold(&sink).await;
    let (application, _driver) = world.application().await;
    world.one(1).await;
    begin(&application).await;
    let late = application_submits(&application).await;
    let mut reader = Reader::new(&world, &sink);
    for number in 2..6 {
        reader.catch_up(10).await;
        world.pass(&held, reader.place.clone().unwrap().parse().unwrap()).await;
        world.nodes[0].tidy_events(LIMITS).await.unwrap();
        world.one(number).await;
    }
    commit(&application).await;
    world.nodes[0].tidy_events(LIMITS).await.unwrap();
    reader.catch_up(10).await;
    assert_eq!(reader.of(late), [TaskCreated]);
    assert_eq!(reader.seen.len(), 6);
    world.pass(&held, reader.place.clone().unwrap().parse().unwrap()).await;
    for _ in 0..8 {
        world.nodes[0].tidy_events(LIMITS).await.unwrap();
    }
    assert_eq!(world.rows().await, 0, "all segments are emptied in turn");
    let more = world.one(9).await;
    reader.catch_up(10).await;
    assert_eq!(reader.of(more), [TaskCreated]);
}

/// Another node may have looked before this one changed something.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_empties_a_segment_looks_at_it_under_the_lock() {
    let Some(world) = World::new().await else { return };
    let sink = world.subscribe("all").await;
    world.one(1).await;
    let (client, _driver) = world.scratch.connect().await;
    let empty = async || -> Option<i64> {
        let call = "SELECT duly.empty_segment(0::smallint)";
        client.query_one(call, &[]).await.unwrap().get(0)
    };
    assert_eq!(empty().await, None, "it is written to");
    client.batch_execute("INSERT INTO duly.outbox_head (segment) VALUES (1)").await.unwrap();
    assert_eq!(empty().await, None, "a sink has not received it");
    let held = world.hold(&sink).await;
    let mut reader = Reader::new(&world, &sink);
    reader.catch_up(10).await;
    world.pass(&held, reader.place.clone().unwrap().parse().unwrap()).await;
    let gate = Gate::new(&world).await;
    gate.shut("LOCK TABLE duly.outbox_0 IN ROW EXCLUSIVE MODE").await;
    assert_eq!(empty().await, None, "somebody may write to it");
    gate.open().await;
    assert_eq!(empty().await, Some(1));
}

/// The server does not keep what a snapshot could see when a table is emptied.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_whose_rows_go_meanwhile_is_told() {
    let Some(world) = World::new().await else { return };
    let sink = world.subscribe("all").await;
    world.one(1).await;
    let mut reader = Reader::new(&world, &sink);
    reader.page(1).await;
    let after: Position = reader.place.clone().unwrap().parse().unwrap();
    world.one(2).await;
    let (client, _driver) = world.scratch.connect().await;
    client.batch_execute("INSERT INTO duly.outbox_head (segment) VALUES (1)").await.unwrap();
    world.one(3).await;
    let gate = Gate::new(&world).await;
    gate.shut("LOCK TABLE duly.outbox_0 IN ACCESS EXCLUSIVE MODE").await;
    let empty = async {
        assert!(gate.holds(1).await, "the reader waits for the rows");
        gate.open_after(
            "TRUNCATE duly.outbox_0;
             UPDATE duly.sink SET seen = pg_current_snapshot(), low = 1000000, high = 1000000",
        )
        .await;
    };
    let (found, ()) = tokio::join!(world.events(&sink, Some(after), 10), empty);
    assert_eq!(found, Events::Gone, "the second event went before it was read");
}

/// Writers, a relay that moves on and a sweeper of segments, all at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_while_segments_are_emptied() {
    const TASKS: u32 = 40;
    let Some(world) = World::new().await else { return };
    let sink = world.subscribe("all").await;
    let held = world.hold(&sink).await;
    let write = async |node: usize| {
        let session = world.open(node, u64::try_from(node).unwrap() + 1, Home::Local).await;
        for number in 0..TASKS {
            let task = world.task(number * 2 + u32::try_from(node).unwrap(), Duration::ZERO);
            world.submit(node, vec![task]).await;
            let leases = world.claim(node, session, u64::from(number) + 1).await;
            let exchange = Exchange { session, finishes: success(&leases), claim: None };
            world.nodes[node].exchange(exchange).await.unwrap();
        }
    };
    let relay = async {
        let mut reader = Reader::new(&world, &sink);
        for turn in 0.. {
            reader.page(1 + turn % 3).await;
            world.pass(&held, reader.place.clone().unwrap().parse().unwrap()).await;
            world.nodes[0].tidy_events(LIMITS).await.unwrap();
            let ended = reader.seen.iter().filter(|it| it.event.kind == TaskSucceeded).count();
            if ended == 2 * TASKS as usize {
                break;
            }
            assert!(turn < 10_000, "{ended} of {} have ended", 2 * TASKS);
        }
        reader
    };
    let (reader, (), ()) = tokio::join!(relay, write(0), write(1));
    reader.check();
    assert_eq!(reader.seen.len(), 3 * 2 * TASKS as usize);
    let (client, _driver) = world.scratch.connect().await;
    let turned = "SELECT count(*) FROM duly.outbox_head";
    assert_eq!(client.query_one(turned, &[]).await.unwrap().get::<_, i64>(0), 1, "segments turned");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_need_not_own_the_events() {
    let Some(mut world) = World::new().await else { return };
    let (client, _driver) = world.scratch.connect().await;
    client.batch_execute(crate::rights::MAKE_RUNNER).await.unwrap();
    world.nodes[0] = world.open_as("duly_test_runner").await;
    world.nodes[1] = world.open_as("duly_test_runner").await;
    let sink = world.subscribe("all").await;
    world.one(1).await;
    let held = world.hold(&sink).await;
    let mut reader = Reader::new(&world, &sink);
    reader.catch_up(10).await;
    assert_eq!(reader.seen.len(), 1);
    world.pass(&held, reader.place.clone().unwrap().parse().unwrap()).await;
    assert_eq!(world.nodes[0].tidy_events(LIMITS).await.unwrap().removed, 1);
    for (role, statement) in [
        ("duly_engine", "DELETE FROM duly.outbox"),
        ("duly_engine", "UPDATE duly.outbox_1 SET at = 0"),
        ("duly_engine", "TRUNCATE duly.outbox_0"),
        ("duly_query", "SELECT FROM duly.outbox"),
        ("duly_query", "SELECT FROM duly.outbox_2"),
        ("duly_query", "SELECT FROM duly.sink"),
        ("duly_application", "SELECT FROM duly.outbox"),
        ("duly_application", "SELECT duly.empty_segment(0::smallint)"),
        ("duly_query", "SELECT duly.empty_segment(0::smallint)"),
        ("duly_query", "SELECT duly.adopt_events(pg_current_snapshot())"),
    ] {
        client.batch_execute(&format!("SET ROLE {role}")).await.unwrap();
        let error = client.batch_execute(statement).await.unwrap_err();
        assert_eq!(error.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE), "{statement}: {error}");
        client.batch_execute("RESET ROLE").await.unwrap();
    }
    client
        .batch_execute(&format!("SET ROLE duly_application; {SUBMIT}; RESET ROLE"))
        .await
        .unwrap();
    reader.catch_up(10).await;
    assert_eq!(reader.seen.len(), 2, "what an application submits is told, too");
}

/// In a copy of the database by the server's tools, ids of transactions are those of the other server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_on_a_server_with_lower_ids_goes_on() {
    let Some(world) = World::new().await else { return };
    let sink = world.subscribe("all").await;
    let stored = world.one(1).await;
    let (client, _driver) = world.scratch.connect().await;
    let copied = "UPDATE duly.outbox SET made_in = '99999999998';
        UPDATE duly.sink SET seen = '99999999999:99999999999:'";
    client.batch_execute(copied).await.unwrap();
    assert_eq!(world.events(&sink, None, 10).await, Events::Gone);
    world.nodes[0].tidy_events(LIMITS).await.unwrap();
    let mut reader = Reader::new(&world, &sink);
    reader.catch_up(10).await;
    assert_eq!(reader.of(stored), [TaskCreated]);
    let new = world.one(2).await;
    reader.catch_up(10).await;
    assert_eq!(reader.of(new), [TaskCreated]);
    assert_eq!(reader.seen.len(), 2);
    let held = world.hold(&sink).await;
    world.pass(&held, reader.place.clone().unwrap().parse().unwrap()).await;
    assert_eq!(world.nodes[0].tidy_events(LIMITS).await.unwrap().removed, 2);
}
