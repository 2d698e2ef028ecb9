//! The figures of `make bench-peers`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::bars::{self, Bar};
use super::{Machine, number};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Run {
    date: String,
    commit: String,
    machine: Machine,
    versions: BTreeMap<String, String>,
    load_average: Load,
    rows: Vec<Row>,
}

#[derive(Debug, Deserialize)]
struct Load {
    before: Vec<f64>,
    after: Vec<f64>,
}

#[derive(Debug, Deserialize)]
struct Row {
    peer: String,
    figure: String,
    value: f64,
    ratio: Option<f64>,
}

const OURS: [&str; 2] = ["duly", "duly-postgres"];
const COLUMNS: [(&str, &str); 7] = [
    ("submit single", "submit, 1 client /s"),
    ("submit bulk", "submit, bulk /s"),
    ("drain", "drain /s"),
    ("idle latency p50", "idle p50 ms"),
    ("idle latency p99", "idle p99 ms"),
    ("lateness p50", "late p50 ms"),
    ("lateness p99", "late p99 ms"),
];

impl Run {
    fn peers(&self) -> Vec<&str> {
        let mut peers: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !peers.contains(&row.peer.as_str()) {
                peers.push(&row.peer);
            }
        }
        peers
    }

    fn row(&self, peer: &str, figure: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.peer == peer && row.figure == figure)
    }
}

/// All figures, and ours as multiples of theirs.
pub(super) fn tables(run: &Run) -> String {
    let load =
        |load: &[f64]| load.first().map_or("unknown".to_owned(), |load| format!("{load:.1}"));
    let others = ["PostgreSQL", "Redis", "Node", "Python", "Rust"];
    let others = others.iter().filter_map(|name| Some((name, run.versions.get(*name)?)));
    let others: Vec<_> = others.map(|(name, version)| format!("{name} {version}")).collect();
    let origin = format!(
        "`make bench-peers`, {}, commit {}. {}; {}; load average {} before and {} after.\n\n",
        run.date.get(..10).unwrap_or(&run.date),
        run.commit.get(..12).unwrap_or(&run.commit),
        run.machine.text(),
        others.join(", "),
        load(&run.load_average.before),
        load(&run.load_average.after),
    );
    let measured = table(run, &run.peers(), |row| Some(number(row.value)));
    let theirs: Vec<_> = run.peers().into_iter().filter(|peer| !OURS.contains(peer)).collect();
    let ratios = table(run, &theirs, |row| row.ratio.map(|ratio| format!("{ratio:.2}")));
    format!(
        "{origin}{measured}\nOurs divided by theirs, ours on PostgreSQL where theirs is: more is better \
         for us where it is a rate, less where it is a time.\n\n{ratios}"
    )
}

fn table(run: &Run, peers: &[&str], cell: impl Fn(&Row) -> Option<String>) -> String {
    let heads = COLUMNS.map(|(_, head)| format!(" {head} |")).concat();
    let mut text = format!("| |{heads}\n|---|{}\n", "---:|".repeat(COLUMNS.len()));
    for peer in peers {
        let version = run.versions.get(*peer).map_or("", String::as_str);
        text += &format!("| {peer} {version} |");
        for (figure, _) in COLUMNS {
            let value = run.row(peer, figure).and_then(&cell);
            text += &format!(" {} |", value.unwrap_or_else(|| "–".to_owned()));
        }
        text.push('\n');
    }
    text
}

/// Drain and idle latency of all.
pub(super) fn draw(run: &Run, images: &Path) -> anyhow::Result<()> {
    let drain = images.join("bench-peers-drain.svg");
    bars::draw(&drain, "tasks per second out of a backlog", &bars(run, "drain", "/s"), &[])?;
    let idle = images.join("bench-peers-idle.svg");
    let mut bars = bars(run, "idle latency p99", " ms");
    bars.reverse();
    bars::draw(&idle, "milliseconds from the submit of a lone task to its start, p99", &bars, &[])
}

/// One bar for each, the largest first.
fn bars(run: &Run, figure: &str, unit: &str) -> Vec<Bar> {
    let rows = run.peers().into_iter().filter_map(|peer| run.row(peer, figure));
    let bar = |row: &Row| Bar {
        name: row.peer.clone(),
        value: row.value,
        text: format!("{}{unit}", number(row.value)),
        bright: OURS.contains(&row.peer.as_str()),
    };
    let mut bars: Vec<_> = rows.map(bar).collect();
    bars.sort_by(|a, b| b.value.total_cmp(&a.value));
    bars
}
