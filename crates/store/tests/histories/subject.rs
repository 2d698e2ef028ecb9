//! The stores that are compared with the model, and what a crash is to each.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use duly_core::ports::store::{Ending, Home, Sessions as _, Store};
use duly_store::clock::ManualClock;
use duly_store::memory::MemoryStore;
use duly_store::postgres::PostgresStore;
use duly_store::postgres::scratch::{self, Scratch};
use duly_store::sqlite::SqliteStore;
use tempfile::TempDir;

use crate::known::Known;
use crate::world::RULES;

/// A store that is compared with the model.
#[async_trait]
pub(crate) trait Subject: Send + Sync + Sized + 'static {
    const NAME: &str;

    /// An empty one on this clock.
    async fn new(clock: &Arc<ManualClock>) -> Self;

    fn store(&self) -> Arc<dyn Store>;

    /// Ends the process that has it open, without warning, and opens it again.
    async fn crash(&mut self, clock: &Arc<ManualClock>);

    /// What the same does to the model.
    async fn crash_model(&self, model: &Arc<MemoryStore>, known: &Known) -> Arc<MemoryStore>;
}

pub(crate) struct Sqlite {
    store: Option<Arc<SqliteStore>>,
    path: PathBuf,
    _directory: TempDir,
}

#[async_trait]
impl Subject for Sqlite {
    const NAME: &str = "sqlite";

    async fn new(clock: &Arc<ManualClock>) -> Self {
        let directory = directory();
        let path = directory.path().join("duly.db");
        std::fs::write(&path, empty_file(clock)).unwrap();
        Self { store: Some(open(&path, clock)), path, _directory: directory }
    }

    fn store(&self) -> Arc<dyn Store> {
        self.store.clone().expect("it is open")
    }

    async fn crash(&mut self, clock: &Arc<ManualClock>) {
        // Nothing is ended or handed back; the file is left as a dead process leaves it.
        self.store = None;
        self.store = Some(open(&self.path, clock));
    }

    async fn crash_model(&self, model: &Arc<MemoryStore>, _: &Known) -> Arc<MemoryStore> {
        Arc::new(model.after_crash())
    }
}

fn open(path: &Path, clock: &Arc<ManualClock>) -> Arc<SqliteStore> {
    Arc::new(SqliteStore::open(path, clock.clone(), RULES).unwrap())
}

/// Where files cost no disk, if there is such a place: a sync per commit is not what is tested.
fn directory() -> TempDir {
    let shared = Path::new("/dev/shm");
    if shared.is_dir() { tempfile::tempdir_in(shared) } else { tempfile::tempdir() }.unwrap()
}

/// The file of an empty store: copying it is faster than making it.
fn empty_file(clock: &Arc<ManualClock>) -> &'static [u8] {
    static FILE: OnceLock<Vec<u8>> = OnceLock::new();
    FILE.get_or_init(|| {
        let directory = directory();
        let path = directory.path().join("duly.db");
        drop(open(&path, clock));
        std::fs::read(path).unwrap()
    })
}

pub(crate) struct Postgres {
    store: Arc<PostgresStore>,
    scratch: Scratch,
}

#[async_trait]
impl Subject for Postgres {
    const NAME: &str = "postgres";

    async fn new(clock: &Arc<ManualClock>) -> Self {
        let server = scratch::server().expect("looked for before");
        let scratch = Scratch::new(&server, clock.clone()).await;
        Self { store: connect(&scratch, clock).await, scratch }
    }

    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    /// A node is gone without a word, and another one sees that its workers' beats have stopped.
    async fn crash(&mut self, clock: &Arc<ManualClock>) {
        self.store = connect(&self.scratch, clock).await;
        for session in self.store.sessions().await.unwrap() {
            if session.opened.home == Home::Local {
                let died = Ending::Died { beat: session.beat };
                self.store.end_session(session.opened.id, died).await.unwrap();
            }
        }
    }

    async fn crash_model(&self, model: &Arc<MemoryStore>, known: &Known) -> Arc<MemoryStore> {
        for worker in known.workers.iter().filter(|worker| !worker.remote) {
            let died = Ending::Died { beat: worker.beats };
            model.end_session(worker.id, died).await.unwrap();
        }
        Arc::clone(model)
    }
}

async fn connect(scratch: &Scratch, clock: &Arc<ManualClock>) -> Arc<PostgresStore> {
    Arc::new(PostgresStore::open_at(&scratch.url(), RULES, clock.clone()).await.unwrap())
}
