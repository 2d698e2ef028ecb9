//! Time between a task's due time and its start: of single tasks on an idle engine, and of many delayed
//! ones with a large backlog.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use async_trait::async_trait;
use duly_core::name::TenantName;
use duly_core::ports::clock::Clock as _;
use duly_core::submit::Spec;
use duly_store::clock::SystemClock;
use duly_worker::{Context, Handler, HandlerError, Output};
use tokio::sync::mpsc;

use super::ROUNDS;
use super::figures::{Figure, Target, percentiles};
use super::run::Run;
use super::world::{World, no_op};

pub(super) const STEPS: usize = 2;

pub(super) async fn measure(run: &mut Run) -> anyhow::Result<()> {
    idle(run).await?;
    delayed(run).await
}

/// Reports its start.
pub(super) struct Starts(pub(super) mpsc::UnboundedSender<Instant>);

#[async_trait]
impl Handler for Starts {
    async fn run(&self, _: Context) -> Result<Output, HandlerError> {
        self.0.send(Instant::now()).ok();
        Ok(Output::none())
    }
}

/// Single tasks of one round.
pub(super) const LONE: usize = 1000;

/// The best round counts: a shared disk has slow seconds.
async fn idle(run: &mut Run) -> anyhow::Result<()> {
    run.step(&format!("idle latency: {LONE} lone tasks, {ROUNDS} times"));
    let world = World::open(run.new_site("idle").await?).await?;
    let (starts, mut started) = mpsc::unbounded_channel();
    let worker = world.work(Starts(starts)).await?;
    // Wait until the start-up work is done.
    world.settle().await?;
    let mut best: Option<[Figure; 3]> = None;
    for _ in 0..ROUNDS {
        let round = percentiles("idle latency", 99, lone_tasks(&world, &mut started).await?);
        if best.as_ref().is_none_or(|[_, p99, _]| round[1].is_below(p99)) {
            best = Some(round);
        }
    }
    let [p50, p99, max] = best.context("at least one round")?;
    let (must, then) = run.per_store((1.0, 0.5), (2.0, 1.0));
    let p50 = p50.must(Target::AtMost(must)).stretch(Target::AtMost(then));
    run.figures.extend([p50, p99.must(Target::AtMost(5.0)), max]);
    worker.stop(ROUNDS * LONE).await?;
    world.remove().await
}

/// The time of each from submit to start.
pub(super) async fn lone_tasks(
    world: &World,
    started: &mut mpsc::UnboundedReceiver<Instant>,
) -> anyhow::Result<Vec<f64>> {
    let tenant = TenantName::default_tenant();
    let mut millis = Vec::with_capacity(LONE);
    for _ in 0..LONE {
        // Wait for the commit of the previous outcome, so that the engine is idle.
        tokio::time::sleep(Duration::from_millis(3)).await;
        let submitted = Instant::now();
        let answers = world.engine.submit(&tenant, vec![no_op(0.0)]).await?;
        assert!(answers[0].is_ok(), "a no-op is always accepted");
        let start = started.recv().await.expect("the handler lives");
        millis.push(start.duration_since(submitted).as_secs_f64() * 1000.0);
    }
    Ok(millis)
}

/// Reports how late it started, by the store's clock; negative is early.
pub(super) struct Lateness {
    pub(super) clock: SystemClock,
    pub(super) late: mpsc::UnboundedSender<f64>,
}

#[async_trait]
impl Handler for Lateness {
    async fn run(&self, context: Context) -> Result<Output, HandlerError> {
        let late = self.clock.now().millis() - context.lease().run_at.millis();
        self.late.send(late as f64).ok();
        Ok(Output::none())
    }
}

async fn delayed(run: &mut Run) -> anyhow::Result<()> {
    const TASKS: usize = 10_000;
    const BACKLOG: usize = 1_000_000;
    const SPREAD_SECONDS: f64 = 10.0;
    run.step(&format!(
        "lateness: {TASKS} tasks delayed over {SPREAD_SECONDS} s, {BACKLOG} scheduled for tomorrow"
    ));
    let world = World::open(run.new_site("delayed").await?).await?;
    world.submit(BACKLOG, 86_400.0).await?;
    world.settle().await?;
    let (late, mut lateness) = mpsc::unbounded_channel();
    let clock = SystemClock::default();
    let worker = world.work(Lateness { clock, late }).await?;
    let tenant = TenantName::default_tenant();
    let spread = |number: usize| no_op(1.0 + SPREAD_SECONDS * number as f64 / TASKS as f64);
    let specs: Vec<Spec> = (0..TASKS).map(spread).collect();
    let answers = world.engine.submit(&tenant, specs).await?;
    assert!(answers.iter().all(Result::is_ok), "a delayed no-op is always accepted");
    let mut millis = Vec::with_capacity(TASKS);
    while millis.len() < TASKS {
        millis.push(lateness.recv().await.expect("the handler lives"));
    }
    let early = millis.iter().filter(|late| **late < 0.0).count();
    run.add(Figure::new("delayed: early", early as f64, "tasks").must(Target::AtMost(0.0)));
    let [p50, p99, max] = percentiles("delayed: late", 99, millis);
    let p50 = p50.must(Target::AtMost(5.0)).stretch(Target::AtMost(1.0));
    let p99 = p99.must(Target::AtMost(50.0)).stretch(Target::AtMost(10.0));
    run.figures.extend([p50, p99, max]);
    worker.stop(TASKS).await?;
    world.remove().await
}
