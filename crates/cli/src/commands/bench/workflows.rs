//! Workflows: a chain, a fan-out with a fan-in, and how soon a large one is accepted.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use duly_core::name::TenantName;
use duly_core::submit::Spec;
use duly_core::workflow::Condition;
use duly_core::workflow::plan::Needed;
use duly_core::workflow::request::{Member, Members, WorkflowSpec};
use tokio::sync::mpsc;

use super::ROUNDS;
use super::engine::backlog;
use super::figures::{Figure, Target, percentiles};
use super::punctuality::{LONE, Starts, lone_tasks};
use super::run::Run;
use super::world::{Counter, World, no_op};

pub(super) const STEPS: usize = 1 + ROUNDS;

/// Tasks of the chain.
const CHAIN: usize = 1_000;
/// Tasks between the first and the last of the fan.
const WIDTH: usize = 9_998;

pub(super) async fn measure(run: &mut Run) -> anyhow::Result<()> {
    run.step(&format!("workflows: a chain of {CHAIN} tasks, {ROUNDS} times"));
    let idle = idle_latency(run).await?;
    let mut chain = Duration::MAX;
    for _ in 0..ROUNDS {
        let world = World::open(run.new_site("chain").await?).await?;
        chain = chain.min(run_workflow(world, chain_of(CHAIN)?).await?.1);
    }
    let per_edge = chain.as_secs_f64() * 1000.0 / CHAIN as f64;
    let figure = Figure::new("workflow: chain, per edge", per_edge, "ms").compare(idle);
    run.add(figure.must(Target::AtMost(1.5 * idle)));

    let tasks = WIDTH + 2;
    let (mut accepted, mut fan, mut alone) = (Duration::MAX, Duration::MAX, Duration::MAX);
    for round in 1..=ROUNDS {
        run.step(&format!("workflows: 1 → {WIDTH} → 1 tasks, {round} of {ROUNDS}"));
        let world = World::open(run.new_site("fan").await?).await?;
        let (accept, time) = run_workflow(world, fan_of(WIDTH)?).await?;
        accepted = accepted.min(accept);
        fan = fan.min(time);
        alone = alone.min(backlog(run.new_site("alone").await?, tasks).await?.1);
    }
    let figure = Figure::rate("workflow: fan-out and fan-in", tasks, fan);
    run.add(figure.compare_rate(tasks, alone).must(Target::Ratio(0.5)));
    let seconds = accepted.as_secs_f64();
    run.add(
        Figure::new("workflow: 10,000 tasks accepted in", seconds, "s").must(Target::AtMost(1.0)),
    );
    Ok(())
}

/// The median time from a submit to the start of a lone task, in milliseconds.
async fn idle_latency(run: &Run) -> anyhow::Result<f64> {
    let world = World::open(run.new_site("idle").await?).await?;
    let (starts, mut started) = mpsc::unbounded_channel();
    let worker = world.work(Starts(starts)).await?;
    world.settle().await?;
    let [p50, ..] = percentiles("idle latency", 99, lone_tasks(&world, &mut started).await?);
    worker.stop(LONE).await?;
    world.remove().await?;
    Ok(p50.value())
}

/// The time until a workflow is accepted, and the time from then until its last task has started and all
/// outcomes are committed.
async fn run_workflow(world: World, spec: WorkflowSpec) -> anyhow::Result<(Duration, Duration)> {
    let tasks = spec.members.tasks().len();
    let start = Instant::now();
    world.engine.submit_workflow(&TenantName::default_tenant(), spec).await?;
    let accepted = start.elapsed();
    world.settle().await?;
    let counter = Counter::new(tasks);
    let start = Instant::now();
    let worker = world.work(counter.clone()).await?;
    counter.done().await;
    worker.stop(tasks).await?;
    let time = start.elapsed();
    world.remove().await?;
    Ok((accepted, time))
}

fn chain_of(tasks: usize) -> anyhow::Result<WorkflowSpec> {
    let parents = |number: usize| number.checked_sub(1).into_iter().collect();
    workflow((0..tasks).map(parents), |_| no_op(0.0))
}

fn fan_of(width: usize) -> anyhow::Result<WorkflowSpec> {
    workflow(fan(width), |_| no_op(0.0))
}

/// One task, this many that depend on it, and one that depends on those: the parents of each.
pub(super) fn fan(width: usize) -> impl Iterator<Item = Vec<usize>> {
    let middle = std::iter::repeat_n(vec![0], width);
    [Vec::new()].into_iter().chain(middle).chain([(1..=width).collect()])
}

/// A workflow of tasks with these parents. Tasks are numbered from 0, and a number leads to a spec.
pub(super) fn workflow(
    parents: impl Iterator<Item = Vec<usize>>,
    spec: impl Fn(usize) -> Spec,
) -> anyhow::Result<WorkflowSpec> {
    let key = |number: usize| format!("task-{number}");
    let needed = |number: usize| Needed { key: key(number), on: Condition::Success };
    let member = |(number, parents): (usize, Vec<usize>)| Member {
        key: key(number),
        spec: spec(number),
        depends_on: parents.into_iter().map(needed).collect(),
    };
    let members = Members::of_workflow(parents.enumerate().map(member).collect());
    let members = members.map_err(|flaws| anyhow::anyhow!("{flaws:?}")).context("a workflow")?;
    Ok(WorkflowSpec {
        name: "bench".to_owned(),
        labels: BTreeMap::new(),
        fail_fast: false,
        idempotency_key: None,
        members,
    })
}
