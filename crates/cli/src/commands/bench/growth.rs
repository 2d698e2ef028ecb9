//! The effect of many waiting tasks and many lanes on speed and memory.

use std::time::Duration;

use super::figures::{Figure, Target};
use super::memory;
use super::run::Run;
use super::world::World;

/// Rounds of each size; more than in other parts, since the ratios must be near 1.
const ROUNDS: usize = 5;
/// Queues of the measurement with many lanes.
const QUEUES: usize = 10_000;
/// Delay of the waiting tasks: they are not due during the run.
const TOMORROW: f64 = 86_400.0;
/// The variation of a process's memory between two readings; two bytes for each of ten million tasks
/// would exceed it.
const SCATTER_MB: f64 = 16.0;
/// Tasks that are stored between two progress messages.
const PIECE: usize = 1_000_000;

pub(super) const fn steps(backlogs: &[usize]) -> usize {
    backlogs.len() + 2
}

/// Runs as the first part: memory that other parts have used would hide its own use. Alternates with
/// an empty store, since the speed of a shared machine varies.
pub(super) async fn measure(run: &mut Run, backlogs: &[usize]) -> anyhow::Result<()> {
    run.step("growth: nothing waits");
    let empty = World::open(run.new_site("empty").await?).await?;
    let world = World::open(run.new_site("growth").await?).await?;
    let (time, _) = alternate(run, (&empty, 1), (&world, 1)).await?;
    let memory_empty = memory::anonymous()?;
    run.add(Figure::rate("growth: whole cycle, nothing waits", run.tasks, time));
    run.add(Figure::new("growth: memory, nothing waits", memory_empty, "MB"));
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
        let (without, with) = alternate(run, (&empty, 1), (&world, 1)).await?;
        let figure = Figure::rate(&format!("growth: whole cycle, {backlog} wait"), run.tasks, with);
        let figure = figure.compare_rate(run.tasks, without);
        run.add(figure.must(Target::Ratio(0.9)).stretch(Target::Ratio(0.95)));
        let figure =
            Figure::new(&format!("growth: memory, {backlog} wait"), memory::anonymous()?, "MB");
        run.add(figure.compare(memory_empty).must(Target::AtMost(memory_empty + SCATTER_MB)));
    }
    world.remove().await?;
    lanes(run, &empty).await?;
    empty.remove().await
}

/// The same tasks in one lane and in many.
async fn lanes(run: &mut Run, one: &World) -> anyhow::Result<()> {
    run.step(&format!("growth: {} tasks in {QUEUES} queues", run.tasks));
    let many = World::open(run.new_site("lanes").await?).await?;
    let (one, time) = alternate(run, (one, 1), (&many, QUEUES)).await?;
    let figure = Figure::rate(&format!("growth: whole cycle, {QUEUES} lanes"), run.tasks, time);
    let figure = figure.compare_rate(run.tasks, one);
    run.add(figure.must(Target::Ratio(0.6)).stretch(Target::Ratio(0.8)));
    many.remove().await
}

/// Times of two stores, each with its number of queues: the pair of rounds with the median ratio. The
/// best of each could compare a fast round of one with a slow phase of the machine.
async fn alternate(
    run: &Run,
    (one, one_queues): (&World, usize),
    (other, other_queues): (&World, usize),
) -> anyhow::Result<(Duration, Duration)> {
    let mut pairs = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let first = one.cycle_over(run.tasks, one_queues).await?;
        pairs.push((first, other.cycle_over(run.tasks, other_queues).await?));
    }
    let ratio = |(one, other): &(Duration, Duration)| one.as_secs_f64() / other.as_secs_f64();
    pairs.sort_by(|a, b| ratio(a).total_cmp(&ratio(b)));
    Ok(pairs[ROUNDS / 2])
}
