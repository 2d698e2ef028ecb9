//! apalis on SQLite. Its `setup` switches `synchronous` off: a power failure loses what it has
//! acknowledged, and may damage the file.

use apalis::prelude::*;
use apalis_sqlite::callback::HookCallbackListener;
use apalis_sqlite::{Config, SqlitePool, SqliteStorage};
use futures::{StreamExt as _, stream};
use peer_driver::{Part, Payload, Peer, Recorder, required};

use crate::{INTERVAL, QUEUE, VERSION, batch_size, delayed, run_worker, settings};

pub(crate) struct Sqlite {
    storage: SqliteStorage<Payload>,
    pool: SqlitePool,
    listener: HookCallbackListener,
    lock: bool,
}

pub(crate) async fn open(lock: bool) -> anyhow::Result<Sqlite> {
    let url = format!("sqlite://{}/apalis.db?mode=rwc", required("PEER_DATA")?);
    let (pool, listener) = SqliteStorage::connect_with_callback(&url)?;
    SqliteStorage::setup(&pool).await?;
    let storage = SqliteStorage::new(&pool).with_config(config(Part::Single, lock));
    Ok(Sqlite { storage, pool, listener, lock })
}

fn config(part: Part, lock: bool) -> Config {
    Config::default().queue(QUEUE).batch_size(batch_size(part)).lock_tasks(lock)
}

impl Peer for Sqlite {
    type Worker = tokio::task::JoinHandle<()>;

    fn version(&self) -> &'static str {
        VERSION
    }

    fn settings(&self, part: Part) -> String {
        let tuned = if self.lock { "" } else { ", ANALYZE after the backlog" };
        settings(part, self.lock, Some("update hook"))
            + ", synchronous OFF (its own set-up)"
            + tuned
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
        if part == Part::Backlog && !self.lock {
            sqlx::query("ANALYZE").execute(&self.pool).await?;
        }
        // In chunks, as its README has it: a strategy takes one item in each poll and then skips
        // the interval, so that single events of a burst would keep it from being armed.
        let events = self.listener.clone().ready_chunks(batch_size(part));
        let strategy = Strategy::new().stream(events).interval(INTERVAL);
        let backend = SqliteStorage::<Payload>::new(&self.pool)
            .with_config(config(part, self.lock))
            .poll_with_strategy(strategy);
        Ok(run_worker!(backend, recorder))
    }
}
