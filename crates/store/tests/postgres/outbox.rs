//! Events under transactions that do not end in the order in which they began. Each is brought about by
//! transactions that a test holds open.

mod reader;
mod segments;

use std::time::Duration;

use duly_core::event::{Event, EventKind};
use duly_core::lease::{Finish, Outcome};
use duly_core::ports::store::{Claim, Exchange, Home, Leases as _, Outbox as _};

use self::reader::{Reader, SUBMIT, application_submits, begin, commit};
use crate::gate::Gate;
use crate::world::World;

use EventKind::{TaskCreated, TaskStarted, TaskSucceeded};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_transaction_hides_nobody_and_is_not_passed_over() {
    let Some(world) = World::new().await else { return };
    let sink = world.subscribe("all").await;
    let (application, _driver) = world.application().await;
    // From now on there is the lane, which others need too.
    let first = world.one(100).await;
    begin(&application).await;
    let early = application_submits(&application).await;
    let (mut reader, mut others) = (Reader::new(&world, &sink), vec![first]);
    // As the relay does, from page to page.
    let held = world.hold(&sink).await;
    for number in 0..20 {
        others.push(world.one(number).await);
        reader.catch_up(1 + number % 3).await;
        world.pass(&held, reader.place.clone().unwrap().parse().unwrap()).await;
        let seen: Vec<_> = reader.seen.iter().filter_map(|it| it.event.task()).collect();
        assert_eq!(seen, others, "the number that is not committed holds nobody up");
    }
    commit(&application).await;
    reader.catch_up(100).await;
    assert_eq!(reader.of(early), [TaskCreated], "its number is lower than those seen before");
    assert_eq!(reader.seen.len(), 22);
    reader.check();
    // So says who begins at the place that was kept.
    let mut next = Reader::new(&world, &sink);
    next.catch_up(100).await;
    assert_eq!(next.of(early), [TaskCreated]);
    assert_eq!(next.seen.len(), 1);
}

/// Whether a reader is told of what an application has submitted, although others were faster.
#[cfg(feature = "planted-bugs")]
async fn finds_the_late_one(world: &World) -> bool {
    let sink = world.subscribe("all").await;
    let (application, _driver) = world.application().await;
    world.one(1).await;
    begin(&application).await;
    let late = application_submits(&application).await;
    let mut reader = Reader::new(world, &sink);
    world.one(2).await;
    reader.catch_up(10).await;
    commit(&application).await;
    world.one(3).await;
    reader.page(10).await;
    reader.of(late) == [TaskCreated]
}

#[cfg(feature = "planted-bugs")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_read_by_number_alone_are_caught() {
    use duly_store::planted::PlantedBug;
    for bug in [None, Some(PlantedBug::EventsByNumber)] {
        let Some(mut world) = World::new().await else { return };
        if let Some(bug) = bug {
            world.nodes = world.nodes.map(|node| node.with_bug(bug));
        }
        assert_eq!(finds_the_late_one(&world).await, bug.is_none(), "with {bug:?}");
    }
}

/// An application may take its id long before it changes anything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_with_a_lower_id_comes_later() {
    let Some(world) = World::new().await else { return };
    let sink = world.subscribe("all").await;
    let session = world.open(0, 1, Home::Local).await;
    let (application, _driver) = world.application().await;
    let mut all = Reader::new(&world, &sink);
    let mut tasks = Vec::new();
    for number in 0..10 {
        begin(&application).await;
        application.batch_execute("SELECT pg_current_xact_id()").await.unwrap();
        let id = world.one(number).await;
        let lease = world.claim(0, session, u64::from(number) + 1).await.remove(0);
        // Every other time a reader steps in between.
        if number % 2 == 0 {
            all.catch_up(10).await;
        }
        let finish = format!("SELECT duly.finish('{id}', {}, '{session}')", lease.epoch);
        application.batch_execute(&finish).await.unwrap();
        commit(&application).await;
        tasks.push(id);
    }
    all.catch_up(10).await;
    let mut late = Reader::new(&world, &sink);
    late.catch_up(3).await;
    for reader in [all, late] {
        reader.check();
        for task in &tasks {
            assert_eq!(reader.of(*task), [TaskCreated, TaskStarted, TaskSucceeded]);
        }
    }
}

/// The claim has taken its due row, and with that its id, before it waits for the task.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_waited_for_a_row_comes_after_the_one_that_held_it() {
    let Some(world) = World::new().await else { return };
    let (sink, gate) = (world.subscribe("all").await, Gate::new(&world).await);
    let session = world.open(0, 1, Home::Local).await;
    let (mut races, mut tasks) = (0, Vec::new());
    for number in 0..10 {
        let id = world.one(number).await;
        gate.shut(&format!("SELECT FROM duly.task WHERE id = '{id}' FOR UPDATE")).await;
        let release = async {
            let met = gate.holds(2).await;
            gate.open().await;
            met
        };
        let claim = world.claim(0, session, u64::from(number) + 1);
        let (leases, cancelled, met) = tokio::join!(claim, world.cancels(1, id), release);
        races += u32::from(met);
        assert!(cancelled);
        tasks.push((id, leases));
    }
    assert!(races > 0, "they met at the gate");
    let mut reader = Reader::new(&world, &sink);
    reader.catch_up(4).await;
    reader.check();
    for (task, leases) in tasks {
        let mut expected = vec![TaskCreated, EventKind::TaskCancelled];
        if !leases.is_empty() {
            expected.insert(1, TaskStarted);
        }
        assert_eq!(reader.of(task), expected);
    }
}

/// No id behind these transactions' has ended: to a snapshot they are as unknown as those that begin later,
/// but they have their numbers already.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_from_before_a_view_are_found() {
    let Some(world) = World::new().await else { return };
    let sink = world.subscribe("all").await;
    let ((one, _driver), (other, _other)) = (world.application().await, world.application().await);
    world.one(1).await;
    // What nodes do meanwhile takes ids, too.
    let nobody_was_faster =
        "SELECT pg_snapshot_xmax(pg_current_snapshot()) <= pg_current_xact_id()";
    let mut first = None;
    for _ in 0..20 {
        begin(&one).await;
        begin(&other).await;
        first = Some(application_submits(&one).await);
        for _ in 0..100 {
            application_submits(&other).await;
        }
        if one.query_one(nobody_was_faster, &[]).await.unwrap().get(0) {
            break;
        }
        one.batch_execute("ROLLBACK").await.unwrap();
        other.batch_execute("ROLLBACK").await.unwrap();
        first = None;
    }
    let first = first.expect("nodes are quiet at some time");
    let mut reader = Reader::new(&world, &sink);
    reader.catch_up(10).await;
    assert_eq!(reader.seen.len(), 1);
    commit(&one).await;
    reader.catch_up(10).await;
    assert_eq!(reader.of(first), [TaskCreated]);
    commit(&other).await;
    reader.catch_up(10).await;
    assert_eq!(reader.seen.len(), 102);
    reader.check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_application_that_rolls_back_has_told_nothing() {
    let Some(world) = World::new().await else { return };
    let sink = world.subscribe("all").await;
    let (application, _driver) = world.application().await;
    application.batch_execute(&format!("BEGIN; {SUBMIT}; ROLLBACK")).await.unwrap();
    let savepoint =
        format!("BEGIN; SAVEPOINT s; {SUBMIT}; ROLLBACK TO SAVEPOINT s; {SUBMIT}; COMMIT");
    application.batch_execute(&savepoint).await.unwrap();
    let mut reader = Reader::new(&world, &sink);
    reader.catch_up(10).await;
    assert_eq!(reader.seen.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_ends_and_claims_has_one_row() {
    let Some(world) = World::new().await else { return };
    let sink = world.subscribe("all").await;
    let session = world.open(0, 1, Home::Local).await;
    world.one(1).await;
    let lease = world.claim(0, session, 1).await.remove(0);
    world.one(2).await;
    let before = world.rows().await;
    let claim = Some(Claim::new(session, 2, 10));
    let finishes = vec![Finish::new(lease.task, lease.epoch, Outcome::Success { result: None })];
    world.nodes[0].exchange(Exchange { session, finishes, claim }).await.unwrap();
    assert_eq!(world.rows().await, before + 1);
    let mut reader = Reader::new(&world, &sink);
    reader.catch_up(100).await;
    let last: Vec<_> = reader.seen.iter().rev().take(2).map(|it| it.event.kind).collect();
    assert_eq!(last, [TaskStarted, TaskSucceeded], "what was freed came first");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_node_is_told_soon() {
    let Some(world) = World::new().await else { return };
    world.subscribe("all").await;
    // Again and again: hints may get lost while nodes come up.
    for number in 0..100 {
        world.one(number).await;
        let hint = tokio::time::timeout(Duration::from_millis(200), world.nodes[1].event_hint());
        if hint.await.is_ok() {
            return;
        }
    }
    panic!("no hint arrives");
}

/// One event that cannot be read must not hold back the others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_damaged_is_left_out() {
    let Some(world) = World::new().await else { return };
    let sink = world.subscribe("all").await;
    let (client, _driver) = world.scratch.connect().await;
    let insert = "INSERT INTO duly.outbox (at, segment, kinds, tasks, lanes, runs, epochs, others)
        VALUES (1, 0, '{99,0}', ARRAY[gen_random_uuid(), gen_random_uuid()], '{1,-5}', '{1,1}', '{0,0}',
                ARRAY['nonsense'])";
    client.batch_execute(insert).await.unwrap();
    let id = world.one(1).await;
    let mut reader = Reader::new(&world, &sink);
    reader.catch_up(10).await;
    let told: Vec<_> = reader.seen.iter().map(|it| Event::task(&it.event)).collect();
    assert_eq!(told, [Some(id)]);
}
