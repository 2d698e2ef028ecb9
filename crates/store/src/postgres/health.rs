//! The store's clock and health.

use std::time::Instant;

use async_trait::async_trait;
use deadpool_postgres::Client;
use duly_core::ports::store::{Hint, Result, Snapshots, StoreHealth};
use duly_core::time::Timestamp;

use super::error::{self, Fault};
use super::{PostgresStore, row};

/// How many connections submits may use; the others are for claims and queries.
const SUBMITS: usize = 2;
/// About a megabyte. A disk with less space is still full: it would soon be full again.
const ROOM_ROWS: u32 = 30_000;

/// A database is copied with its own tools.
impl Snapshots for PostgresStore {}

#[async_trait]
impl StoreHealth for PostgresStore {
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
        Ok(self.server_errors.note(self.probe().await)?)
    }

    async fn hint(&self) -> Hint {
        self.hints.next().await
    }

    fn submits_at_once(&self) -> usize {
        SUBMITS
    }
}

impl PostgresStore {
    /// Whether the server answers and the schema is for this node; after errors also with a real write.
    async fn probe(&self) -> error::Result<()> {
        let mut client = self.pool.look_at_schema().await?;
        if self.server_errors.is_full() {
            self.try_space(&mut client).await?;
            self.server_errors.clear_full();
        } else if self.server_errors.is_failing() {
            let note = "/* check */ UPDATE duly.node SET checked_at = duly.now() WHERE id = $1";
            client.execute(note, &[&self.id]).await?;
        }
        Ok(())
    }

    /// Writes what needs new space on the disk, and leaves nothing behind. A small write proves nothing:
    /// it fits into existing pages.
    async fn try_space(&self, client: &mut Client) -> error::Result<()> {
        let transaction = client.transaction().await?;
        // On the disk of the tables, not that of temporary files.
        let make = format!(
            "/* check */ SET LOCAL temp_tablespaces = '';
             CREATE TEMPORARY TABLE room AS SELECT generate_series(1, {ROOM_ROWS})"
        );
        match transaction.batch_execute(&make).await.map_err(Fault::from) {
            // Without the right to create one it cannot be tried; the next write shows it.
            Err(fault) if fault.is_forbidden() => {}
            made => made?,
        }
        Ok(transaction.rollback().await?)
    }
}
