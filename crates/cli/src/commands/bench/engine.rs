//! The engine in process: submit in batches, drain a backlog, the whole cycle at once, and the
//! whole cycle of tasks that are handed off.

use std::time::{Duration, Instant};

use super::ROUNDS;
use super::figures::{Figure, Target};
use super::limits::{HAND_OFF, Limits};
use super::run::Run;
use super::store_site::StoreSite;
use super::world::{Counter, World};

pub(super) const STEPS: usize = ROUNDS;

/// The time and the log bytes of a measurement.
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
        let backlog = backlog(run.new_site("backlog").await?, tasks).await?;
        submit = submit.min(backlog.0);
        drain = drain.min(backlog.1);
        cycle = cycle.min(whole_cycle(run.new_site("cycle").await?, tasks).await?);
        handed = handed.min(hand_off_cycle(run.new_site("hand-off").await?, tasks).await?);
    }
    let limit = &limits.lives;
    let rate = |name, time, limit_time, judged| {
        let figure = Figure::rate(name, tasks, time).compare_rate(limit.tasks, limit_time);
        if judged { figure.must(Target::Ratio(0.5)).stretch(Target::Ratio(0.7)) } else { figure }
    };
    // On a server the parts run on several connections, so only the whole cycle has a target; the
    // drain is compared with other schedulers.
    let each = run.per_store(true, false);
    run.add(rate("engine: batch submit", submit, limit.submit, each));
    run.add(rate("engine: drain", drain, limit.drain(), each));
    run.add(rate("engine: whole cycle", cycle.time, limit.cycle(), true));
    let bytes = |name, cost: Cost, limit: u64| {
        Figure::bytes(name, cost.log_bytes as f64 / tasks as f64).compare(limit as f64)
    };
    let figure = bytes("engine: whole cycle, log", cycle, limit.log_bytes_per_task);
    let budget = run.per_store(None, Some((1_200.0, 900.0)));
    run.add(within(figure, budget));
    let limit = &limits.hand_off;
    let figure = Figure::rate("engine: hand-off cycle", tasks, handed.time);
    run.add(figure.compare_rate(limit.tasks, limit.cycle));
    let figure = bytes("engine: hand-off cycle, log", handed, limit.log_bytes_per_task);
    let budget = run.per_store(None, Some((700.0, 600.0)));
    run.add(within(figure, budget));
    Ok(())
}

/// Sets target and stretch goal, if there is a budget.
fn within(figure: Figure, budget: Option<(f64, f64)>) -> Figure {
    match budget {
        Some((must, then)) => figure.must(Target::AtMost(must)).stretch(Target::AtMost(then)),
        None => figure,
    }
}

/// Stores a backlog without a worker, then drains it; returns the time of each.
pub(super) async fn backlog(site: StoreSite, tasks: usize) -> anyhow::Result<(Duration, Duration)> {
    let world = World::open(site).await?;
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

/// Submits to a waiting worker, until the last outcome is committed.
async fn whole_cycle(site: StoreSite, tasks: usize) -> anyhow::Result<Cost> {
    let world = World::open(site).await?;
    let before = world.log_bytes().await?;
    let time = world.cycle(tasks).await?;
    let log_bytes = world.log_bytes().await? - before;
    world.remove().await?;
    Ok(Cost { time, log_bytes })
}

/// Submits only as much as the worker has free slots, so that every task is handed off.
async fn hand_off_cycle(site: StoreSite, tasks: usize) -> anyhow::Result<Cost> {
    let world = World::open(site).await?;
    let counter = Counter::new(tasks);
    let worker = world.work(counter.clone()).await?;
    let before = world.log_bytes().await?;
    let start = Instant::now();
    for first in (0..tasks).step_by(HAND_OFF) {
        // The outcomes of the previous batch may still be under way.
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
