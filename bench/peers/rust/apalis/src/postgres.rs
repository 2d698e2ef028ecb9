//! apalis on PostgreSQL.

use apalis::prelude::*;
use apalis_postgres::{Config, PgPool, PostgresStorage};
use futures::stream;
use peer_driver::{Part, Payload, Peer, Recorder, required};

use crate::{INTERVAL, QUEUE, VERSION, batch_size, delayed, run_worker, settings};

pub(crate) struct Postgres {
    storage: PostgresStorage<Payload>,
    lock: bool,
}

pub(crate) async fn open(lock: bool) -> anyhow::Result<Postgres> {
    let pool = PgPool::connect(&required("DATABASE_URL")?).await?;
    PostgresStorage::setup(&pool).await?;
    let storage = PostgresStorage::new(&pool).with_config(config(Part::Single, lock));
    Ok(Postgres { storage, lock })
}

fn config(part: Part, lock: bool) -> Config {
    Config::default().queue(QUEUE).batch_size(batch_size(part)).lock_tasks(lock)
}

impl Peer for Postgres {
    type Worker = tokio::task::JoinHandle<()>;

    fn version(&self) -> &'static str {
        VERSION
    }

    fn settings(&self, part: Part) -> String {
        settings(part, self.lock, Some("NOTIFY"))
    }

    async fn submit(&mut self, task: Payload) -> anyhow::Result<()> {
        Ok(self.storage.push(task).await?)
    }

    async fn submit_bulk(&mut self, tasks: Vec<Payload>) -> anyhow::Result<()> {
        Ok(self.storage.push_bulk(tasks).await?)
    }

    async fn submit_delayed(&mut self, tasks: Vec<Payload>) -> anyhow::Result<()> {
        Ok(self.storage.push_all(stream::iter(tasks.into_iter().map(delayed))).await?)
    }

    async fn work(&mut self, part: Part, recorder: Recorder) -> anyhow::Result<Self::Worker> {
        let backend = PostgresStorage::<Payload>::new(self.storage.pool())
            .with_config(config(part, self.lock))
            .with_pubsub()
            .poll_with_interval(INTERVAL);
        Ok(run_worker!(backend, recorder))
    }
}
