//! Events under transactions that do not end in the order in which they began. Each is brought about by
//! transactions that a test holds open.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use duly_core::event::{About, Event, EventKind, Kinds, Position, SinkName, Subscription};
use duly_core::id::{NodeId, TaskId};
use duly_core::lease::{Finish, Outcome};
use duly_core::limits::{SINK_AGE, SINK_ROWS};
use duly_core::name::TenantName;
use duly_core::ports::clock::Clock as _;
use duly_core::ports::store::{
    CancelTasks, Claim, Control as _, Controlled, EventPage, Events, Exchange, HeldSink, HoldSinks,
    Home, Leases as _, Outbox as _, PassEvents, PutSink, ReadEvents, StoredEvent, TidyEvents,
};
use tokio::task::JoinSet;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::gate::Gate;
use crate::world::{World, success};

use EventKind::{TaskCreated, TaskStarted, TaskSucceeded};

const NODE: NodeId = NodeId::ONLY;
const LIMITS: TidyEvents = TidyEvents { rows: SINK_ROWS, age: SINK_AGE };
const SUBMIT: &str = "SELECT duly.submit('email', '{}')::text";

impl World {
    async fn subscribe(&self, name: &str) -> SinkName {
        let name = SinkName::new(name).unwrap();
        let subscriptions = vec![Subscription::to(Kinds::ALL)];
        let put = PutSink { name: name.clone(), subscriptions, window: None };
        self.nodes[0].put_sink(put).await.unwrap();
        name
    }

    async fn events(&self, sink: &SinkName, after: Option<Position>, rows: u32) -> Events {
        self.nodes[1].events(ReadEvents { sink: sink.clone(), after, rows }).await.unwrap()
    }

    async fn hold(&self, sink: &SinkName) -> HeldSink {
        let (ttl, names) = (Duration::from_secs(60 * 60), vec![sink.clone()]);
        let order = HoldSinks { node: NODE, ttl, names, most: 1 };
        self.nodes[0].hold_sinks(order).await.unwrap().remove(0)
    }

    async fn pass(&self, held: &HeldSink, position: Position) {
        let order = PassEvents {
            sink: held.name.clone(),
            node: NODE,
            term: held.term,
            position: Some(position),
            trouble: None,
        };
        assert!(self.nodes[0].pass_events(order).await.unwrap());
    }

    /// An application's connection, which goes by the same clock.
    async fn application(&self) -> (Client, JoinSet<()>) {
        let (client, driver) = self.scratch.connect().await;
        let now = self.clock.now().millis();
        client.batch_execute(&format!("SET duly.now_ms = {now}")).await.unwrap();
        (client, driver)
    }

    async fn rows(&self) -> u64 {
        self.nodes[0].event_rows().await.unwrap()
    }

    async fn one(&self, number: u32) -> TaskId {
        let task = self.task(number, Duration::ZERO);
        self.submit(0, vec![task.clone()]).await;
        task.id
    }
}

/// A reader of a sink that forgets everything but its place between two pages.
struct Reader<'a> {
    world: &'a World,
    sink: SinkName,
    place: Option<String>,
    seen: Vec<StoredEvent>,
}

impl<'a> Reader<'a> {
    fn new(world: &'a World, sink: &SinkName) -> Self {
        Self { world, sink: sink.clone(), place: None, seen: Vec::new() }
    }

    /// Reads a page of so many rows; whether there is more.
    async fn page(&mut self, rows: u32) -> bool {
        let after = self.place.as_ref().map(|text| text.parse().unwrap());
        let found = self.world.events(&self.sink, after, rows).await;
        let Events::Page(EventPage { events, next, more }) = found else { panic!("{found:?}") };
        self.seen.extend(events);
        self.place = Some(next.to_string());
        more
    }

    async fn catch_up(&mut self, rows: u32) {
        while self.page(rows).await {}
    }

    /// What has happened to a task, as far as this reader was told.
    fn of(&self, task: TaskId) -> Vec<EventKind> {
        let of_it = self.seen.iter().filter(|it| it.event.task() == Some(task));
        of_it.map(|it| it.event.kind).collect()
    }

    /// No event twice, and those of each task in the order in which tasks live.
    fn check(&self) {
        let names: BTreeSet<_> =
            self.seen.iter().map(|it| (it.position.number, it.position.index)).collect();
        assert_eq!(names.len(), self.seen.len(), "no event twice");
        let mut by_task = BTreeMap::<TaskId, Vec<(u32, EventKind)>>::new();
        for it in &self.seen {
            if let About::Task { id, epoch, .. } = it.event.about {
                by_task.entry(id).or_default().push((epoch, it.event.kind));
            }
        }
        for (task, events) in by_task {
            assert!(events.is_sorted(), "{task}: {events:?}");
            assert_eq!(events[0], (0, TaskCreated), "{task}");
        }
    }
}

async fn begin(client: &Client) {
    client.batch_execute("BEGIN").await.unwrap();
}

async fn commit(client: &Client) {
    client.batch_execute("COMMIT").await.unwrap();
}

/// A task that an application submits in the transaction that it has open.
async fn application_submits(client: &Client) -> TaskId {
    let id: String = client.query_one(SUBMIT, &[]).await.unwrap().get(0);
    id.parse().unwrap()
}

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

impl World {
    async fn cancels(&self, node: usize, task: TaskId) -> bool {
        let tenant = TenantName::default_tenant();
        let order = CancelTasks { tenant, tasks: vec![task], reason: "raced".to_owned() };
        self.nodes[node].cancel(order).await.unwrap() == [Controlled::Done]
    }
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
