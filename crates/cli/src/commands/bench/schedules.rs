//! Schedules: how soon a new leader knows many of them, and how late slots start while many are there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use duly_core::limits::SCHEDULES;
use duly_core::name::{ScheduleName, TenantName};
use duly_core::ports::clock::Clock as _;
use duly_core::ports::store::Expected;
use duly_core::schedule::{ScheduleDraft, ScheduleStatus, Template};
use duly_engine::Engine;
use duly_engine::command::schedules::NewSchedule;
use duly_store::clock::SystemClock;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::figures::{Figure, Target, percentiles};
use super::punctuality::{Lateness, Starts};
use super::run::Run;
use super::world::{World, no_op};

pub(super) const STEPS: usize = 2;

/// Schedules that fire every second, every other one of which is decided at its slot and not before.
const BUSY: usize = 500;
const SECONDS: usize = 10;
/// The time to create them in, so that creating is not measured with them.
const CREATION: Duration = Duration::from_secs(5);
/// Callers that create schedules.
const CALLERS: usize = 64;

pub(super) async fn measure(run: &mut Run) -> anyhow::Result<()> {
    let quiet = SCHEDULES as usize - BUSY;
    run.step(&format!("schedules: {SCHEDULES} are created, and then read by a new leader"));
    let world = World::open(run.new_site("schedules").await?).await?;
    create(&world.engine, "quiet", quiet, |_| yearly()).await?;
    create(&world.engine, "first", 1, |_| every_second("skip")).await?;
    let site = world.close().await;
    let opened = Instant::now();
    let world = World::open(site).await?;
    let (starts, mut started) = mpsc::unbounded_channel();
    let worker = world.work(Starts(starts)).await?;
    started.recv().await.expect("the handler lives");
    let name = format!("schedules: first slot after a start, {SCHEDULES} there");
    let figure = Figure::new(&name, opened.elapsed().as_secs_f64(), "s");
    run.add(figure.must(Target::AtMost(5.0)));
    world.engine.delete_schedule(&tenant(), &name_of("first", 0), Expected::Any).await?;
    worker.end().await?;

    run.step(&format!("schedules: {BUSY} fire every second for {SECONDS} s"));
    let (late, mut lateness) = mpsc::unbounded_channel();
    let worker = world.work(Lateness { clock: SystemClock::default(), late }).await?;
    let policy = |number: usize| if number.is_multiple_of(2) { "skip" } else { "allow" };
    let start_at = SystemClock::default().now().plus(CREATION).to_string();
    let busy = move |number| ScheduleDraft {
        start_at: Some(start_at.clone()),
        ..every_second(policy(number))
    };
    create(&world.engine, "busy", BUSY, busy).await?;
    let mut millis = Vec::with_capacity(BUSY * SECONDS);
    while millis.len() < BUSY * SECONDS {
        millis.push(lateness.recv().await.expect("the handler lives"));
    }
    let early = millis.iter().filter(|late| **late < 0.0).count();
    run.add(Figure::new("schedules: early", early as f64, "slots").must(Target::AtMost(0.0)));
    let [p50, p99, max] = percentiles("schedules: late", 99, millis);
    run.figures.extend([p50, p99.must(Target::AtMost(50.0)), max]);
    worker.end().await?;
    world.remove().await
}

fn tenant() -> TenantName {
    TenantName::default_tenant()
}

fn name_of(kind: &str, number: usize) -> ScheduleName {
    ScheduleName::new(&format!("{kind}-{number}")).expect("a valid name")
}

fn yearly() -> ScheduleDraft {
    ScheduleDraft { cron: Some("30 4 1 1 *".to_owned()), ..ScheduleDraft::default() }
}

fn every_second(overlap: &str) -> ScheduleDraft {
    ScheduleDraft {
        every: Some("1s".to_owned()),
        overlap: Some(overlap.to_owned()),
        ..ScheduleDraft::default()
    }
}

/// Creates schedules of no-ops, from many callers at once.
async fn create(
    engine: &Engine,
    kind: &'static str,
    count: usize,
    draft: impl Fn(usize) -> ScheduleDraft + Clone + Send + 'static,
) -> anyhow::Result<()> {
    let next = Arc::new(AtomicUsize::new(0));
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (engine, next, draft) = (engine.clone(), Arc::clone(&next), draft.clone());
        callers.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return anyhow::Ok(());
                }
                let now = SystemClock::default().now();
                let rule = draft(number).check(now).expect("a valid rule");
                let template = Template::task(no_op(0.0)).expect("a valid template");
                let new = NewSchedule {
                    rule,
                    template,
                    status: ScheduleStatus::Active,
                    note: None,
                    labels: BTreeMap::new(),
                    managed: false,
                };
                let name = name_of(kind, number);
                engine.put_schedule(&tenant(), &name, new, Expected::Absent).await?;
            }
        });
    }
    while let Some(caller) = callers.join_next().await {
        caller??;
    }
    Ok(())
}
