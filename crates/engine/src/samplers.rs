//! Figures of a tenant's queues, taken once a second for all that look at them.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use duly_core::limits::{LIST_COUNT_ROWS, PAGE};
use duly_core::name::TenantName;
use duly_core::ports::store::{self, ListQueues, QueueState, Store};
use duly_core::time::Timestamp;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::attached_sessions::AttachedSessions;
use crate::rates::{Rate, Rates};

/// From one sample to the next.
const EVERY: Duration = Duration::from_secs(1);
/// How long to rest after a sample, as a multiple of its time: most of the store is for others.
const REST: u32 = 5;

/// The queues of a tenant at one time.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// When, by the store's clock.
    pub at: Timestamp,
    /// The first queues by name.
    pub queues: Vec<QueueSample>,
    /// Whether there are others.
    pub more: bool,
}

/// A queue at one time.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueSample {
    /// What is in it.
    pub state: QueueState,
    /// How fast this node has submitted and started its tasks of late.
    pub rate: Rate,
    /// How long the due task has waited that waits longest; zero if none is due.
    pub lateness: Duration,
}

type Slot = watch::Sender<Option<Arc<Sample>>>;

/// The samplers of this node, by tenant.
pub(crate) struct Samplers {
    store: Arc<dyn Store>,
    rates: Arc<Rates>,
    slots: Mutex<HashMap<TenantName, Weak<Slot>>>,
    loops: TaskTracker,
    stop: CancellationToken,
}

/// The samples of a tenant, one a second.
pub struct SampleFeed {
    samples: watch::Receiver<Option<Arc<Sample>>>,
    /// Keeps the sampler going.
    _slot: Arc<Slot>,
}

impl SampleFeed {
    /// The next sample; at first the last one, if another reader has had one. Dropping the call loses
    /// nothing.
    pub async fn next(&mut self) -> Arc<Sample> {
        loop {
            self.samples.changed().await.expect("the sender is in the same value");
            if let Some(sample) = self.samples.borrow_and_update().clone() {
                return sample;
            }
        }
    }
}

impl Samplers {
    pub(crate) fn new(node: &AttachedSessions) -> Self {
        Self {
            store: Arc::clone(&node.store),
            rates: Arc::clone(&node.rates),
            slots: Mutex::default(),
            loops: node.loops.clone(),
            stop: node.stop.clone(),
        }
    }

    /// The samples of a tenant, which are taken from now on if they were not before.
    pub(crate) fn join(&self, tenant: &TenantName) -> SampleFeed {
        let mut slots = self.slots.lock();
        let known = slots.get(tenant).and_then(Weak::upgrade);
        let slot = known.unwrap_or_else(|| {
            slots.retain(|_, slot| slot.strong_count() > 0);
            let slot = Arc::new(Slot::new(None));
            slots.insert(tenant.clone(), Arc::downgrade(&slot));
            self.start(tenant, Arc::downgrade(&slot));
            slot
        });
        let mut samples = slot.subscribe();
        samples.mark_changed();
        SampleFeed { samples, _slot: slot }
    }

    fn start(&self, tenant: &TenantName, slot: Weak<Slot>) {
        let sampler = Sampler {
            store: Arc::clone(&self.store),
            rates: Arc::clone(&self.rates),
            tenant: tenant.clone(),
            slot,
        };
        let stop = self.stop.clone();
        self.loops.spawn(async move {
            stop.run_until_cancelled(sampler.run()).await;
        });
    }
}

struct Sampler {
    store: Arc<dyn Store>,
    rates: Arc<Rates>,
    tenant: TenantName,
    slot: Weak<Slot>,
}

impl Sampler {
    /// Takes samples until nobody looks any more.
    async fn run(self) {
        while let Some(slot) = self.slot.upgrade() {
            let began = Instant::now();
            match self.run_once().await {
                Ok(sample) => {
                    slot.send_replace(Some(Arc::new(sample)));
                }
                Err(error) => tracing::debug!(%error, "figures of queues wait for the store"),
            }
            drop(slot);
            tokio::time::sleep_until(began + EVERY.max(began.elapsed() * REST)).await;
        }
    }

    async fn run_once(&self) -> store::Result<Sample> {
        let page = ListQueues {
            tenant: self.tenant.clone(),
            after: None,
            limit: PAGE,
            count_to: LIST_COUNT_ROWS,
        };
        let listed = self.store.queues(page).await?;
        let at = self.store.now().await?;
        let sample = |state: QueueState| QueueSample {
            rate: self.rates.of(&self.tenant, &state.queue),
            lateness: state.oldest_due.map_or(Duration::ZERO, |due| at.since(due)),
            state,
        };
        let queues = listed.queues.into_iter().map(sample).collect();
        Ok(Sample { at, queues, more: listed.next_after.is_some() })
    }
}
