//! apalis on Redis.

use apalis::prelude::*;
use apalis_redis::{Config, ConnectionManager, RedisStorage};
use futures::stream;
use peer_driver::{Part, Payload, Peer, Recorder, required};

use crate::{LONE_INTERVAL, QUEUE, VERSION, batch_size, delayed, run_worker, settings};

pub(crate) struct Redis {
    storage: RedisStorage<Payload>,
    connection: ConnectionManager,
    lock: bool,
}

pub(crate) async fn open(lock: bool) -> anyhow::Result<Redis> {
    let connection = apalis_redis::connect(required("REDIS_URL")?).await?;
    let storage = RedisStorage::new(connection.clone()).with_config(config(Part::Single, lock));
    Ok(Redis { storage, connection, lock })
}

fn config(part: Part, lock: bool) -> Config {
    Config::default().queue(QUEUE).batch_size(batch_size(part)).lock_tasks(lock)
}

impl Peer for Redis {
    type Worker = tokio::task::JoinHandle<()>;

    fn version(&self) -> &'static str {
        VERSION
    }

    fn settings(&self, part: Part) -> String {
        // Its events are only published for tasks that skip the scheduled set, and none does.
        settings(part, self.lock, None)
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
        let backend = RedisStorage::<Payload>::new(self.connection.clone())
            .with_config(config(part, self.lock))
            .poll_with_interval(LONE_INTERVAL);
        Ok(run_worker!(backend, recorder))
    }
}
