//! Every store against the suite.

#![expect(clippy::unwrap_used, reason = "a backend that cannot be made fails its case")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use duly_core::ports::store::{Rules, Store};
use duly_store::clock::ManualClock;
use duly_store::conformance::lossy::LosingAnswers;
use duly_store::conformance::{Backend, Harness};
use duly_store::memory::MemoryStore;
use duly_store::sqlite::SqliteStore;

struct Memory {
    clock: Arc<ManualClock>,
    store: Arc<MemoryStore>,
}

impl Memory {
    fn new() -> Self {
        let clock = Arc::new(Harness::clock());
        Self { store: Arc::new(MemoryStore::new(clock.clone(), Rules::default())), clock }
    }
}

#[async_trait]
impl Backend for Memory {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    fn clock(&self) -> &ManualClock {
        &self.clock
    }

    async fn crash(&mut self) {
        self.store = Arc::new(self.store.after_crash());
    }
}

struct Sqlite {
    clock: Arc<ManualClock>,
    path: PathBuf,
    store: Option<Arc<SqliteStore>>,
    _directory: tempfile::TempDir,
}

impl Sqlite {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("duly.db");
        let clock = Arc::new(Harness::clock());
        let store = Some(open(&path, &clock));
        Self { clock, path, store, _directory: directory }
    }
}

fn open(path: &Path, clock: &Arc<ManualClock>) -> Arc<SqliteStore> {
    Arc::new(SqliteStore::open(path, clock.clone(), Rules::default()).unwrap())
}

#[async_trait]
impl Backend for Sqlite {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone().unwrap()
    }

    fn clock(&self) -> &ManualClock {
        &self.clock
    }

    async fn crash(&mut self) {
        // Nothing is ended or handed back; the file is left as a dead process leaves it.
        self.store = None;
        self.store = Some(open(&self.path, &self.clock));
    }
}

duly_store::conformance!(memory, Memory::new());
duly_store::conformance!(sqlite, Sqlite::new());
duly_store::conformance!(memory_losing_answers, LosingAnswers(Memory::new()));
duly_store::conformance!(sqlite_losing_answers, LosingAnswers(Sqlite::new()));
