//! A point at which calls of nodes are held until all of them are there.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::interval;
use tokio_postgres::Client;

use crate::world::World;

/// A transaction that holds a lock which calls wait for.
pub(crate) struct Gate {
    client: Client,
    /// In no transaction: the server shows the same all through one.
    watcher: Client,
    _drivers: [JoinSet<()>; 2],
}

impl Gate {
    pub(crate) async fn new(world: &World) -> Self {
        let ((client, driver), (watcher, other)) =
            (world.scratch.connect().await, world.scratch.connect().await);
        Self { client, watcher, _drivers: [driver, other] }
    }

    /// Begins a transaction and takes a lock by this statement.
    pub(crate) async fn shut(&self, lock: &str) {
        self.client.batch_execute(&format!("BEGIN; {lock}")).await.unwrap();
    }

    /// Waits until so many statements of nodes are held by it; tells whether they came.
    pub(crate) async fn holds(&self, calls: i64) -> bool {
        let held = "SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0";
        let (start, mut ticks) = (Instant::now(), interval(Duration::from_millis(2)));
        // Less than the nodes wait for a lock.
        while start.elapsed() < Duration::from_secs(2) {
            let now: i64 = self.watcher.query_one(held, &[]).await.unwrap().get(0);
            if now >= calls {
                return true;
            }
            ticks.tick().await;
        }
        false
    }

    /// Lets them go on.
    pub(crate) async fn open(&self) {
        self.client.batch_execute("COMMIT").await.unwrap();
    }

    /// The same after one more statement.
    pub(crate) async fn open_after(&self, statement: &str) {
        self.client.batch_execute(&format!("{statement}; COMMIT")).await.unwrap();
    }

    /// Ends the connections of those that it holds, as a restart of the server does.
    pub(crate) async fn cut(&self) {
        let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
            WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0";
        let ended: i64 = self.watcher.query_one(end, &[]).await.unwrap().get(0);
        assert!(ended > 0, "a statement waits");
    }

    /// The number that a statement answers with.
    pub(crate) async fn count(&self, select: &str) -> i64 {
        self.watcher.query_one(select, &[]).await.unwrap().get(0)
    }
}
