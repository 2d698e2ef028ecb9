//! Tasks inserted in any state, for tests of what is read: on as many days and in as many lanes as a
//! test wants.

use std::sync::Arc;

use duly_core::id::TaskId;
use duly_core::name::TenantName;
use duly_core::ports::clock::Clock as _;
use duly_core::ports::store::Rules;
use duly_core::state::Status;
use duly_core::time::Timestamp;
use uuid::Uuid;

use crate::conformance::Harness;
use crate::postgres::scratch::{self, Scratch};
use crate::postgres::{PostgresStore, row};

/// A store with such rows.
pub(in crate::postgres) struct TestRows {
    pub(in crate::postgres) store: PostgresStore,
    /// Noon of the first day.
    pub(in crate::postgres) noon: Timestamp,
    _scratch: Scratch,
}

pub(in crate::postgres) const DAY_MS: i64 = 24 * 60 * 60 * 1000;

impl TestRows {
    /// An empty one; nothing if there is no server.
    pub(in crate::postgres) async fn new() -> Option<Self> {
        let server = scratch::server()?;
        let clock = Arc::new(Harness::clock());
        let scratch = Scratch::fresh(&server, clock.clone()).await;
        let store = PostgresStore::open_at(&scratch.url(), Rules::default(), clock.clone()).await;
        let noon = clock.now().millis() / DAY_MS * DAY_MS + DAY_MS / 2;
        let store = store.expect("a fresh database can be opened");
        Some(Self { store, noon: Timestamp::from_millis(noon), _scratch: scratch })
    }

    /// Noon of the day after so many.
    pub(in crate::postgres) fn noon_of(&self, day: i64) -> Timestamp {
        Timestamp::from_millis(self.noon.millis() + day * DAY_MS)
    }

    /// Makes days from the first on.
    pub(in crate::postgres) async fn days(&self, count: i32) {
        let first = i32::try_from(self.noon.millis() / DAY_MS).unwrap();
        self.store.make_days((first..first + count).collect()).await.unwrap();
    }

    /// Runs a statement.
    pub(in crate::postgres) async fn run(&self, statement: &str) {
        self.store.pool.get().await.unwrap().batch_execute(statement).await.unwrap();
    }

    /// A number that a statement answers.
    pub(in crate::postgres) async fn number(&self, statement: &str) -> i64 {
        let client = self.store.pool.get().await.unwrap();
        client.query_one(statement, &[]).await.unwrap().get(0)
    }

    /// Adds a lane of the default tenant.
    pub(in crate::postgres) async fn lane(&self, task_type: &str) -> i32 {
        self.lane_of(TenantName::default_tenant().as_str(), task_type).await
    }

    /// Adds a lane of a tenant.
    pub(in crate::postgres) async fn lane_of(&self, tenant: &str, task_type: &str) -> i32 {
        let insert = "INSERT INTO duly.lane (tenant, queue, type) VALUES ($1, 'default', $2)
            RETURNING id";
        let client = self.store.pool.get().await.unwrap();
        client.query_one(insert, &[&tenant, &task_type]).await.unwrap().get(0)
    }

    /// Gives each task that failed its dead letter.
    pub(in crate::postgres) async fn bury_failed(&self) {
        self.run(
            "INSERT INTO duly.dlq (task, failed_at, lane, error_group)
             SELECT id, finished_at, lane, 0 FROM duly.task WHERE status = 4",
        )
        .await;
    }

    /// Adds a task that was first due at noon of a day, and ended right then if it has ended.
    pub(in crate::postgres) async fn task(
        &self,
        lane: i32,
        day: i64,
        number: u32,
        status: Status,
    ) -> TaskId {
        let noon = self.noon_of(day);
        let id = TaskId::mint(noon, number, 7);
        let insert = "INSERT INTO duly.task (id, run_at, created_at, finished_at, epoch, lane, run,
                charged, retries, losses, status, rank, payload)
            VALUES ($1, $2, $2, $3, 1, $4, 1, 0, 3, 0, $5, 4, 'null')";
        let ended = status.is_terminal().then(|| noon.millis());
        let status = row::encode_status(status);
        let client = self.store.pool.get().await.unwrap();
        let key: Uuid = row::uuid(id);
        client.execute(insert, &[&key, &noon.millis(), &ended, &lane, &status]).await.unwrap();
        id
    }
}
