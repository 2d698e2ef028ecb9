//! Drives River for Rust (crate riverqueue) on PostgreSQL and SQLite. Settings and where they are
//! recommended:
//!
//! | setting | source |
//! |---|---|
//! | backlog: 2,000 workers, fetch cooldown 2 ms, poll 20 ms, 50 connections | `riverqueue bench` of riverqueue-cli, its defaults |
//! | idle and delayed: 100 workers, cooldown and poll as they are by default | crate documentation, `QueueConfig::new` |
//! | SQLite: WAL, busy timeout 5 s, 5 connections | README of riverqueue, "Database support" |

use std::str::FromStr as _;
use std::time::Duration;

use anyhow::Context as _;
use peer_driver::{Order, Part, Payload, Peer, Recorder, measure, required};
use riverqueue::jiff::Timestamp;
use riverqueue::migrate::{PostgresMigrator, SqliteMigrator};
use riverqueue::sqlx::postgres::{PgPool, PgPoolOptions};
use riverqueue::sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions,
};
use riverqueue::{
    BoxError, Client, ClientBuilder, InsertOpts, Job, JobArgs, QUEUE_DEFAULT, QueueConfig,
    RunHandle, WorkContext, WorkOutcome, Workers,
};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Deserialize, JobArgs, Serialize)]
#[river(kind = "noop")]
struct NoOp {
    #[serde(flatten)]
    task: Payload,
}

enum Pool {
    Postgres(PgPool),
    Sqlite(SqlitePool),
}

struct River {
    pool: Pool,
    /// Only inserts.
    client: Client,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let order = Order::from_args()?;
    let pool = match order.peer.as_str() {
        "river-postgres" => postgres().await?,
        "river-sqlite" => sqlite().await?,
        other => anyhow::bail!("no peer {other}"),
    };
    let client = builder(&pool).build()?;
    measure(&order, River { pool, client }).await
}

async fn postgres() -> anyhow::Result<Pool> {
    let url = required("DATABASE_URL")?;
    let pool = PgPoolOptions::new().max_connections(50).connect(&url).await?;
    PostgresMigrator::new(pool.clone()).migrate_up().await?;
    Ok(Pool::Postgres(pool))
}

async fn sqlite() -> anyhow::Result<Pool> {
    let file = format!("sqlite://{}/river.db", required("PEER_DATA")?);
    let options = SqliteConnectOptions::from_str(&file)?
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .busy_timeout(Duration::from_secs(5));
    let pool = SqlitePoolOptions::new().max_connections(5).connect_with(options).await?;
    SqliteMigrator::new(pool.clone()).migrate_up().await?;
    Ok(Pool::Sqlite(pool))
}

fn builder(pool: &Pool) -> ClientBuilder {
    match pool {
        Pool::Postgres(pool) => Client::builder(pool.clone()),
        Pool::Sqlite(pool) => Client::builder(pool.clone()),
    }
}

fn queue(part: Part) -> QueueConfig {
    if part == Part::Backlog {
        QueueConfig::new(2000)
            .with_fetch_cooldown(Duration::from_millis(2))
            .with_fetch_poll_interval(Duration::from_millis(20))
    } else {
        QueueConfig::new(100)
    }
}

impl Peer for River {
    type Worker = RunHandle;

    fn version(&self) -> &'static str {
        "0.5.0"
    }

    fn settings(&self, part: Part) -> String {
        let store = match self.pool {
            Pool::Postgres(_) => "50 connections",
            Pool::Sqlite(_) => "WAL, synchronous as SQLite has it (FULL), 5 connections",
        };
        let queue = if part == Part::Backlog {
            "2000 workers, cooldown 2 ms, poll 20 ms"
        } else {
            "100 workers, cooldown 100 ms, poll 1 s"
        };
        format!("{queue}, {store}")
    }

    async fn submit(&mut self, task: Payload) -> anyhow::Result<()> {
        self.client.insert(NoOp { task }).await?;
        Ok(())
    }

    async fn submit_bulk(&mut self, tasks: Vec<Payload>) -> anyhow::Result<()> {
        self.client.insert_many(tasks.into_iter().map(|task| NoOp { task })).await?;
        Ok(())
    }

    async fn submit_delayed(&mut self, tasks: Vec<Payload>) -> anyhow::Result<()> {
        let jobs = tasks.into_iter().map(|task| {
            let due = Timestamp::try_from(task.due()).context("a due time")?;
            Ok((NoOp { task }, InsertOpts::default().with_scheduled_at(due)))
        });
        let jobs = jobs.collect::<anyhow::Result<Vec<_>>>()?;
        self.client.insert_many(jobs).await?;
        Ok(())
    }

    async fn work(&mut self, part: Part, recorder: Recorder) -> anyhow::Result<Self::Worker> {
        let mut workers = Workers::new();
        workers.add_fn(move |_: WorkContext, job: Job<NoOp>| {
            recorder.start(&job.args.task);
            async { Ok::<_, BoxError>(WorkOutcome::Complete) }
        })?;
        let client =
            builder(&self.pool).workers(workers).queue(QUEUE_DEFAULT, queue(part)).build()?;
        // It inserts, too: an insert of the same process wakes it the same way.
        self.client = client.clone();
        Ok(client.start()?)
    }
}
