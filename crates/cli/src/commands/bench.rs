//! `duly bench`: how fast this machine runs tasks, compared with the bare store.

mod auth;
mod disk;
mod engine;
mod events;
mod figures;
mod growth;
mod held;
mod http;
mod limits;
mod machine;
mod memory;
mod progress;
mod punctuality;
mod queries;
mod recovery;
mod remote;
mod report;
mod rest;
mod run;
mod schedules;
mod slow;
mod store_site;
mod workflows;
mod world;

use std::path::Path;

use anyhow::Context as _;

use self::report::BenchReport;
use self::run::Run;
use crate::args::{BenchArgs, BenchStore, Output, Part};
use crate::exit::{Ending, Usage};
use crate::output;

/// Tasks in one call of the limit and the benchmarks: the largest batch of the store.
const BATCH: usize = duly_core::limits::STORE_BATCH;
/// Runs of each throughput measurement; the best one counts. The first run on a cold disk may take
/// twice as long, so measurements alternate to favour no layout.
const ROUNDS: usize = 3;

pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<Ending> {
    let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
    let store = args.bench_store()?;
    if let Some(refusal) = unsupported_part(args, &store) {
        return Err(Usage::new(refusal).into());
    }
    let mut report = runtime.block_on(BenchReport::begin(args, &store))?;
    let mut run = Run::new(&store, args.tasks, steps(args))?;
    let outcome = runtime.block_on(measure(&mut run, args));
    run.progress.clear();
    outcome?;
    let missed = run.figures.iter().filter(|figure| !figure.is_met()).count();
    report.end(std::mem::take(&mut run.figures));
    if let Some(path) = &args.save {
        report.save(path)?;
    }
    match args.output {
        Output::Json => output::json(&report)?,
        Output::Table | Output::Id => output::data(&figures::table(report.figures()))?,
    }
    if missed > 0 {
        output::say(&format!(
            "{missed} targets missed; they assume an idle machine: stop other programs and try again"
        ));
        return Ok(Ending::Unsuccessful);
    }
    output::say("all targets met");
    Ok(Ending::Ok)
}

/// Why a requested part cannot be measured on this store.
fn unsupported_part(args: &BenchArgs, store: &BenchStore) -> Option<&'static str> {
    match store {
        BenchStore::Folder(_) if wants(args, Part::Held) => {
            Some("`held` measures open transactions on a server; pass --store postgres://…")
        }
        BenchStore::Server(_) if wants(args, Part::Queries) => {
            Some("`queries` measures a file; pass --store sqlite:DIR")
        }
        _ => None,
    }
}

/// Whether this run measures a part.
fn wants(args: &BenchArgs, part: Part) -> bool {
    let by_default = !matches!(part, Part::Queries | Part::Held);
    if args.only.is_empty() { by_default } else { args.only.contains(&part) }
}

fn steps(args: &BenchArgs) -> usize {
    let of = |part, steps| if wants(args, part) { steps } else { 0 };
    let limits = if wants_limits(args) { disk::STEPS + limits::STEPS } else { 0 };
    limits
        + of(Part::Growth, growth::steps(&args.backlog))
        + of(Part::Engine, engine::STEPS)
        + of(Part::Rest, rest::STEPS)
        + of(Part::Remote, remote::STEPS)
        + of(Part::Auth, auth::STEPS + slow::STEPS)
        + of(Part::Punctuality, punctuality::STEPS)
        + of(Part::Recovery, memory::STEPS + recovery::STEPS)
        + of(Part::Workflows, workflows::STEPS)
        + of(Part::Schedules, schedules::STEPS)
        + of(Part::Events, events::STEPS)
        + of(Part::Queries, queries::STEPS)
        + of(Part::Held, held::STEPS)
}

/// Whether a part compares itself with the limit.
fn wants_limits(args: &BenchArgs) -> bool {
    wants(args, Part::Engine) || wants(args, Part::Rest)
}

async fn measure(run: &mut Run, args: &BenchArgs) -> anyhow::Result<()> {
    if wants(args, Part::Growth) {
        growth::measure(run, &args.backlog).await?;
    }
    if wants_limits(args) {
        if let Some(folder) = run.folder().map(Path::to_owned) {
            disk::measure(run, &folder)?;
        }
        let limits = limits::measure(run).await?;
        if wants(args, Part::Engine) {
            engine::measure(run, &limits).await?;
        }
        if wants(args, Part::Rest) {
            rest::measure(run, &limits).await?;
        }
    }
    if wants(args, Part::Remote) {
        remote::measure(run).await?;
    }
    if wants(args, Part::Auth) {
        auth::measure(run).await?;
        slow::measure(run).await?;
    }
    if wants(args, Part::Punctuality) {
        punctuality::measure(run).await?;
    }
    if wants(args, Part::Recovery) {
        memory::measure(run).await?;
        recovery::measure(run).await?;
    }
    if wants(args, Part::Workflows) {
        workflows::measure(run).await?;
    }
    if wants(args, Part::Schedules) {
        schedules::measure(run).await?;
    }
    if wants(args, Part::Events) {
        events::measure(run).await?;
    }
    if wants(args, Part::Queries) {
        queries::measure(run).await?;
    }
    if wants(args, Part::Held) {
        held::measure(run, args.hold).await?;
    }
    Ok(())
}
