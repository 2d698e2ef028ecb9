//! What a lot of waiting tasks, and a lot of lanes, do to speed and memory.

use std::time::Duration;

use super::figures::{Figure, Target};
use super::memory;
use super::run::Run;
use super::world::World;

/// Rounds of each size; more than elsewhere, since the ratios are asked to be near 1.
const ROUNDS: usize = 5;
/// Queues of the measurement with many lanes.
const QUEUES: usize = 10_000;
/// When the waiting tasks are due: not while this runs.
const TOMORROW: f64 = 86_400.0;
/// What one process takes more than the same process at another time, however little waits: two
/// bytes for each of ten million tasks would be more.
const SCATTER_MB: f64 = 16.0;
/// Tasks that are stored between two looks at the progress.
const PIECE: usize = 1_000_000;

pub(super) const fn steps(backlogs: &[usize]) -> usize {
    backlogs.len() + 2
}

/// Runs as the first part: memory that others have used would hide what this one uses. A store on
/// which nothing waits takes turns with the other, since a shared machine is not always as fast.
pub(super) async fn measure(run: &mut Run, backlogs: &[usize]) -> anyhow::Result<()> {
    run.step("growth: nothing waits");
    let empty = World::open(run.place("empty").await?).await?;
    let world = World::open(run.place("growth").await?).await?;
    let (time, _) = in_turns(run, (&empty, 1), (&world, 1)).await?;
    let memory_empty = memory::anonymous()?;
    run.found(Figure::rate("growth: whole cycle, nothing waits", run.tasks, time));
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
        let (without, with) = in_turns(run, (&empty, 1), (&world, 1)).await?;
        let figure = Figure::rate(&format!("growth: whole cycle, {backlog} wait"), run.tasks, with);
        let figure = figure.beside(run.tasks, without);
        run.found(figure.must(Target::Ratio(0.9)).then(Target::Ratio(0.95)));
        let figure =
            Figure::new(&format!("growth: memory, {backlog} wait"), memory::anonymous()?, "MB");
        run.found(figure.of(memory_empty).must(Target::AtMost(memory_empty + SCATTER_MB)));
    }
    world.remove().await?;
    lanes(run, &empty).await?;
    empty.remove().await
}

/// The same tasks in one lane and in many.
async fn lanes(run: &mut Run, one: &World) -> anyhow::Result<()> {
    run.step(&format!("growth: {} tasks in {QUEUES} queues", run.tasks));
    let many = World::open(run.place("lanes").await?).await?;
    let (one, time) = in_turns(run, (one, 1), (&many, QUEUES)).await?;
    let figure = Figure::rate(&format!("growth: whole cycle, {QUEUES} lanes"), run.tasks, time);
    let figure = figure.beside(run.tasks, one);
    run.found(figure.must(Target::Ratio(0.6)).then(Target::Ratio(0.8)));
    many.remove().await
}

/// Times of two stores, each with its number of queues: of the pair of rounds whose ratio is in the
/// middle. The best of each would set a lucky round of one beside an unlucky hour of the other.
async fn in_turns(
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
