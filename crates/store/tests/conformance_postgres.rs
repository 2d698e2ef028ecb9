//! PostgreSQL against the suite.

#![expect(clippy::unwrap_used, reason = "a backend that cannot be made fails its case")]

use std::sync::Arc;

use async_trait::async_trait;
use duly_core::ports::store::{Ending, Home, Rules, Sessions as _, Store};
use duly_store::clock::ManualClock;
use duly_store::conformance::lossy::LosingAnswers;
use duly_store::conformance::{Backend, Harness};
use duly_store::postgres::PostgresStore;
use duly_store::postgres::scratch::{self, Scratch};

struct Postgres {
    clock: Arc<ManualClock>,
    store: Arc<PostgresStore>,
    scratch: Scratch,
}

impl Postgres {
    /// Nothing if there is no server to test on.
    async fn new() -> Option<Self> {
        let server = scratch::server()?;
        let clock = Arc::new(Harness::clock());
        let scratch = Scratch::new(&server, clock.clone()).await;
        let store = open(&scratch, &clock).await;
        Some(Self { clock, store, scratch })
    }
}

async fn open(scratch: &Scratch, clock: &Arc<ManualClock>) -> Arc<PostgresStore> {
    let opened = PostgresStore::open_at(&scratch.url(), Rules::default(), clock.clone()).await;
    Arc::new(opened.unwrap())
}

#[async_trait]
impl Backend for Postgres {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    fn clock(&self) -> &ManualClock {
        &self.clock
    }

    /// The node is gone without a word, and another one sees that its workers' beats have stopped.
    async fn crash(&mut self) {
        self.store = open(&self.scratch, &self.clock).await;
        for session in self.store.sessions().await.unwrap() {
            if session.opened.home == Home::Local {
                let died = Ending::Died { beat: session.beat };
                self.store.end_session(session.opened.id, died).await.unwrap();
            }
        }
    }

    fn outlives_nodes(&self) -> bool {
        true
    }
}

/// The backend, or the end of the case if there is no server.
macro_rules! postgres {
    () => {
        match Postgres::new().await {
            Some(backend) => backend,
            None => return,
        }
    };
}

duly_store::conformance!(postgres, postgres!());
duly_store::conformance!(postgres_losing_answers, LosingAnswers(postgres!()));
