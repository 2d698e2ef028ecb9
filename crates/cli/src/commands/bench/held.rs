//! What a transaction costs that somebody holds open: PostgreSQL then keeps every row that is
//! deleted and every version that is replaced.

use std::time::{Duration, Instant};

use super::BATCH;
use super::figures::{Figure, Target};
use super::place::Place;
use super::run::Run;
use super::world::{Counter, Working, World};
use crate::wiring::Hold;

pub(super) const STEPS: usize = 2;
/// Pieces of the time, each with a rate of its own: with ten minutes, the last minute counts.
const PIECES: u32 = 10;
/// After each piece a database without such a transaction has its turn, for this part of the time: a
/// shared machine is not always as fast.
const TURN: u32 = 4;
/// Batches of one call.
const CALLERS: usize = 4;
/// Batches that wait for the worker, at the most.
const AHEAD: usize = 20;

pub(super) async fn measure(run: &mut Run, time: Duration) -> anyhow::Result<()> {
    for (name, hold) in [("reader", Hold::Snapshot), ("writer", Hold::Transaction)] {
        run.step(&format!("held: full load beside a {name} for {time:?}"));
        let place = run.place(name).await?;
        let Place::Database(database) = place.clone() else { return Ok(()) };
        let mut held = Loaded::open(place).await?;
        let mut free = Loaded::open(run.place("free").await?).await?;
        let (piece, turn) = (time / PIECES, time / PIECES / TURN);
        // Both warm up.
        held.rate(turn).await?;
        free.rate(turn).await?;
        let _held = database.hold(hold).await?;
        for number in 1..=PIECES {
            let (with, without) = (held.rate(piece).await?, free.rate(turn).await?);
            let name = format!("held by a {name}: {number}/{PIECES}");
            run.progress.detail(&format!("{name}: {with:.0} tasks/s, {without:.0} without"));
            let figure = Figure::new(&name, with, "tasks/s").of(without);
            run.found(if number < PIECES {
                figure
            } else {
                figure.must(Target::Ratio(0.8)).then(Target::Ratio(0.95))
            });
        }
        held.end().await?;
        free.end().await?;
    }
    Ok(())
}

/// A store with a worker that has to be kept busy.
struct Loaded {
    world: World,
    worker: Working,
    counter: Counter,
    submitted: usize,
}

impl Loaded {
    async fn open(place: Place) -> anyhow::Result<Self> {
        let world = World::open(place).await?;
        let counter = Counter::new(usize::MAX);
        let worker = world.work(counter.clone()).await?;
        Ok(Self { world, worker, counter, submitted: 0 })
    }

    /// Submits as fast as the worker works for this time: how many tasks started per second. What is
    /// left then is worked off.
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
