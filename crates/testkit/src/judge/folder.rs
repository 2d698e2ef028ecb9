//! From the folder of a run to its verdict.

use std::path::Path;

use anyhow::Context as _;

use super::Judge;
use super::files::each;
use super::minima::Minima;
use super::verdict::Verdict;
use super::witness;
use crate::history::{Run, file};

/// Judges a run. A file that is missing or cannot be read makes it unknown.
pub fn judge(folder: &Path, minima: &Minima) -> Verdict {
    read(folder, minima).unwrap_or_else(|error| Verdict::unreadable(format!("{error:#}")))
}

fn read(folder: &Path, minima: &Minima) -> anyhow::Result<Verdict> {
    let run = read_run(folder)?;
    let mut judge = Judge::new(run.clone());
    let mut half_lines = each(&folder.join(file::CLIENT), |line| judge.call(line))?;
    half_lines += each(&folder.join(file::EFFECTS), |line| judge.effect(line))?;
    half_lines += each(&folder.join(file::NEMESIS), |line| judge.fault(line))?;
    half_lines += each(&folder.join(file::SHOWN), |line| judge.shown(line))?;
    half_lines += each(&folder.join(file::WORKFLOWS), |line| judge.shown_workflow(line))?;
    let (findings, figures) = judge.decide();
    let ttl = run.ttl_ms.saturating_mul(1_000_000);
    let first =
        if findings.is_empty() { Vec::new() } else { witness::of(folder, ttl, findings.first())? };
    let minima = minima.compare(&figures);
    Ok(Verdict::new(run, half_lines, minima, findings.counts().clone(), first, figures))
}

fn read_run(folder: &Path) -> anyhow::Result<Run> {
    let path = folder.join(file::RUN);
    let name = path.display();
    let text = std::fs::read(&path).with_context(|| format!("cannot read {name}"))?;
    serde_json::from_slice(&text).with_context(|| format!("{name} does not describe a run"))
}
