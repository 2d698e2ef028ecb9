//! Drives awa on PostgreSQL. Settings and where they are recommended:
//!
//! | setting | source |
//! |---|---|
//! | worker: all defaults (50 workers, poll 200 ms, promotion 250 ms) | `docs/configuration.md`, "QueueConfig", "ClientBuilder" |
//! | bulk: `insert_many_copy_from_pool` | crate documentation of `insert_many_copy`, the public bulk path |
//! | pool of 60 connections | more than the workers, so that none waits for one; our choice |

use awa::{Client, InsertOpts, InsertParams, JobArgs, JobResult, QueueConfig};
use chrono::{DateTime, Utc};
use peer_driver::{Order, Part, Payload, Peer, Recorder, measure, required};
use serde::{Deserialize, Serialize};
use sqlx::postgres::{PgPool, PgPoolOptions};

const QUEUE: &str = "default";

#[derive(Debug, Serialize, Deserialize, JobArgs)]
struct NoOp {
    task: Payload,
}

struct Awa {
    pool: PgPool,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let order = Order::from_args()?;
    let pool = PgPoolOptions::new().max_connections(60).connect(&required("DATABASE_URL")?).await?;
    awa::migrations::run(&pool).await?;
    measure(&order, Awa { pool }).await
}

impl Peer for Awa {
    type Worker = Client;

    fn version(&self) -> &'static str {
        "0.6.9"
    }

    fn settings(&self, _: Part) -> String {
        "defaults (50 workers), bulk by insert_many_copy_from_pool, 60 connections".to_owned()
    }

    async fn submit(&mut self, task: Payload) -> anyhow::Result<()> {
        awa::insert(&self.pool, &NoOp { task }).await?;
        Ok(())
    }

    async fn submit_bulk(&mut self, tasks: Vec<Payload>) -> anyhow::Result<()> {
        self.insert(tasks.into_iter().map(|task| (task, None))).await
    }

    async fn submit_delayed(&mut self, tasks: Vec<Payload>) -> anyhow::Result<()> {
        let due = |task: Payload| (task.clone(), Some(DateTime::from(task.due())));
        self.insert(tasks.into_iter().map(due)).await
    }

    async fn work(&mut self, _: Part, recorder: Recorder) -> anyhow::Result<Self::Worker> {
        let client = Client::builder(self.pool.clone())
            .queue(QUEUE, QueueConfig::default())
            .register::<NoOp, _, _>(move |args, _| {
                recorder.start(&args.task);
                async { Ok(JobResult::Completed) }
            })
            .build()?;
        client.start().await?;
        Ok(client)
    }
}

impl Awa {
    async fn insert(
        &self,
        tasks: impl Iterator<Item = (Payload, Option<DateTime<Utc>>)>,
    ) -> anyhow::Result<()> {
        let params = tasks.map(|(task, run_at)| {
            let opts = InsertOpts { run_at, ..InsertOpts::default() };
            awa::model::insert::params_with(&NoOp { task }, opts)
        });
        let params = params.collect::<Result<Vec<InsertParams>, _>>()?;
        awa::insert_many_copy_from_pool(&self.pool, &params).await?;
        Ok(())
    }
}
