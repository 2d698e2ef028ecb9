//! The engine in process: submit in batches, drain a backlog, and the whole cycle at once.

use std::path::Path;
use std::time::{Duration, Instant};

use duly_store::sqlite::limit::Limit;
use duly_worker::Report;

use super::figures::{Figure, Target};
use super::world::{Counter, World};
use super::{BATCH, ROUNDS, Scratch};
use crate::output;

pub(super) async fn measure(
    scratch: &Scratch,
    tasks: usize,
    limit: &Limit,
    figures: &mut Vec<Figure>,
) -> anyhow::Result<()> {
    let tasks = tasks / BATCH * BATCH;
    let (mut submit, mut drain, mut cycle) = (Duration::MAX, Duration::MAX, Duration::MAX);
    for round in 1..=ROUNDS {
        output::say(&format!("engine: {tasks} tasks in batches, {round} of {ROUNDS}"));
        let backlog = backlog(&scratch.folder("backlog"), tasks).await?;
        submit = submit.min(backlog.0);
        drain = drain.min(backlog.1);
        cycle = cycle.min(whole_cycle(&scratch.folder("cycle"), tasks).await?);
    }
    let rate = |name, time, limit_time| {
        Figure::rate(name, tasks, time).beside(limit.tasks, limit_time).must(Target::Ratio(0.5))
    };
    figures.push(rate("engine: batch submit", submit, limit.submit));
    figures.push(rate("engine: drain", drain, limit.drain()));
    figures.push(rate("engine: whole cycle", cycle, limit.cycle()));
    Ok(())
}

/// Stores a backlog while nobody works, then drains it: the time of each.
pub(super) async fn backlog(folder: &Path, tasks: usize) -> anyhow::Result<(Duration, Duration)> {
    let world = World::open(folder)?;
    let start = Instant::now();
    world.submit(tasks, 0.0).await?;
    let submit = start.elapsed();
    let counter = Counter::new(tasks);
    let start = Instant::now();
    let worker = world.work(counter.clone()).await?;
    counter.done().await;
    let report = worker.stop().await?;
    let drain = start.elapsed();
    finish(world, folder, &report, tasks).await?;
    Ok((submit, drain))
}

/// Submits to a worker that waits, until the last outcome is committed.
async fn whole_cycle(folder: &Path, tasks: usize) -> anyhow::Result<Duration> {
    let world = World::open(folder)?;
    let counter = Counter::new(tasks);
    let worker = world.work(counter.clone()).await?;
    let start = Instant::now();
    world.submit(tasks, 0.0).await?;
    counter.done().await;
    let report = worker.stop().await?;
    let cycle = start.elapsed();
    finish(world, folder, &report, tasks).await?;
    Ok(cycle)
}

async fn finish(world: World, folder: &Path, report: &Report, tasks: usize) -> anyhow::Result<()> {
    assert_eq!(report.done, tasks as u64, "every outcome is committed: {report:?}");
    world.engine.close().await;
    drop(world);
    Ok(std::fs::remove_dir_all(folder)?)
}
