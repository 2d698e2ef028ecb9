//! A courier that ends anywhere loses nothing and turns no two events of a task around.

use std::collections::{BTreeSet, HashMap};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use async_trait::async_trait;
use duly_core::event::{EventKind, Kinds, Subscription};
use duly_core::id::{NodeId, TaskId};
use duly_core::name::{Lane, QueueName, TenantName, TypeName};
use duly_core::ports::event_sink::{Delivery, Details, NotTaken};
use duly_core::ports::store::{
    CancelTasks, Control as _, HoldSinks, Outbox as _, PutSink, Result, Rules, Submit, Tasks as _,
};
use duly_core::submit::Draft;
use duly_core::task::NewTask;
use duly_core::time::Timestamp;
use duly_store::clock::ManualClock;
use duly_store::layer::{BoxFuture, Call, Layer, Layered};
use duly_store::memory::MemoryStore;
use parking_lot::Mutex;

use super::*;
use crate::events::written::Written;

const TASKS: u64 = 6;

/// Gives up the thread before and after every call, so that the caller can be dropped there.
struct Yields;

impl Layer for Yields {
    async fn call<'a, T, F>(&'a self, _: Call<'a>, inner: F) -> Result<T>
    where
        T: Send + 'static,
        F: Fn() -> BoxFuture<'a, Result<T>> + Send + Sync + 'a,
    {
        tokio::task::yield_now().await;
        let answer = inner().await;
        tokio::task::yield_now().await;
        answer
    }
}

/// Keeps what it takes, before and after its only await.
#[derive(Default)]
struct Archive(Mutex<Vec<Delivery>>);

#[async_trait]
impl EventSink for Archive {
    fn details(&self) -> Details {
        Details::Ids
    }

    async fn take(&self, events: &[Delivery]) -> std::result::Result<(), NotTaken> {
        for event in events {
            self.0.lock().push(event.clone());
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}

fn task(number: u64) -> NewTask {
    let spec = Draft { task_type: Some("t".to_owned()), ..Draft::default() }.check().unwrap();
    let at = Timestamp::from_millis(1_900_000_000_000);
    NewTask {
        id: TaskId::mint(at, 1, number),
        lane: Lane {
            tenant: TenantName::default_tenant(),
            queue: QueueName::default_queue(),
            task_type: TypeName::new("t").unwrap(),
        },
        priority: spec.priority,
        run_at: at,
        delay: None,
        retries: 0,
        back_off: duly_core::back_off::BackOff::default(),
        timeout: None,
        labels: spec.labels,
        payload: spec.payload,
        idempotency: None,
        links: None,
    }
}

/// A store with a sink, and two events of each of some tasks that it has not received.
async fn store() -> (Arc<dyn Store>, BTreeSet<(TaskId, EventKind)>) {
    let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_900_000_000_000)));
    let store = MemoryStore::new(clock, Rules::default());
    let subscriptions = vec![Subscription::to(Kinds::ALL)];
    let put = PutSink { name: name(), subscriptions, window: None };
    store.put_sink(put).await.unwrap();
    let mut expected = BTreeSet::new();
    for number in 0..TASKS {
        let new = task(number);
        let id = new.id;
        store.submit(Submit { tasks: vec![new], offer: None }).await.unwrap();
        let tenant = TenantName::default_tenant();
        let order = CancelTasks { tenant, tasks: vec![id], reason: String::new() };
        store.cancel(order).await.unwrap();
        expected.extend([(id, EventKind::TaskCreated), (id, EventKind::TaskCancelled)]);
    }
    (Arc::new(Layered::new(Yields, Arc::new(store))), expected)
}

fn name() -> SinkName {
    SinkName::new("archive").unwrap()
}

/// A courier that has just got the sink.
async fn courier(store: &Arc<dyn Store>, sink: &Arc<Archive>) -> Courier {
    let ttl = Duration::from_secs(1);
    let order = HoldSinks { node: NodeId::ONLY, ttl, names: vec![name()], most: 1 };
    let held = store.hold_sinks(order).await.unwrap().remove(0);
    Courier {
        store: Arc::clone(store),
        sink: Arc::clone(sink) as Arc<dyn EventSink>,
        listener: Written::default().listen(&**store),
        name: held.name,
        term: held.term,
        position: held.position,
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_at_any_await_it_loses_nothing_and_keeps_the_order() {
    for polls in 1..60 {
        let (store, expected) = store().await;
        let sink = Arc::<Archive>::default();
        // It is dropped at its nth await, again and again, and once it may go on.
        for _ in 0..3 {
            let mut run = pin!(courier(&store, &sink).await.run());
            let mut context = Context::from_waker(Waker::noop());
            for _ in 0..polls {
                assert_eq!(run.as_mut().poll(&mut context), Poll::Pending);
            }
        }
        let last = courier(&store, &sink).await;
        let done = async {
            while store.sinks().await.unwrap()[0].lag.rows > 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            () = last.run() => panic!("the sink is still there"),
            () = done => {}
        }
        check(&sink.0.lock(), &expected, polls);
    }
}

fn check(received: &[Delivery], expected: &BTreeSet<(TaskId, EventKind)>, polls: u32) {
    let mut ids = HashMap::new();
    let mut first = Vec::new();
    for delivery in received {
        let what = (delivery.event.task().unwrap(), delivery.event.kind);
        let known = ids.entry(delivery.id()).or_insert(what);
        assert_eq!(*known, what, "an id names one event, after {polls} awaits");
        if !first.contains(&what) {
            first.push(what);
        }
    }
    assert_eq!(first.iter().copied().collect::<BTreeSet<_>>(), *expected, "after {polls} awaits");
    assert_eq!(ids.len(), expected.len(), "an event has one id, after {polls} awaits");
    for (at, (task, kind)) in first.iter().enumerate() {
        let created = || first[..at].contains(&(*task, EventKind::TaskCreated));
        assert!(*kind == EventKind::TaskCreated || created(), "after {polls} awaits");
    }
}
