//! A sink, and a reader that goes through it page by page.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use duly_core::event::{About, EventKind, Kinds, Position, SinkName, Subscription};
use duly_core::id::{NodeId, TaskId};
use duly_core::limits::{SINK_AGE, SINK_ROWS};
use duly_core::name::TenantName;
use duly_core::ports::clock::Clock as _;
use duly_core::ports::store::{
    CancelTasks, Control as _, Controlled, EventPage, Events, HeldSink, HoldSinks, Outbox as _,
    PassEvents, PutSink, ReadEvents, StoredEvent, TidyEvents,
};
use tokio::task::JoinSet;
use tokio_postgres::Client;

use crate::world::World;

const NODE: NodeId = NodeId::ONLY;
pub(super) const LIMITS: TidyEvents = TidyEvents { rows: SINK_ROWS, age: SINK_AGE };
pub(super) const SUBMIT: &str = "SELECT duly.submit('email', '{}')::text";

impl World {
    pub(super) async fn subscribe(&self, name: &str) -> SinkName {
        let name = SinkName::new(name).unwrap();
        let subscriptions = vec![Subscription::to(Kinds::ALL)];
        let put = PutSink { name: name.clone(), subscriptions, window: None };
        self.nodes[0].put_sink(put).await.unwrap();
        name
    }

    pub(super) async fn events(
        &self,
        sink: &SinkName,
        after: Option<Position>,
        rows: u32,
    ) -> Events {
        self.nodes[1].events(ReadEvents { sink: sink.clone(), after, rows }).await.unwrap()
    }

    pub(super) async fn hold(&self, sink: &SinkName) -> HeldSink {
        let (ttl, names) = (Duration::from_secs(60 * 60), vec![sink.clone()]);
        let order = HoldSinks { node: NODE, ttl, names, most: 1 };
        self.nodes[0].hold_sinks(order).await.unwrap().remove(0)
    }

    pub(super) async fn pass(&self, held: &HeldSink, position: Position) {
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
    pub(super) async fn application(&self) -> (Client, JoinSet<()>) {
        let (client, driver) = self.scratch.connect().await;
        let now = self.clock.now().millis();
        client.batch_execute(&format!("SET duly.now_ms = {now}")).await.unwrap();
        (client, driver)
    }

    pub(super) async fn rows(&self) -> u64 {
        self.nodes[0].event_rows().await.unwrap()
    }

    pub(super) async fn one(&self, number: u32) -> TaskId {
        let task = self.task(number, Duration::ZERO);
        self.submit(0, vec![task.clone()]).await;
        task.id
    }
}

/// A reader of a sink that forgets everything but its place between two pages.
pub(super) struct Reader<'a> {
    world: &'a World,
    sink: SinkName,
    pub(super) place: Option<String>,
    pub(super) seen: Vec<StoredEvent>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(world: &'a World, sink: &SinkName) -> Self {
        Self { world, sink: sink.clone(), place: None, seen: Vec::new() }
    }

    /// Reads a page of so many rows; whether there is more.
    pub(super) async fn page(&mut self, rows: u32) -> bool {
        let after = self.place.as_ref().map(|text| text.parse().unwrap());
        let found = self.world.events(&self.sink, after, rows).await;
        let Events::Page(EventPage { events, next, more }) = found else { panic!("{found:?}") };
        self.seen.extend(events);
        self.place = Some(next.to_string());
        more
    }

    pub(super) async fn catch_up(&mut self, rows: u32) {
        while self.page(rows).await {}
    }

    /// What has happened to a task, as far as this reader was told.
    pub(super) fn of(&self, task: TaskId) -> Vec<EventKind> {
        let of_it = self.seen.iter().filter(|it| it.event.task() == Some(task));
        of_it.map(|it| it.event.kind).collect()
    }

    /// No event twice, and those of each task in the order in which tasks live.
    pub(super) fn check(&self) {
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
            assert_eq!(events[0], (0, EventKind::TaskCreated), "{task}");
        }
    }
}

pub(super) async fn begin(client: &Client) {
    client.batch_execute("BEGIN").await.unwrap();
}

pub(super) async fn commit(client: &Client) {
    client.batch_execute("COMMIT").await.unwrap();
}

/// A task that an application submits in the transaction that it has open.
pub(super) async fn application_submits(client: &Client) -> TaskId {
    let id: String = client.query_one(SUBMIT, &[]).await.unwrap().get(0);
    id.parse().unwrap()
}

impl World {
    pub(super) async fn cancels(&self, node: usize, task: TaskId) -> bool {
        let tenant = TenantName::default_tenant();
        let order = CancelTasks { tenant, tasks: vec![task], reason: "raced".to_owned() };
        self.nodes[node].cancel(order).await.unwrap() == [Controlled::Done]
    }
}
