//! What runs in a transaction: one file per verb. A verb may be run again after a rollback, so it
//! changes nothing but the database; what this node must know is applied after the commit.

pub(super) mod delete;
pub(super) mod expire;
mod log;
pub(super) mod pause;
mod progress;
mod put_settings;
mod report;

use std::future::Future;

use duly_core::time::Timestamp;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::PostgresStore;
use super::error::Result;
use super::row;
use super::wakes::Wakes;

/// How often a transaction is tried that others get in the way of.
const TRIES: u32 = 5;

/// What a verb works on.
pub(super) struct Scope<'a> {
    pub(super) store: &'a PostgresStore,
    transaction: deadpool_postgres::Transaction<'a>,
    /// The store's time; the same for everything in the transaction.
    pub(super) now: Timestamp,
    /// What waits from now on, for after the commit.
    pub(super) wakes: Wakes,
}

/// One thing to do in a transaction.
pub(super) trait Verb: Sync {
    type Answer: Send;

    fn apply(&self, scope: &mut Scope<'_>) -> impl Future<Output = Result<Self::Answer>> + Send;
}

impl Scope<'_> {
    /// Rows of a statement. Its plan is kept with the connection.
    pub(super) async fn query(
        &self,
        statement: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>> {
        let statement = self.transaction.prepare_cached(statement).await?;
        Ok(self.transaction.query(&statement, parameters).await?)
    }

    /// How many rows a statement has changed.
    pub(super) async fn execute(
        &self,
        statement: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<u64> {
        let statement = self.transaction.prepare_cached(statement).await?;
        Ok(self.transaction.execute(&statement, parameters).await?)
    }

    /// For whoever reads beside the verbs.
    pub(super) fn transaction(&self) -> &impl tokio_postgres::GenericClient {
        &*self.transaction
    }
}

impl PostgresStore {
    /// Runs a verb in a transaction of its own.
    pub(super) async fn run<V: Verb>(&self, verb: &V) -> Result<V::Answer> {
        let mut tries = 1;
        loop {
            match self.run_once(verb).await {
                Err(fault) if fault.is_collision() && tries < TRIES => tries += 1,
                answer => return self.noting_trouble(answer),
            }
        }
    }

    async fn run_once<V: Verb>(&self, verb: &V) -> Result<V::Answer> {
        let mut client = self.pool.get().await?;
        let transaction = client.transaction().await?;
        let now = transaction.prepare_cached("/* now */ SELECT duly.now()").await?;
        let now = row::instant(transaction.query_one(&now, &[]).await?.try_get(0)?);
        let mut scope = Scope { store: self, transaction, now, wakes: Wakes::default() };
        let answer = verb.apply(&mut scope).await?;
        scope.transaction.commit().await?;
        self.wake(scope.wakes);
        Ok(answer)
    }
}
