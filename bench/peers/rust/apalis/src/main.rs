//! Drives apalis 1.0 on its three stores. Settings and where they are recommended:
//!
//! | setting | source |
//! |---|---|
//! | a listener and an interval together | README of apalis-postgres and of apalis-sqlite, "Pubsub listener example", "Event-Driven Worker (Hooked)" |
//! | interval 500 ms on PostgreSQL and SQLite | README of apalis-sqlite, "Event-Driven Worker (Hooked)" |
//! | interval 100 ms on Redis, where nothing else wakes the worker | our choice; no example has one |
//! | `batch_size(1000)`, for lone tasks its default of 10 | crate documentation, `Config::batch_size`: larger batches for throughput, no number given |
//! | `lock_tasks(false)`, only in the variants `…-unlocked` and `…-tuned` | example `realtime` of apalis-sqlite, tests of apalis-postgres |
//! | `ANALYZE` after the backlog is stored, only in `apalis-sqlite-tuned` | nowhere; without statistics each fetch sorts the whole backlog |
//!
//! Its workers sometimes stop to poll in front of delayed tasks and go on with their heartbeat, 30 s by
//! default: seen on all three stores, with and without a listener, in one run and not in the next;
//! most often with a short interval. As we read its code, the interval arms the next timer without
//! polling it, so that nothing wakes the worker when a fetch ends in the poll in which it fires.
//!
//! apalis-redis puts every task into its scheduled set first, and its fetch promotes all due ones in
//! one script call whose arguments Lua limits to about 8,000: a larger backlog ends its worker.

mod postgres;
mod redis;
mod sqlite;

use std::time::Duration;

use apalis::prelude::{Task, TaskBuilder};
use peer_driver::{Order, Part, Payload, measure};

/// How often a worker looks by itself, for tasks that become due without a notification.
const INTERVAL: Duration = Duration::from_millis(500);
/// The same where new tasks are not notified either.
const LONE_INTERVAL: Duration = Duration::from_millis(100);
const BIG_BATCH: usize = 1000;
const VERSION: &str = "1.0.0";
const QUEUE: &str = "bench";

/// Runs a worker until the process ends. A macro, since the bounds of a function over all backends
/// would be longer than its body.
macro_rules! run_worker {
    ($backend:expr, $recorder:expr) => {{
        let handler = |task: Payload, recorder: Data<Recorder>| async move {
            recorder.start(&task);
            Ok::<(), std::convert::Infallible>(())
        };
        let worker = WorkerBuilder::new("bench").backend($backend).data($recorder).build(handler);
        tokio::spawn(async move {
            let end = worker.run().await;
            eprintln!("the worker ended: {end:?}");
            std::process::exit(1);
        })
    }};
}
use run_worker;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let order = Order::from_args()?;
    let lock = !order.peer.ends_with("-unlocked") && !order.peer.ends_with("-tuned");
    match order.peer.as_str() {
        "apalis-postgres" | "apalis-postgres-unlocked" => {
            measure(&order, postgres::open(lock).await?).await
        }
        "apalis-redis" | "apalis-redis-unlocked" => measure(&order, redis::open(lock).await?).await,
        "apalis-sqlite" | "apalis-sqlite-tuned" => measure(&order, sqlite::open(lock).await?).await,
        other => anyhow::bail!("no peer {other}"),
    }
}

fn delayed(task: Payload) -> Task<Payload> {
    let due = task.due();
    TaskBuilder::new(task).run_at_time(due).build()
}

/// Tasks that a worker gets in one fetch.
fn batch_size(part: Part) -> usize {
    if part == Part::Idle { 10 } else { BIG_BATCH }
}

/// `wakes` is what tells the worker of a new task, if anything does.
fn settings(part: Part, lock: bool, wakes: Option<&str>) -> String {
    let batch = batch_size(part);
    let looks = match wakes {
        Some(wakes) => format!("woken by {wakes} and every {INTERVAL:?}"),
        None => format!("poll every {LONE_INTERVAL:?}"),
    };
    format!("batch_size {batch}, lock_tasks {lock}, {looks}")
}
