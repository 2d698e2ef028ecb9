//! Reading: a transaction that writes nothing and whose statements all see one moment. It ends when
//! it is dropped, and a statement in it may take only so long as any other.

use deadpool_postgres::{Client, GenericClient, Transaction};
use tokio_postgres::types::ToSql;
use tokio_postgres::{IsolationLevel, Row};

use super::error::Result;

/// What was committed at one moment.
pub(super) struct Snapshot<'a> {
    transaction: Transaction<'a>,
}

impl<'a> Snapshot<'a> {
    pub(super) async fn take(client: &'a mut Client) -> Result<Self> {
        let builder = client.build_transaction();
        let builder = builder.isolation_level(IsolationLevel::RepeatableRead).read_only(true);
        Ok(Self { transaction: builder.start().await? })
    }
}

impl Snapshot<'_> {
    /// Rows of a statement.
    pub(super) async fn query(
        &self,
        statement: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>> {
        let statement = self.transaction.prepare_cached(statement).await?;
        Ok(self.transaction.query(&statement, parameters).await?)
    }

    /// For what reads without knowing of it.
    pub(super) fn client(&self) -> &impl GenericClient {
        &self.transaction
    }

    /// The row of a statement that has one at the most.
    pub(super) async fn query_opt(
        &self,
        statement: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Option<Row>> {
        let statement = self.transaction.prepare_cached(statement).await?;
        Ok(self.transaction.query_opt(&statement, parameters).await?)
    }
}
