//! The store's own state.

use std::time::Instant;

use async_trait::async_trait;
use deadpool_postgres::Client;
use duly_core::ports::store::{Hint, Pulse, Result, Snapshots};
use duly_core::time::Timestamp;

use super::error::{self, Fault};
use super::{PostgresStore, row};

/// Of the connections; the others are for claims and for questions.
const SUBMITS: usize = 2;
/// About a megabyte. A disk with less is still full: it would soon be so again.
const ROOM_ROWS: u32 = 30_000;

/// A database is copied with its own tools.
impl Snapshots for PostgresStore {}

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
        let sent = Instant::now();
        let now = async {
            let statement = client.prepare_cached("/* now */ SELECT duly.now()").await?;
            client.query_one(&statement, &[]).await?.try_get(0)
        };
        let now = now.await.map_err(Fault::from)?;
        self.clock.learn(now, sent);
        Ok(row::instant(now))
    }

    async fn check(&self) -> Result<()> {
        Ok(self.trouble.noting(self.probe().await)?)
    }

    async fn hint(&self) -> Hint {
        self.hints.next().await
    }

    fn submits_at_once(&self) -> usize {
        SUBMITS
    }
}

impl PostgresStore {
    /// Whether the server answers and the schema is for this node; after trouble with a real write.
    async fn probe(&self) -> error::Result<()> {
        let mut client = self.pool.look_at_schema().await?;
        if self.trouble.is_full() {
            self.make_room(&mut client).await?;
            self.trouble.has_room();
        } else if self.trouble.is_there() {
            let note = "/* check */ UPDATE duly.node SET checked_at = duly.now() WHERE id = $1";
            client.execute(note, &[&self.id]).await?;
        }
        Ok(())
    }

    /// Writes what needs new room on the disk, and leaves nothing behind. Small writes tell nothing:
    /// they find a place on pages that are there.
    async fn make_room(&self, client: &mut Client) -> error::Result<()> {
        let transaction = client.transaction().await?;
        // Where the tables are, and not where large sorts go.
        let make = format!(
            "/* check */ SET LOCAL temp_tablespaces = '';
             CREATE TEMPORARY TABLE room AS SELECT generate_series(1, {ROOM_ROWS})"
        );
        match transaction.batch_execute(&make).await.map_err(Fault::from) {
            // Who may not make one cannot tell; the next write that finds no room will.
            Err(fault) if fault.is_forbidden() => {}
            made => made?,
        }
        Ok(transaction.rollback().await?)
    }
}
