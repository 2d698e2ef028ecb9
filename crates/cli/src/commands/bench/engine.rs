//! The engine in process: submit in batches, drain a backlog, and the whole cycle at once.

use std::time::Instant;

use duly_store::sqlite::limit::Limit;

use super::figures::{Figure, Target};
use super::world::{Counter, World};
use super::{BATCH, Scratch};
use crate::output;

pub(super) async fn measure(
    scratch: &Scratch,
    tasks: usize,
    limit: &Limit,
    figures: &mut Vec<Figure>,
) -> anyhow::Result<()> {
    let tasks = tasks / BATCH * BATCH;
    output::say(&format!("engine: {tasks} tasks submitted in batches, then drained"));
    let world = World::open(&scratch.folder("engine"))?;
    let start = Instant::now();
    world.submit(tasks, 0.0).await?;
    let submit = Figure::rate("engine: batch submit", tasks, start.elapsed());
    figures.push(submit.beside(limit.tasks, limit.submit).must(Target::Ratio(0.5)));

    let counter = Counter::new(tasks);
    let start = Instant::now();
    let worker = world.work(counter.clone()).await?;
    counter.done().await;
    let report = worker.stop().await?;
    let drain = Figure::rate("engine: drain", tasks, start.elapsed());
    figures.push(drain.beside(limit.tasks, limit.claim + limit.finish).must(Target::Ratio(0.5)));
    assert_eq!(report.done, tasks as u64, "every outcome is committed: {report:?}");
    world.engine.close().await;
    whole_cycle(scratch, tasks, limit, figures).await
}

async fn whole_cycle(
    scratch: &Scratch,
    tasks: usize,
    limit: &Limit,
    figures: &mut Vec<Figure>,
) -> anyhow::Result<()> {
    output::say(&format!("engine: {tasks} tasks submitted to a worker that waits"));
    let world = World::open(&scratch.folder("cycle"))?;
    let counter = Counter::new(tasks);
    let worker = world.work(counter.clone()).await?;
    let start = Instant::now();
    world.submit(tasks, 0.0).await?;
    counter.done().await;
    let report = worker.stop().await?;
    let cycle = Figure::rate("engine: whole cycle", tasks, start.elapsed());
    let whole = limit.submit + limit.claim + limit.finish;
    figures.push(cycle.beside(limit.tasks, whole).must(Target::Ratio(0.5)));
    assert_eq!(report.done, tasks as u64, "every outcome is committed: {report:?}");
    world.engine.close().await;
    Ok(())
}
