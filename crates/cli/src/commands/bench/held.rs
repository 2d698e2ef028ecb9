//! What a transaction costs that somebody holds open: PostgreSQL then keeps every row that is
//! deleted and every version that is replaced.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio_util::sync::CancellationToken;

use super::BATCH;
use super::figures::{Figure, Target};
use super::place::Place;
use super::run::Run;
use super::world::{Counter, World};
use crate::wiring::Hold;

pub(super) const STEPS: usize = 2;
/// Pieces of the time, each with a rate of its own: with ten minutes, the last minute counts.
const PIECES: u32 = 10;
/// Submits on their way at once.
const CALLERS: usize = 4;
/// Batches that wait for the worker, at the most.
const AHEAD: usize = 20;

pub(super) async fn measure(run: &mut Run, time: Duration) -> anyhow::Result<()> {
    for (name, hold) in [("reader", Hold::Snapshot), ("writer", Hold::Transaction)] {
        run.step(&format!("held: full load beside a {name} for {time:?}"));
        let place = run.place(name).await?;
        let Place::Database(database) = place.clone() else { return Ok(()) };
        let world = World::open(place).await?;
        let counter = Counter::new(usize::MAX);
        let worker = world.work(counter.clone()).await?;
        let stop = CancellationToken::new();
        let watch = async {
            // The first piece warms up.
            let piece = time / PIECES;
            let _ = rate(&counter, piece).await;
            let before = rate(&counter, piece).await;
            run.found(Figure::new(&format!("held by a {name}: before"), before, "tasks/s"));
            let _held = database.hold(hold).await?;
            for number in 1..=PIECES {
                let figure = rate(&counter, piece).await;
                let figure =
                    Figure::new(&format!("held by a {name}: {number}/{PIECES}"), figure, "tasks/s");
                let figure = figure.of(before);
                run.found(if number < PIECES {
                    figure
                } else {
                    figure.must(Target::Ratio(0.8)).then(Target::Ratio(0.95))
                });
            }
            stop.cancel();
            anyhow::Ok(())
        };
        let (watched, submitted) = tokio::join!(watch, load(&world, &counter, &stop));
        watched?;
        let submitted = submitted.context("the load has failed")?;
        counter.started(submitted).await;
        worker.stop(submitted).await?;
        world.remove().await?;
    }
    Ok(())
}

/// Tasks per second that start within this time.
async fn rate(counter: &Counter, time: Duration) -> f64 {
    let (start, before) = (Instant::now(), counter.count());
    tokio::time::sleep(time).await;
    (counter.count() - before) as f64 / start.elapsed().as_secs_f64()
}

/// Submits as fast as the worker works, until it is told to stop. Answers how many that were.
async fn load(world: &World, counter: &Counter, stop: &CancellationToken) -> anyhow::Result<usize> {
    let mut submitted: usize = 0;
    while !stop.is_cancelled() {
        counter.started(submitted.saturating_sub(AHEAD * BATCH)).await;
        world.submit(CALLERS * BATCH, 0.0).await?;
        submitted += CALLERS * BATCH;
    }
    Ok(submitted)
}
