//! The store's own state.

use std::sync::atomic::Ordering;

use async_trait::async_trait;
use duly_core::ports::store::{Hint, Pulse, Result};
use duly_core::time::Timestamp;

use super::error::{self, Fault};
use super::{PostgresStore, row};

/// Of the connections; the others are for claims and for questions.
const SUBMITS: usize = 2;

#[async_trait]
impl Pulse for PostgresStore {
    async fn now(&self) -> Result<Timestamp> {
        if let Some(clock) = self.pool.clock() {
            return Ok(clock.now());
        }
        if let Some(now) = self.clock.known() {
            return Ok(row::instant(now));
        }
        let client = self.pool.get().await?;
        let now = async {
            let statement = client.prepare_cached("/* now */ SELECT duly.now()").await?;
            client.query_one(&statement, &[]).await?.try_get(0)
        };
        let now = now.await.map_err(Fault::from)?;
        self.clock.learn(now);
        Ok(row::instant(now))
    }

    async fn check(&self) -> Result<()> {
        let asked = self.probe(self.troubled.load(Ordering::Relaxed)).await;
        Ok(self.noting_trouble(asked)?)
    }

    async fn hint(&self) -> Hint {
        self.hints.next().await
    }

    fn submits_at_once(&self) -> usize {
        SUBMITS
    }
}

impl PostgresStore {
    /// Whether the server answers; with a real write if it should show that it takes them.
    async fn probe(&self, write: bool) -> error::Result<()> {
        let client = self.pool.get().await?;
        if write {
            let note = "/* check */ UPDATE duly.node SET checked_at = duly.now() WHERE id = $1";
            client.execute(note, &[&self.id]).await?;
        } else {
            client.batch_execute("/* check */").await?;
        }
        Ok(())
    }

    /// Remembers whether the store did what it was asked.
    pub(super) fn noting_trouble<T>(&self, answer: error::Result<T>) -> error::Result<T> {
        let troubled = answer.as_ref().is_err_and(Fault::is_environment);
        self.troubled.store(troubled, Ordering::Relaxed);
        answer
    }
}
