//! `duly bench`: how fast this machine runs tasks, beside what bare SQLite could do on it.

mod engine;
mod figures;
mod http;
mod punctuality;
mod queries;
mod remote;
mod rest;
mod world;

use std::path::Path;

use anyhow::Context as _;
use duly_store::sqlite::limit::{self, Layout, Limit};

use self::figures::Figure;
use crate::args::{BenchArgs, Output, Part};
use crate::exit::Ending;
use crate::output;

/// Tasks in one call of the limit, and of the benchmarks: what the store takes at once.
const BATCH: usize = duly_core::limits::STORE_BATCH;

pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<Ending> {
    let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
    let scratch = Scratch::new(&args.data)?;
    let mut figures = Vec::new();
    if args.only == Some(Part::Queries) {
        runtime.block_on(queries::measure(&scratch, args.tasks, &mut figures))?;
    } else {
        let limit = limits(&scratch, args.tasks, &mut figures)?;
        runtime.block_on(parts(&scratch, args, &limit, &mut figures))?;
    }
    match args.output {
        Output::Json => output::json(&figures)?,
        Output::Table | Output::Id => output::data(&figures::table(&figures))?,
    }
    let missed = figures.iter().filter(|figure| !figure.is_met()).count();
    if missed > 0 {
        output::say(&format!("{missed} targets missed"));
        return Ok(Ending::Unwell);
    }
    output::say("all targets met");
    Ok(Ending::Ok)
}

/// The parts that are about running tasks.
async fn parts(
    scratch: &Scratch,
    args: &BenchArgs,
    limit: &Limit,
    figures: &mut Vec<Figure>,
) -> anyhow::Result<()> {
    let wants = |part| args.only.is_none_or(|only| only == part);
    if wants(Part::Engine) {
        engine::measure(scratch, args.tasks, limit, figures).await?;
    }
    if wants(Part::Rest) {
        rest::measure(scratch, args.tasks, limit, figures).await?;
    }
    if wants(Part::Remote) {
        remote::measure(scratch, args.tasks, figures).await?;
    }
    if wants(Part::Punctuality) {
        punctuality::measure(scratch, figures).await?;
    }
    Ok(())
}

/// The directory of a run: one fresh folder per measurement, gone at the end.
struct Scratch {
    root: std::path::PathBuf,
}

impl Scratch {
    fn new(data: &Path) -> anyhow::Result<Self> {
        let root = data.join(format!("bench-{}", std::process::id()));
        std::fs::create_dir_all(&root)
            .with_context(|| format!("cannot make {}", root.display()))?;
        Ok(Self { root })
    }

    fn folder(&self, name: &str) -> std::path::PathBuf {
        self.root.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.root));
    }
}

/// Runs of each throughput measurement; the best one counts. The first on a cold disk is up to
/// half as fast, and taking turns keeps that from favouring a layout.
const ROUNDS: usize = 3;

/// The bare store: the figures that the others are held against.
fn limits(scratch: &Scratch, tasks: usize, figures: &mut Vec<Figure>) -> anyhow::Result<Limit> {
    let mut best: [Option<Limit>; 2] = [None, None];
    for round in 1..=ROUNDS {
        output::say(&format!("bare SQLite: {tasks} tasks in both layouts, {round} of {ROUNDS}"));
        for (best, layout) in best.iter_mut().zip([Layout::DueTable, Layout::PartialIndex]) {
            let folder = scratch.folder("limit");
            let limit = limit::run(&folder.join("limit.db"), layout, tasks, BATCH)?;
            std::fs::remove_dir_all(&folder)?;
            if best.is_none_or(|best| limit.cycle() < best.cycle()) {
                *best = Some(limit);
            }
        }
    }
    let [Some(limit), Some(rival)] = best else { unreachable!("every layout was run") };
    for (name, limit) in [("due table", &limit), ("partial index", &rival)] {
        let rate =
            |part: &str, time| Figure::rate(&format!("limit, {name}: {part}"), limit.tasks, time);
        figures.push(rate("submit", limit.submit));
        figures.push(rate("claim and finish", limit.drain()));
        figures.push(rate("whole cycle", limit.cycle()));
        let bytes = limit.log_bytes_per_task as f64;
        figures.push(Figure::new(&format!("limit, {name}: log"), bytes, "B/task"));
    }
    Ok(limit)
}
