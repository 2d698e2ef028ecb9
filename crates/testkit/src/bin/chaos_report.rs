//! Turns a verdict into a table and a plot of docs/chaos.md, so that no figure is typed by hand:
//! `chaos_report FOLDER docs/chaos.md run docs/images/chaos.svg`, or `nodes` for a run on many.

use std::path::Path;

use anyhow::Context as _;
use duly_testkit::page::{filled, grouped};
use plotters::prelude::*;
use serde_json::Value;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, page, place, plot] = &arguments[..] else {
        anyhow::bail!("usage: chaos_report FOLDER PAGE PLACE PLOT");
    };
    let verdict = std::fs::read(Path::new(folder).join("verdict.json"))?;
    let verdict: Value = serde_json::from_slice(&verdict)?;
    draw(&verdict, Path::new(plot))?;
    let text = std::fs::read_to_string(page).with_context(|| format!("cannot read {page}"))?;
    std::fs::write(page, filled(&text, place, &table(&verdict))?)?;
    Ok(())
}

fn figure(verdict: &Value, name: &str) -> String {
    let value = &verdict["figures"][name];
    match value.as_f64() {
        Some(number) if value.is_f64() => format!("{number:.1}"),
        _ => value.as_u64().map(grouped).unwrap_or_default(),
    }
}

const WORK: [(&str, &str); 5] = [
    ("acknowledged tasks", "acked"),
    ("acknowledged workflows, with some of these tasks", "workflows"),
    ("executions", "executions"),
    ("of these, of tasks submitted with a delay or a jitter", "delayed_starts"),
    ("tasks executed under two epochs or more", "tasks_executed_again"),
];
/// Those that a run did not have are left out.
const FAULTS: [(&str, &str); 14] = [
    ("kill -9 (servers and workers)", "kills"),
    ("of these, of servers", "server_kills"),
    ("of these, of the node that led", "leader_kills"),
    ("longest time without a leader, milliseconds", "leaderless_ms"),
    ("processes stopped for a while", "pauses"),
    ("processes restarted", "restarts"),
    ("of these, immediate stops of the database", "database_restarts"),
    ("times that the database ended all connections", "terminations"),
    ("connections cut", "cuts"),
    ("links held", "holds"),
    ("links slowed", "delays"),
    ("answers dropped after the commit", "resets"),
    ("disk full", "disk_full"),
    ("faults with work under way, percent", "in_flight_percent"),
];
const CONSEQUENCES: [(&str, &str); 4] = [
    ("leases lost", "lease_losses"),
    ("outcomes refused", "refusals"),
    ("calls whose answer is unknown", "unknown_answers"),
    ("early starts", "early_starts"),
];

fn table(verdict: &Value) -> String {
    let seconds = series(verdict).len();
    let faults = FAULTS.into_iter().filter(|(_, name)| verdict["figures"][name] != 0);
    let rows = WORK.into_iter().chain(faults).chain(CONSEQUENCES);
    let mut text = format!(
        "Seed {}, version {}, {seconds} s from the first line to the last: **{}**, {} violations.\n\n\
         | what | how many |\n|---|---:|\n",
        verdict["seed"],
        verdict["version"].as_str().unwrap_or_default(),
        verdict["verdict"].as_str().unwrap_or_default(),
        violations(verdict),
    );
    for (what, name) in rows {
        text += &format!("| {what} | {} |\n", figure(verdict, name));
    }
    text
}

fn violations(verdict: &Value) -> u64 {
    let counts = verdict["violations"].as_object();
    counts.map_or(0, |counts| counts.values().filter_map(Value::as_u64).sum())
}

fn series(verdict: &Value) -> Vec<u64> {
    let seconds = verdict["figures"]["ended_per_second"].as_array();
    seconds.into_iter().flatten().filter_map(Value::as_u64).collect()
}

/// Runs that ended per second, and a mark for every fault.
fn draw(verdict: &Value, path: &Path) -> anyhow::Result<()> {
    let ended = series(verdict);
    let seconds = u32::try_from(ended.len())?;
    let most = ended.iter().copied().max().unwrap_or(1).max(1);
    let root = SVGBackend::new(path, (960, 360)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption("runs that ended per second, and faults", ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..f64::from(seconds), 0..most + most / 10 + 1)?;
    chart.configure_mesh().x_desc("seconds").light_line_style(TRANSPARENT).draw()?;
    for mark in verdict["figures"]["fault_marks"].as_array().into_iter().flatten() {
        let second = mark["begin_s"].as_f64().unwrap_or_default();
        let colour = match mark["fault"].as_str() {
            Some("kill") => RED,
            Some("pause") => BLUE,
            Some("disk-full") => MAGENTA,
            _ => RGBColor(160, 160, 160),
        };
        let line = vec![(second, 0), (second, most / 20 + 1)];
        chart.draw_series(std::iter::once(PathElement::new(line, colour)))?;
    }
    let points = (0..seconds).map(f64::from).zip(ended.iter().copied());
    chart.draw_series(LineSeries::new(points, RGBColor(20, 120, 70).stroke_width(2)))?;
    root.present()?;
    Ok(())
}
