//! Reading: a transaction that writes nothing and whose statements all see one moment. It ends when
//! it is dropped, and a statement in it may take only so long as any other.
//!
//! What callers read, they read as `duly_query`, for which only the rows of their tenant exist. The
//! server takes role and tenant back when the transaction ends, however it ends.

use deadpool_postgres::{Client, GenericClient, Transaction};
use duly_core::name::TenantName;
use tokio_postgres::types::ToSql;
use tokio_postgres::{IsolationLevel, Row};

use super::error::Result;

/// What was committed at one moment.
pub(super) struct Snapshot<'a> {
    transaction: Transaction<'a>,
}

/// See `duly.limit_rows_to_tenants`.
const LIMIT: &str = "/* tenant */ SELECT set_config('duly.tenant', $1, true),
    set_config('role', 'duly_query', true)";

impl<'a> Snapshot<'a> {
    /// Of the rows of this tenant.
    pub(super) async fn of_tenant(client: &'a mut Client, tenant: &TenantName) -> Result<Self> {
        let snapshot = Self::take(client).await?;
        snapshot.query(LIMIT, &[&tenant.as_str()]).await?;
        Ok(snapshot)
    }

    /// Of all rows.
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

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Poll;

    use duly_core::id::TaskId;
    use duly_core::ports::store::Tasks as _;
    use duly_core::state::Status;
    use futures_util::future::{join_all, poll_fn};

    use super::*;
    use crate::postgres::task_state::test_rows::TestRows;

    const READS: usize = 10_000;
    const AT_A_TIME: usize = 50;

    fn tenant(name: &str) -> TenantName {
        TenantName::new(name).unwrap()
    }

    /// A read whose caller goes away after it has asked so many times.
    async fn abort(rows: &TestRows, reader: &TenantName, id: TaskId, after: usize) {
        let mut reading = pin!(rows.store.get(reader, id));
        let mut polls = 0;
        poll_fn(|context| {
            polls += 1;
            if polls > after { Poll::Ready(()) } else { reading.as_mut().poll(context).map(|_| ()) }
        })
        .await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn s03_no_connection_keeps_a_tenant_after_aborted_reads() {
        let Some(rows) = TestRows::new().await else { return };
        rows.days(1).await;
        let lane = rows.lane("email").await;
        let id = rows.task(lane, 0, 1, Status::Success).await;
        let (owner, other) = (TenantName::default_tenant(), tenant("other"));
        for batch in 0..READS / AT_A_TIME {
            let abort = |number| {
                let reader = if number % 2 == 0 { &owner } else { &other };
                abort(&rows, reader, id, (number + batch) % 7)
            };
            join_all((0..AT_A_TIME).map(abort)).await;
        }
        let mut clients = Vec::new();
        for _ in 0..super::super::pool::CONNECTIONS {
            clients.push(rows.store.pool.get().await.unwrap());
        }
        for client in &clients {
            let state = "SELECT current_setting('role'), current_setting('duly.tenant', true)";
            let row = client.query_one(state, &[]).await.unwrap();
            let (role, left): (&str, Option<&str>) = (row.get(0), row.get(1));
            assert_eq!((role, left.unwrap_or_default()), ("none", ""));
        }
        drop(clients);
        assert!(rows.store.get(&other, id).await.unwrap().is_none());
        assert!(rows.store.get(&owner, id).await.unwrap().is_some());
    }

    /// How many tasks a statement finds for another tenant that does not ask whose they are.
    #[cfg(feature = "planted-bugs")]
    async fn tasks_of_others(rows: &TestRows) -> usize {
        let pool = &rows.store.pool;
        let mut client = pool.get().await.unwrap();
        let snapshot = pool.snapshot(&mut client, &tenant("other")).await.unwrap();
        snapshot.query("SELECT FROM duly.task", &[]).await.unwrap().len()
    }

    #[cfg(feature = "planted-bugs")]
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn s03_a_forgotten_tenant_is_caught() {
        let Some(rows) = TestRows::new().await else { return };
        rows.days(1).await;
        let lane = rows.lane("email").await;
        rows.task(lane, 0, 1, Status::Success).await;
        assert_eq!(tasks_of_others(&rows).await, 0);
        drop(rows.store.clone().with_bug(crate::planted::PlantedBug::ForgottenTenant));
        assert_eq!(tasks_of_others(&rows).await, 1);
    }
}
