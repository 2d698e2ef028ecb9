//! Events that were written with the changes they tell of, and the sinks that receive them.

use std::time::Duration;

use async_trait::async_trait;

use super::Result;
use crate::event::{Event, Position, SinkName, Subscription};
use crate::id::{NodeId, TaskId};
use crate::task::Task;
use crate::time::Timestamp;

/// What receives events from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutSink {
    /// Which.
    pub name: SinkName,
    /// What it wants: what any of these wants; at most [`crate::limits::SUBSCRIPTIONS`].
    pub subscriptions: Vec<Subscription>,
    /// No relay serves this sink. Its events are kept for this long, for those who read them, and the sink
    /// goes if it is not put again within this time.
    pub window: Option<Duration>,
}

/// What became of an order for a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SinkChange {
    /// It is so now.
    Done {
        /// Whether there was none before: its position is the present.
        created: bool,
    },
    /// There are [`crate::limits::SINKS`].
    TooMany,
}

/// A sink as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct SinkState {
    /// What it is.
    pub sink: PutSink,
    /// Since when.
    pub created_at: Timestamp,
    /// What it has received; with a window, what is no longer kept.
    pub position: Position,
    /// How far it is behind.
    pub lag: Lag,
    /// The node that serves it.
    pub relay: Option<Relay>,
    /// Why it receives nothing any more.
    pub suspended: Option<Suspension>,
    /// What its relay could not do, since the last success.
    pub trouble: Option<String>,
}

/// What a sink has not received yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lag {
    /// Stored rows, with whatever other sinks have in them; counted up to [`crate::limits::SINK_ROWS`].
    pub rows: u64,
    /// When the first of them was written.
    pub since: Option<Timestamp>,
}

/// The node that serves a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relay {
    /// Which node.
    pub node: NodeId,
    /// Grows whenever another node takes the sink, never back.
    pub term: u64,
    /// Until when, unless it renews.
    pub until: Timestamp,
}

/// Why a sink receives nothing any more. Nothing is kept for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspension {
    /// Since when.
    pub at: Timestamp,
    /// For people.
    pub reason: String,
}

/// A node serves sinks, or goes on to.
#[derive(Clone, Debug)]
pub struct HoldSinks {
    /// Which node.
    pub node: NodeId,
    /// For how long from now, by the store's clock.
    pub ttl: Duration,
    /// Those it knows how to serve.
    pub names: Vec<SinkName>,
    /// How many it holds at the most; what it holds already it may renew beyond that.
    pub most: usize,
}

/// A sink that a node serves.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldSink {
    /// Which.
    pub name: SinkName,
    /// Under which term.
    pub term: u64,
    /// From where on.
    pub position: Position,
}

/// Which events to read.
#[derive(Clone, Debug)]
pub struct ReadEvents {
    /// Those of this sink.
    pub sink: SinkName,
    /// Behind this position; from the position of the sink when absent.
    pub after: Option<Position>,
    /// Stored rows to look at; at most [`crate::limits::EVENT_ROWS`].
    pub rows: u32,
}

/// What a read finds.
#[derive(Clone, Debug, PartialEq)]
pub enum Events {
    /// What comes next.
    Page(EventPage),
    /// What followed that position is no longer kept, or the position is not of this store.
    Gone,
    /// There is no such sink, or it is suspended.
    Closed,
}

/// Events in order: those of one task are in the order of its changes.
#[derive(Clone, Debug, PartialEq)]
pub struct EventPage {
    /// What the sink wants of what was looked at.
    pub events: Vec<StoredEvent>,
    /// Where to go on.
    pub next: Position,
    /// Whether there was more when the page was read.
    pub more: bool,
}

/// An event and its place. The number and the index of the position name the stored event: no other has
/// them, and they are the same at each read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEvent {
    /// Everything up to this event was seen.
    pub position: Position,
    /// The event.
    pub event: Event,
}

/// A sink has received everything up to a position.
#[derive(Clone, Debug)]
pub struct PassEvents {
    /// Which.
    pub sink: SinkName,
    /// Who serves it.
    pub node: NodeId,
    /// Under which term.
    pub term: u64,
    /// Up to here. Where it is absent, nothing was received.
    pub position: Option<Position>,
    /// What could not be done, for people.
    pub trouble: Option<String>,
}

/// How far sinks may be behind.
#[derive(Clone, Copy, Debug)]
pub struct TidyEvents {
    /// Stored rows.
    pub rows: u64,
    /// Time.
    pub age: Duration,
}

impl TidyEvents {
    /// Why a sink that is so far behind is to be suspended, if it is.
    pub fn verdict(&self, lag: Lag, now: Timestamp) -> Option<String> {
        if lag.rows >= self.rows {
            return Some(format!("it is {} rows of events behind, the limit", self.rows));
        }
        let is_old = lag.since.is_some_and(|since| since.plus(self.age) <= now);
        let age = self.age.as_secs();
        is_old.then(|| format!("it is {age} seconds of events behind, the limit"))
    }
}

/// What tidying did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tidied {
    /// Rows that every sink had passed.
    pub removed: u64,
    /// Sinks that are too far behind.
    pub suspended: Vec<SinkName>,
    /// Sinks whose window has ended without a reader.
    pub expired: Vec<SinkName>,
}

/// The events and their sinks. An event is written in the transaction of its change, once, if a sink wants
/// it: tasks of the system's own queues have none. Without sinks nothing is written.
#[async_trait]
pub trait Outbox {
    /// Creates a sink, or changes what it wants. A transaction that begins after this was answered writes
    /// the events that it wants. An existing sink keeps its position, and a suspended one stays so.
    async fn put_sink(&self, sink: PutSink) -> Result<SinkChange>;

    /// Lets a suspended sink receive again, from the present on. Whether there is such a sink.
    async fn resume_sink(&self, name: &SinkName) -> Result<bool>;

    /// Removes a sink. Whether there was one.
    async fn remove_sink(&self, name: &SinkName) -> Result<bool>;

    /// All sinks, by name.
    async fn sinks(&self) -> Result<Vec<SinkState>>;

    /// Takes sinks that no node serves, and renews what the node holds; answers with all it holds afterwards.
    /// No node serves sinks with a window and suspended ones.
    async fn hold_sinks(&self, order: HoldSinks) -> Result<Vec<HeldSink>>;

    /// Lets other nodes serve what this one serves.
    async fn release_sinks(&self, node: NodeId) -> Result<()>;

    /// The next events of a sink. An event that is committed is found by a later read at the latest: no
    /// transaction that takes long hides the events of others, and none is passed over.
    async fn events(&self, read: ReadEvents) -> Result<Events>;

    /// The place behind every event that is committed by now: what is committed later is found behind it.
    async fn end_of_events(&self) -> Result<Position>;

    /// Moves a sink, if this node still serves it under this term. Whether it does. Positions never go back.
    async fn pass_events(&self, order: PassEvents) -> Result<bool>;

    /// Removes what every sink has passed and sinks that have expired, moves windows, and suspends sinks that
    /// are too far behind.
    async fn tidy_events(&self, order: TidyEvents) -> Result<Tidied>;

    /// How many rows of events are stored, counted up to [`crate::limits::SINK_ROWS`].
    async fn event_rows(&self) -> Result<u64>;

    /// Tasks by their ids, of all tenants; with `null` for their payloads unless `payloads` asks for them.
    /// Those that are gone are left out.
    async fn tasks_of(&self, ids: Vec<TaskId>, payloads: bool) -> Result<Vec<Task>>;

    /// Waits for a hint that events were written. Hints may be lost: polling alone is correct.
    async fn event_hint(&self);
}
