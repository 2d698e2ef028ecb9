//! The engine in process: submit in batches, drain a backlog, the whole cycle at once, and the
//! whole cycle of tasks that are handed off.

use std::time::{Duration, Instant};

use super::ROUNDS;
use super::figures::{Figure, Target};
use super::limits::{HAND_OFF, Limits};
use super::place::Place;
use super::run::Run;
use super::world::{Counter, World};

pub(super) const STEPS: usize = ROUNDS;

/// How long something took, and what it wrote to the log.
#[derive(Clone, Copy)]
struct Cost {
    time: Duration,
    log_bytes: u64,
}

impl Cost {
    const WORST: Self = Self { time: Duration::MAX, log_bytes: u64::MAX };

    fn min(self, other: Self) -> Self {
        if other.time < self.time { other } else { self }
    }
}

pub(super) async fn measure(run: &mut Run, limits: &Limits) -> anyhow::Result<()> {
    let tasks = run.tasks;
    let (mut submit, mut drain) = (Duration::MAX, Duration::MAX);
    let (mut cycle, mut handed) = (Cost::WORST, Cost::WORST);
    for round in 1..=ROUNDS {
        run.step(&format!("engine: {tasks} tasks in batches, {round} of {ROUNDS}"));
        let backlog = backlog(run.place("backlog").await?, tasks).await?;
        submit = submit.min(backlog.0);
        drain = drain.min(backlog.1);
        cycle = cycle.min(whole_cycle(run.place("cycle").await?, tasks).await?);
        handed = handed.min(hand_off_cycle(run.place("hand-off").await?, tasks).await?);
    }
    let limit = &limits.lives;
    let rate = |name, time, limit_time, judged| {
        let figure = Figure::rate(name, tasks, time).beside(limit.tasks, limit_time);
        if judged { figure.must(Target::Ratio(0.5)).then(Target::Ratio(0.7)) } else { figure }
    };
    // On a server the parts run on several connections, and only the whole has a target; the drain
    // is set beside other schedulers.
    let each = run.per_store(true, false);
    run.found(rate("engine: batch submit", submit, limit.submit, each));
    run.found(rate("engine: drain", drain, limit.drain(), each));
    run.found(rate("engine: whole cycle", cycle.time, limit.cycle(), true));
    let bytes = |name, cost: Cost, limit: u64| {
        Figure::bytes(name, cost.log_bytes as f64 / tasks as f64).of(limit as f64)
    };
    let figure = bytes("engine: whole cycle, log", cycle, limit.log_bytes_per_task);
    let budget = run.per_store(None, Some((1_200.0, 900.0)));
    run.found(within(figure, budget));
    let limit = &limits.hand_off;
    let figure = Figure::rate("engine: hand-off cycle", tasks, handed.time);
    run.found(figure.beside(limit.tasks, limit.cycle));
    let figure = bytes("engine: hand-off cycle, log", handed, limit.log_bytes_per_task);
    let budget = run.per_store(None, Some((700.0, 600.0)));
    run.found(within(figure, budget));
    Ok(())
}

/// What it may be at the most, and what it is to become, if there is such a budget.
fn within(figure: Figure, budget: Option<(f64, f64)>) -> Figure {
    match budget {
        Some((must, then)) => figure.must(Target::AtMost(must)).then(Target::AtMost(then)),
        None => figure,
    }
}

/// Stores a backlog while nobody works, then drains it: the time of each.
pub(super) async fn backlog(place: Place, tasks: usize) -> anyhow::Result<(Duration, Duration)> {
    let world = World::open(place).await?;
    let start = Instant::now();
    world.submit(tasks, 0.0).await?;
    let submit = start.elapsed();
    let counter = Counter::new(tasks);
    let start = Instant::now();
    let worker = world.work(counter.clone()).await?;
    counter.done().await;
    worker.stop(tasks).await?;
    let drain = start.elapsed();
    world.remove().await?;
    Ok((submit, drain))
}

/// Submits to a worker that waits, until the last outcome is committed.
async fn whole_cycle(place: Place, tasks: usize) -> anyhow::Result<Cost> {
    let world = World::open(place).await?;
    let before = world.log_bytes().await?;
    let time = world.cycle(tasks).await?;
    let log_bytes = world.log_bytes().await? - before;
    world.remove().await?;
    Ok(Cost { time, log_bytes })
}

/// Submits never more than the worker has room for, so that all of it is granted as it is stored.
async fn hand_off_cycle(place: Place, tasks: usize) -> anyhow::Result<Cost> {
    let world = World::open(place).await?;
    let counter = Counter::new(tasks);
    let worker = world.work(counter.clone()).await?;
    let before = world.log_bytes().await?;
    let start = Instant::now();
    for first in (0..tasks).step_by(HAND_OFF) {
        // The outcomes of the batch before may still be on their way.
        counter.started(first).await;
        world.submit_batch(HAND_OFF).await?;
    }
    counter.done().await;
    worker.stop(tasks).await?;
    let time = start.elapsed();
    let cost = Cost { time, log_bytes: world.log_bytes().await? - before };
    world.remove().await?;
    Ok(cost)
}
