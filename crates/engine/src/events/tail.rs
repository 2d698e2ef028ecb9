//! A tenant's events on this node, read once for all that follow them.
//!
//! The events are those of a sink with a window, which the store keeps for [`STREAM_WINDOW`] also while
//! nobody reads. The newest of them are in a ring in memory. A reader from an older place reads the store
//! first; see [`super::feed`].

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

use duly_core::event::{EventKind, Kinds, Position, SinkName, Subscription};
use duly_core::limits::{EVENT_ROWS, STREAM_WINDOW};
use duly_core::name::TenantName;
use duly_core::ports::event_sink::{Delivery, Details};
use duly_core::ports::store::{
    self, Error, EventPage, Events, PutSink, ReadEvents, SinkChange, Store,
};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::sinks::Sinks;
use super::with_details;
use super::written::{Listener, Written};
use crate::attached_sessions::AttachedSessions;

/// How often a sink is put again, so that it does not expire.
const RENEWAL: Duration = Duration::from_secs(30);
/// Events in the ring.
const RING: usize = 20_000;
/// The least time between two looks: what comes meanwhile is read at once.
const GAP: Duration = Duration::from_millis(5);
/// How long to wait after the store did not answer.
const BACK_OFF: Duration = Duration::from_millis(500);

/// The tails of this node, by tenant.
pub(crate) struct Tails {
    store: Arc<dyn Store>,
    sinks: Arc<Sinks>,
    written: Arc<Written>,
    tails: Mutex<HashMap<TenantName, Weak<Tail>>>,
    loops: TaskTracker,
    stop: CancellationToken,
}

/// The newest events of one tenant.
pub(crate) struct Tail {
    ring: Mutex<Ring>,
    /// The end of the ring, whenever it has grown.
    end: watch::Sender<u64>,
    /// Readers that wait until everything is in the ring that is committed by now.
    waiting: Mutex<Vec<oneshot::Sender<End>>>,
    /// Rings when readers wait, and when the last reader is gone.
    bell: Arc<Notify>,
}

impl Drop for Tail {
    fn drop(&mut self) {
        self.bell.notify_one();
    }
}

/// The end of the ring at some time.
#[derive(Clone, Debug)]
pub(super) struct End {
    /// The number of the next event.
    pub(super) number: u64,
    /// Its place is behind this one.
    pub(super) place: Position,
}

/// Events by number; numbers of this node, from 0.
#[derive(Default)]
struct Ring {
    first: u64,
    events: VecDeque<Delivery>,
    /// Up to where events were read: all of them are in the ring, or were.
    place: Option<Position>,
}

impl Ring {
    fn end(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    fn push(&mut self, events: Vec<Delivery>, place: Position) {
        self.place = Some(place);
        self.events.extend(events);
        let surplus = self.events.len().saturating_sub(RING);
        self.events.drain(..surplus);
        self.first += surplus as u64;
    }

    /// Some events are missing behind the last one: readers of the ring have to look in the store.
    fn interrupt(&mut self) {
        self.first = self.end() + 1;
        self.events.clear();
        self.place = None;
    }
}

/// The sink that keeps a tenant's events.
pub(super) fn stream(tenant: &TenantName) -> PutSink {
    // These are about the installation, which everybody may see.
    let shared = [
        EventKind::SettingsChanged,
        EventKind::NodeJoined,
        EventKind::NodeLeft,
        EventKind::LeaderChanged,
    ];
    let own = Subscription { tenant: Some(tenant.clone()), ..Subscription::to(Kinds::ALL) };
    PutSink {
        name: SinkName::stream_of(tenant),
        subscriptions: vec![own, Subscription::to(shared.into_iter().collect())],
        window: Some(STREAM_WINDOW + RENEWAL),
    }
}

impl Tails {
    pub(crate) fn new(node: &AttachedSessions, sinks: Arc<Sinks>, written: Arc<Written>) -> Self {
        Self {
            store: Arc::clone(&node.store),
            sinks,
            written,
            tails: Mutex::default(),
            loops: node.loops.clone(),
            stop: node.stop.clone(),
        }
    }

    /// The tail of a tenant, which is read from now on if it was not before.
    pub(crate) fn join(&self, tenant: &TenantName) -> Arc<Tail> {
        let mut tails = self.tails.lock();
        if let Some(tail) = tails.get(tenant).and_then(Weak::upgrade) {
            return tail;
        }
        tails.retain(|_, tail| tail.strong_count() > 0);
        let bell = Arc::<Notify>::default();
        let tail = Arc::new(Tail {
            ring: Mutex::default(),
            end: watch::Sender::new(0),
            waiting: Mutex::default(),
            bell: Arc::clone(&bell),
        });
        tails.insert(tenant.clone(), Arc::downgrade(&tail));
        let reader = Reader {
            store: Arc::clone(&self.store),
            sinks: Arc::clone(&self.sinks),
            listener: self.written.listen(&*self.store),
            sink: stream(tenant),
            tail: Arc::downgrade(&tail),
            bell,
            put_at: None,
            after: None,
        };
        let stop = self.stop.clone();
        self.loops.spawn(async move {
            stop.run_until_cancelled(reader.run()).await;
        });
        tail
    }

    pub(super) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }
}

impl Tail {
    /// Waits until everything is in the ring that is committed by now.
    pub(super) async fn caught_up(&self) -> store::Result<End> {
        let (answer, caught_up) = oneshot::channel();
        self.waiting.lock().push(answer);
        self.bell.notify_one();
        let reason = || "the stream of events cannot be read now".to_owned();
        caught_up.await.map_err(|_| Error::Unavailable { reason: reason() })
    }

    /// The events from this number on, at most so many; nothing if the ring has lost them.
    pub(super) fn from(&self, number: u64, most: usize) -> Option<Vec<Delivery>> {
        let ring = self.ring.lock();
        let skip = usize::try_from(number.checked_sub(ring.first)?).ok()?;
        Some(ring.events.iter().skip(skip).take(most).cloned().collect())
    }

    /// The place of this number, if it is the end of the ring.
    pub(super) fn place_at(&self, number: u64) -> Option<Position> {
        let ring = self.ring.lock();
        ring.place.clone().filter(|_| ring.end() == number)
    }

    /// Waits until there are events from this number on.
    pub(super) async fn grown(&self, number: u64) {
        let mut end = self.end.subscribe();
        // The sender is in the same value.
        end.wait_for(|end| *end > number).await.ok();
    }
}

/// Reads the events of a tenant into the ring.
struct Reader {
    store: Arc<dyn Store>,
    sinks: Arc<Sinks>,
    listener: Listener,
    sink: PutSink,
    tail: Weak<Tail>,
    bell: Arc<Notify>,
    put_at: Option<Instant>,
    /// Up to where events were read.
    after: Option<Position>,
}

impl Reader {
    /// Reads until nobody follows any more.
    async fn run(mut self) {
        while let Some(tail) = self.tail.upgrade() {
            self.listener.forget();
            let waiting = std::mem::take(&mut *tail.waiting.lock());
            let pause = match self.run_once(&tail).await {
                Ok(end) => {
                    for reader in waiting {
                        // A reader that has gone needs no answer.
                        reader.send(end.clone()).ok();
                    }
                    GAP
                }
                Err(error) => {
                    tracing::debug!(%error, "the stream of events waits for the store");
                    // Those who wait are told by the end of their channels.
                    drop(waiting);
                    BACK_OFF
                }
            };
            drop(tail);
            tokio::time::sleep(pause).await;
            self.wait().await;
        }
    }

    /// Waits for events or readers.
    async fn wait(&mut self) {
        let put_at = self.put_at.unwrap_or_else(Instant::now) + RENEWAL;
        tokio::select! {
            () = self.listener.heard() => {}
            () = self.bell.notified() => {}
            () = tokio::time::sleep_until(put_at) => {}
        }
    }

    /// Reads everything there is.
    async fn run_once(&mut self, tail: &Tail) -> store::Result<End> {
        self.put().await?;
        loop {
            let after = match self.after.clone() {
                Some(after) => after,
                None => self.store.end_of_events().await?,
            };
            let sink = self.sink.name.clone();
            let read = ReadEvents { sink, after: Some(after), rows: EVENT_ROWS };
            let EventPage { events, next, more } = match self.store.events(read).await? {
                Events::Page(page) => page,
                // The sink has expired while this node was away.
                Events::Gone | Events::Closed => {
                    (self.after, self.put_at) = (None, None);
                    tail.ring.lock().interrupt();
                    return Err(Error::Unavailable { reason: "events were removed".to_owned() });
                }
            };
            let events = with_details(&*self.store, events, Details::Tasks).await?;
            self.after = Some(next.clone());
            let number = {
                let mut ring = tail.ring.lock();
                ring.push(events, next.clone());
                ring.end()
            };
            tail.end.send_if_modified(|known| std::mem::replace(known, number) != number);
            if !more {
                return Ok(End { number, place: next });
            }
        }
    }

    /// Puts the sink into the store, or again.
    async fn put(&mut self) -> store::Result<()> {
        if self.put_at.is_some_and(|at| at.elapsed() < RENEWAL) {
            return Ok(());
        }
        let asked = Instant::now();
        match self.store.put_sink(self.sink.clone()).await? {
            SinkChange::TooMany => {
                let reason = "there are too many sinks of events".to_owned();
                return Err(Error::Unavailable { reason });
            }
            SinkChange::Done { created } => {
                self.put_at = Some(asked);
                if created {
                    self.sinks.note_stored();
                }
            }
        }
        Ok(())
    }
}
