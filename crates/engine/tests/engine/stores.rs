//! The stores that the engine's tests run on. Each test runs on the memory store in paused time. Most
//! run again on every store with all hints lost: hints save time, and nothing may depend on them.
//! PostgreSQL is left out where `DULY_TEST_POSTGRES` names no server and `CI` is not `true`.

#![expect(clippy::unwrap_used, reason = "a store that cannot be opened fails its test")]

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::sync::{Arc, mpsc};

use duly_core::ports::clock::Clock;
use duly_core::ports::store::{Hint, Result, Rules, Store};
use duly_core::time::Timestamp;
use duly_store::layer::{BoxFuture, Call, Layer, Layered};
use duly_store::memory::MemoryStore;
use duly_store::postgres::PostgresStore;
use duly_store::postgres::scratch::{self, Scratch};
use duly_store::sqlite::SqliteStore;
use tokio::runtime::{Handle, Runtime};
use tokio::time::Instant;

/// A store that tests run on with all hints lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Memory,
    Sqlite,
    Postgres,
}

/// What must outlive a store.
pub(crate) enum Files {
    None,
    Directory(#[expect(dead_code, reason = "it is removed on drop")] tempfile::TempDir),
    Database(#[expect(dead_code, reason = "it is released on drop")] Box<(Scratch, Server)>),
}

thread_local! {
    /// The store that this test loses the hints of, if it does.
    static LOSING: Cell<Option<Kind>> = const { Cell::new(None) };
}

/// Runs a test again on this store, with all hints lost.
pub(crate) fn lose_hints(kind: Kind, test: fn()) {
    if kind == Kind::Postgres && scratch::server().is_none() {
        return;
    }
    LOSING.set(Some(kind));
    let _reset = Reset;
    test();
}

/// Ends the losses also where a test fails: the thread may run another one.
struct Reset;

impl Drop for Reset {
    fn drop(&mut self) {
        LOSING.set(None);
    }
}

/// Makes tests of this module again with all hints lost: those behind `all` on every store, those
/// behind `one_process` on stores that one process has for itself, and those behind `memory` on the
/// memory store alone. They pass more time than the other stores can in a few seconds, or count calls
/// whose number depends on how fast a store answers.
macro_rules! with_lost_hints {
    (all: $($all:ident),* $(; one_process: $($single:ident),*)? $(; memory: $($long:ident),*)?) => {
        mod lost_hints {
            crate::stores::on_store!(memory, Memory: $($all,)* $($($single,)*)? $($($long,)*)?);
            crate::stores::on_store!(sqlite, Sqlite: $($all,)* $($($single,)*)?);
            crate::stores::on_store!(postgres, Postgres: $($all,)*);
        }
    };
}

/// The tests of [`with_lost_hints!`] for one store.
macro_rules! on_store {
    ($module:ident, $kind:ident: $($test:ident,)*) => {
        mod $module {
            $(
                #[test]
                fn $test() {
                    let kind = crate::stores::Kind::$kind;
                    crate::stores::lose_hints(kind, super::super::$test);
                }
            )*
        }
    };
}

pub(crate) use {on_store, with_lost_hints};

/// The store that this test runs on.
pub(crate) async fn open() -> (Arc<dyn Store>, Files) {
    match LOSING.get() {
        None => (Arc::new(memory()), Files::None),
        Some(kind) => open_losing_hints(kind).await,
    }
}

/// The kind of store that this test runs on.
pub(crate) fn current() -> Kind {
    LOSING.get().unwrap_or(Kind::Memory)
}

/// A store whose hints are all lost.
pub(crate) async fn open_losing_hints(kind: Kind) -> (Arc<dyn Store>, Files) {
    let (store, files): (Arc<dyn Store>, Files) = match kind {
        Kind::Memory => (Arc::new(memory()), Files::None),
        Kind::Sqlite => {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("duly.db");
            let store = SqliteStore::open(&path, clock(), Rules::default()).unwrap();
            let store = Layered::new(HoldsTime { runtime: None }, Arc::new(store));
            (Arc::new(store), Files::Directory(directory))
        }
        Kind::Postgres => {
            let server = Server::new();
            let opened = server.runtime().spawn(postgres(clock()));
            let (store, scratch) = while_time_stands(opened).await.unwrap();
            let holds_time = HoldsTime { runtime: Some(server.runtime().handle().clone()) };
            let store = Layered::new(holds_time, Arc::new(store));
            (Arc::new(store), Files::Database(Box::new((scratch, server))))
        }
    };
    (losing_hints(store), files)
}

pub(crate) fn losing_hints(store: Arc<dyn Store>) -> Arc<dyn Store> {
    Arc::new(Layered::new(LosesHints, store))
}

pub(crate) fn memory() -> MemoryStore {
    MemoryStore::new(clock(), Rules::default())
}

async fn postgres(clock: Arc<dyn Clock>) -> (PostgresStore, Scratch) {
    let server = scratch::server().expect("looked for before");
    let scratch = Scratch::new(&server, clock.clone()).await;
    let store = PostgresStore::open_at(&scratch.url(), Rules::default(), clock).await;
    (store.unwrap(), scratch)
}

/// Follows the time of a tokio runtime, which tests pause, also on threads outside of it.
struct TokioClock {
    runtime: Handle,
    start: Instant,
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        let _inside = self.runtime.enter();
        Timestamp::from_millis(1_900_000_000_000).plus(self.start.elapsed())
    }
}

fn clock() -> Arc<dyn Clock> {
    let runtime = Handle::current();
    Arc::new(TokioClock { runtime, start: Instant::now() })
}

/// Makes every call and loses every hint.
struct LosesHints;

impl Layer for LosesHints {
    fn call<'a, T, F>(
        &'a self,
        _: Call<'a>,
        inner: F,
    ) -> impl Future<Output = Result<T>> + Send + 'a
    where
        T: Send + 'static,
        F: Fn() -> BoxFuture<'a, Result<T>> + Send + Sync + 'a,
    {
        inner()
    }

    fn hint<'a>(&'a self, _: &'a dyn Store) -> BoxFuture<'a, Hint> {
        Box::pin(std::future::pending())
    }

    fn revocation<'a>(&'a self, _: &'a dyn Store) -> BoxFuture<'a, ()> {
        Box::pin(std::future::pending())
    }

    fn event_hint<'a>(&'a self, _: &'a dyn Store) -> BoxFuture<'a, ()> {
        Box::pin(std::future::pending())
    }
}

/// The runtime of a store that has connections to keep: its time is never paused, or connections would
/// run into their timeouts whenever a test waits.
pub(crate) struct Server(Option<Runtime>);

impl Server {
    fn new() -> Self {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        Self(Some(builder.worker_threads(1).enable_all().build().unwrap()))
    }

    fn runtime(&self) -> &Runtime {
        self.0.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Waiting for its tasks is forbidden inside another runtime.
        self.0.take().expect("dropped once").shutdown_background();
    }
}

/// Keeps paused time from passing during calls. Tokio moves it on whenever nothing is left to do in
/// the runtime, also while a call waits for another thread or for a server.
struct HoldsTime {
    /// Where calls are made, if not in the runtime of the test.
    runtime: Option<Handle>,
}

impl Layer for HoldsTime {
    async fn call<'a, T, F>(&'a self, _: Call<'a>, inner: F) -> Result<T>
    where
        T: Send + 'static,
        F: Fn() -> BoxFuture<'a, Result<T>> + Send + Sync + 'a,
    {
        let mut work = inner();
        let inside = poll_fn(|context| {
            let _inside = self.runtime.as_ref().map(Handle::enter);
            work.as_mut().poll(context)
        });
        while_time_stands(inside).await
    }
}

/// Tokio leaves paused time alone while a blocking task runs.
async fn while_time_stands<T>(work: impl Future<Output = T>) -> T {
    let (_ends_on_drop, ended) = mpsc::channel::<()>();
    drop(tokio::task::spawn_blocking(move || ended.recv()));
    work.await
}
