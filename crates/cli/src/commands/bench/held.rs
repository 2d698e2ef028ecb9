//! The cost of a transaction that is held open: PostgreSQL then keeps every deleted row and every
//! replaced version.

use std::time::{Duration, Instant};

use super::BATCH;
use super::figures::{Figure, Target};
use super::run::Run;
use super::store_site::StoreSite;
use super::world::{Counter, RunningWorker, World};
use crate::wiring::Hold;

pub(super) const STEPS: usize = 2;
/// Intervals, each with its own rate: with ten minutes, the last minute counts.
const PIECES: u32 = 10;
/// After each interval a database without such a transaction runs for this fraction of it, since the
/// speed of a shared machine varies.
const TURN: u32 = 4;
/// Batches of one call.
const CALLERS: usize = 4;
/// The most batches that wait for the worker.
const AHEAD: usize = 20;

pub(super) async fn measure(run: &mut Run, time: Duration) -> anyhow::Result<()> {
    for (name, hold) in [("reader", Hold::Snapshot), ("writer", Hold::Transaction)] {
        run.step(&format!("held: full load beside a {name} for {time:?}"));
        let site = run.new_site(name).await?;
        let StoreSite::Database(database) = site.clone() else { return Ok(()) };
        let mut held = Loaded::open(site).await?;
        let mut free = Loaded::open(run.new_site("free").await?).await?;
        let (piece, turn) = (time / PIECES, time / PIECES / TURN);
        // Both warm up.
        held.rate(turn).await?;
        free.rate(turn).await?;
        let _held = database.hold(hold).await?;
        for number in 1..=PIECES {
            let (with, without) = (held.rate(piece).await?, free.rate(turn).await?);
            let name = format!("held by a {name}: {number}/{PIECES}");
            run.progress.detail(&format!("{name}: {with:.0} tasks/s, {without:.0} without"));
            let figure = Figure::new(&name, with, "tasks/s").compare(without);
            run.add(if number < PIECES {
                figure
            } else {
                figure.must(Target::Ratio(0.8)).stretch(Target::Ratio(0.95))
            });
        }
        held.end().await?;
        free.end().await?;
    }
    Ok(())
}

/// A store with a worker under constant load.
struct Loaded {
    world: World,
    worker: RunningWorker,
    counter: Counter,
    submitted: usize,
}

impl Loaded {
    async fn open(site: StoreSite) -> anyhow::Result<Self> {
        let world = World::open(site).await?;
        let counter = Counter::new(usize::MAX);
        let worker = world.work(counter.clone()).await?;
        Ok(Self { world, worker, counter, submitted: 0 })
    }

    /// Submits as fast as the worker works for this time, then waits for the rest. Returns the tasks
    /// started per second.
    async fn rate(&mut self, time: Duration) -> anyhow::Result<f64> {
        let (start, before) = (Instant::now(), self.counter.count());
        while start.elapsed() < time {
            self.counter.started(self.submitted.saturating_sub(AHEAD * BATCH)).await;
            self.world.submit(CALLERS * BATCH, 0.0).await?;
            self.submitted += CALLERS * BATCH;
        }
        let rate = (self.counter.count() - before) as f64 / start.elapsed().as_secs_f64();
        self.counter.started(self.submitted).await;
        Ok(rate)
    }

    async fn end(self) -> anyhow::Result<()> {
        self.worker.stop(self.submitted).await?;
        self.world.remove().await
    }
}
