//! Events: relayed to sinks, followed, watched and sampled.

#![expect(clippy::unwrap_used, reason = "a store that does not answer fails its test")]

mod follow;
mod relay;
mod watch;

use std::sync::Arc;

use async_trait::async_trait;
use duly_core::event::{EventKind, Kinds, SinkName, Subscription};
use duly_core::id::TaskId;
use duly_core::ports::event_sink::{Delivery, Details, EventSink, NotTaken};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::world::{World, draft, finish, success};

/// What was delivered, by one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) id: String,
    pub(crate) kind: EventKind,
    pub(crate) task: Option<TaskId>,
}

impl From<&Delivery> for Received {
    fn from(delivery: &Delivery) -> Self {
        Self { id: delivery.id(), kind: delivery.event.kind, task: delivery.event.task() }
    }
}

/// A sink that keeps what it receives, and refuses some of it.
pub(crate) struct Archive {
    details: Details,
    received: Mutex<Vec<Delivery>>,
    refusals: Mutex<usize>,
    changed: Notify,
}

impl Archive {
    pub(crate) fn new() -> Arc<Self> {
        Self::with(Details::Ids)
    }

    pub(crate) fn with(details: Details) -> Arc<Self> {
        let (received, refusals) = (Mutex::default(), Mutex::default());
        Arc::new(Self { details, received, refusals, changed: Notify::new() })
    }

    /// The next calls are refused.
    pub(crate) fn refuse(&self, calls: usize) {
        *self.refusals.lock() = calls;
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().iter().map(Received::from).collect()
    }

    /// Waits until it has received so many events.
    pub(crate) async fn until(&self, count: usize) -> Vec<Received> {
        loop {
            let changed = self.changed.notified();
            let received = self.received();
            if received.len() >= count {
                return received;
            }
            changed.await;
        }
    }

    pub(crate) fn kinds(&self) -> Vec<EventKind> {
        self.received().iter().map(|it| it.kind).collect()
    }
}

#[async_trait]
impl EventSink for Archive {
    fn details(&self) -> Details {
        self.details
    }

    async fn take(&self, events: &[Delivery]) -> Result<(), NotTaken> {
        {
            let mut refusals = self.refusals.lock();
            if *refusals > 0 {
                *refusals -= 1;
                return Err(NotTaken("not now".to_owned()));
            }
        }
        self.received.lock().extend_from_slice(events);
        self.changed.notify_waiters();
        Ok(())
    }
}

pub(crate) fn name(text: &str) -> SinkName {
    SinkName::new(text).unwrap()
}

pub(crate) fn everything() -> Vec<Subscription> {
    vec![Subscription::to(Kinds::ALL)]
}

pub(crate) fn outcomes() -> Vec<Subscription> {
    vec![Subscription::to(Kinds::OUTCOMES)]
}

/// A task that succeeds.
pub(crate) async fn run_one(world: &World) -> TaskId {
    let task = world.submit(draft("echo")).await.task.id;
    let lease = world.source.claim(1).await.unwrap().remove(0);
    world.source.finish(vec![finish(&lease, success())]).await.unwrap();
    task
}
