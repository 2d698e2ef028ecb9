//! What a lot of waiting tasks, and a lot of lanes, do to speed and memory.

use std::time::Duration;

use super::figures::{Figure, Target};
use super::memory;
use super::run::Run;
use super::world::World;

/// Rounds of each size; more than elsewhere, since the ratios are asked to be near 1.
const ROUNDS: usize = 6;
/// Queues of the measurement with many lanes.
const QUEUES: usize = 10_000;
/// When the waiting tasks are due: not while this runs.
const TOMORROW: f64 = 86_400.0;
/// Tasks that are stored between two looks at the progress.
const PIECE: usize = 1_000_000;

pub(super) const fn steps(backlogs: &[usize]) -> usize {
    backlogs.len() + 2
}

/// Runs as the first part: memory that others have used would hide what this one uses.
pub(super) async fn measure(run: &mut Run, backlogs: &[usize]) -> anyhow::Result<()> {
    run.step("growth: nothing waits");
    let world = World::open(&run.folder("growth"))?;
    let empty = best(run, &world, 1).await?;
    let memory_empty = memory::anonymous()?;
    run.found(Figure::rate("growth: whole cycle, nothing waits", run.tasks, empty));
    run.found(Figure::new("growth: memory, nothing waits", memory_empty, "MB"));
    let mut waiting = 0;
    for &backlog in backlogs {
        run.step(&format!("growth: {backlog} wait"));
        while waiting < backlog {
            let piece = (backlog - waiting).min(PIECE);
            world.submit(piece, TOMORROW).await?;
            waiting += piece;
            run.progress.detail(&format!("growth: {waiting} of {backlog} stored"));
        }
        world.settle().await?;
        let time = best(run, &world, 1).await?;
        let figure = Figure::rate(&format!("growth: whole cycle, {backlog} wait"), run.tasks, time);
        let figure = figure.beside(run.tasks, empty);
        run.found(figure.must(Target::Ratio(0.9)).then(Target::Ratio(0.95)));
        let figure =
            Figure::new(&format!("growth: memory, {backlog} wait"), memory::anonymous()?, "MB");
        run.found(figure.of(memory_empty).must(Target::RatioAtMost(1.25)));
    }
    world.remove().await?;
    lanes(run).await
}

/// The same tasks in one lane and in many.
async fn lanes(run: &mut Run) -> anyhow::Result<()> {
    run.step(&format!("growth: {} tasks in {QUEUES} queues", run.tasks));
    let world = World::open(&run.folder("lanes"))?;
    let one = best(run, &world, 1).await?;
    let many = best(run, &world, QUEUES).await?;
    let figure = Figure::rate(&format!("growth: whole cycle, {QUEUES} lanes"), run.tasks, many);
    let figure = figure.beside(run.tasks, one);
    run.found(figure.must(Target::Ratio(0.6)).then(Target::Ratio(0.8)));
    world.remove().await
}

async fn best(run: &Run, world: &World, queues: usize) -> anyhow::Result<Duration> {
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        best = best.min(world.cycle_over(run.tasks, queues).await?);
    }
    Ok(best)
}
