//! The figures of `make bench-peers`: embedded engines beside embedded engines, and what crosses a
//! socket beside what crosses a socket.

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
#[serde(rename_all = "camelCase")]
struct Row {
    peer: String,
    figure: String,
    value: f64,
    /// Which of ours has the same kind of store.
    beside_ours: Option<String>,
}

/// Bulk submits over HTTP by `make bench`, for a run of the peers that did not measure them.
#[derive(Debug, Default)]
pub(super) struct BulkOverHttp {
    pub(super) sqlite: Option<Figure>,
    pub(super) postgres: Option<Figure>,
}

/// A figure of another run.
#[derive(Debug)]
pub(super) struct Figure {
    pub(super) value: f64,
    /// When and at which commit it was measured.
    pub(super) origin: String,
}

const SQLITE: &str = "duly";
const POSTGRES: &str = "duly-postgres";

const COLUMNS: [&str; 7] = [
    "submit, 1 client /s",
    "submit, bulk /s",
    "drain /s",
    "idle p50 ms",
    "idle p99 ms",
    "late p50 ms",
    "late p99 ms",
];
const FIGURES: [&str; 7] = [
    "submit single",
    "submit bulk",
    "drain",
    "idle latency p50",
    "idle latency p99",
    "lateness p50",
    "lateness p99",
];
const DRAIN: usize = 2;
const IDLE_P99: usize = 4;

/// One line of a table.
struct Line {
    name: String,
    version: String,
    values: [Option<f64>; 7],
    is_ours: bool,
    /// Ours that its figures are divided by.
    beside: Option<[Option<f64>; 7]>,
}

/// A page and pictures of one run.
pub(super) struct Comparison<'a> {
    run: &'a Run,
    bulk: &'a BulkOverHttp,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(run: &'a Run, bulk: &'a BulkOverHttp) -> Self {
        Self { run, bulk }
    }

    fn value(&self, peer: &str, figure: &str) -> Option<f64> {
        let row = self.run.rows.iter().find(|row| row.peer == peer && row.figure == figure);
        row.map(|row| row.value)
    }

    /// The engine in the process of its caller. Its lone submits were measured over HTTP.
    fn in_process(&self, peer: &str) -> [Option<f64>; 7] {
        let mut values = FIGURES.map(|figure| self.value(peer, figure));
        values[0] = None;
        values
    }

    /// Clients and workers that reach a server over HTTP. Times were not measured that way.
    fn over_http(&self, peer: &str) -> [Option<f64>; 7] {
        let other = if peer == SQLITE { &self.bulk.sqlite } else { &self.bulk.postgres };
        let bulk = self.value(peer, "submit bulk over HTTP");
        [
            self.value(peer, "submit single"),
            bulk.or(other.as_ref().map(|figure| figure.value)),
            self.value(peer, "drain over HTTP"),
            None,
            None,
            None,
            None,
        ]
    }

    fn ours(&self, name: &str, peer: &str, values: [Option<f64>; 7]) -> Line {
        let version = self.run.versions.get(peer).cloned().unwrap_or_default();
        Line { name: name.to_owned(), version, values, is_ours: true, beside: None }
    }

    /// The others whose store is a file of their own process, or those whose store is a server.
    fn theirs(&self, embedded: bool) -> Vec<Line> {
        let mut names: Vec<&Row> = Vec::new();
        for row in &self.run.rows {
            let is_new = names.iter().all(|known| known.peer != row.peer);
            let is_theirs = ![SQLITE, POSTGRES].contains(&row.peer.as_str());
            if is_new && is_theirs && row.peer.contains("-sqlite") == embedded {
                names.push(row);
            }
        }
        names.into_iter().map(|row| self.their_line(row, embedded)).collect()
    }

    fn their_line(&self, row: &Row, embedded: bool) -> Line {
        let beside = row.beside_ours.as_deref().unwrap_or(SQLITE);
        let in_process = self.in_process(beside);
        let mut ours = if embedded { in_process } else { self.over_http(beside) };
        if beside == POSTGRES {
            // Both are libraries that reach PostgreSQL over a socket.
            ours[3..].copy_from_slice(&in_process[3..]);
        }
        Line {
            name: display_name(&row.peer),
            version: self.run.versions.get(&row.peer).cloned().unwrap_or_default(),
            values: FIGURES.map(|figure| self.value(&row.peer, figure)),
            is_ours: false,
            beside: Some(ours),
        }
    }

    fn embedded(&self) -> Vec<Line> {
        let mut lines = vec![self.ours("**duly**, SQLite", SQLITE, self.in_process(SQLITE))];
        lines.extend(self.theirs(true));
        lines
    }

    fn servers(&self) -> Vec<Line> {
        let mut lines = vec![
            self.ours("**duly** over HTTP, SQLite", SQLITE, self.over_http(SQLITE)),
            self.ours("**duly** over HTTP, PostgreSQL", POSTGRES, self.over_http(POSTGRES)),
            self.ours("**duly** as a library, PostgreSQL", POSTGRES, self.in_process(POSTGRES)),
        ];
        lines.extend(self.theirs(false));
        lines
    }

    /// Where it was measured, and both comparisons.
    pub(super) fn tables(&self) -> String {
        let (embedded, servers) = (self.embedded(), self.servers());
        format!(
            "{}### Embedded\n\nThe store is a file of the process that submits and runs the tasks; nothing \
             crosses a socket.\n\n{}\n{RATIOS}\n\n{}\n### Servers\n\nClients and workers reach \
             the server or the store over a socket.{}\n\n{}\n{RATIOS} Rates are those of ours over HTTP, on \
             PostgreSQL where theirs is; times those of ours as a library on PostgreSQL.\n\n{}",
            self.origin(),
            table(&embedded),
            ratios(&embedded),
            self.bulk_origin(),
            table(&servers),
            ratios(&servers),
        )
    }

    fn origin(&self) -> String {
        let run = self.run;
        let load =
            |load: &[f64]| load.first().map_or("unknown".to_owned(), |load| format!("{load:.1}"));
        let others = ["PostgreSQL", "Redis", "Node", "Python", "Rust"];
        let others = others.iter().filter_map(|name| Some((name, run.versions.get(*name)?)));
        let others: Vec<_> = others.map(|(name, version)| format!("{name} {version}")).collect();
        format!(
            "`make bench-peers`, {}, commit {}. {}; {}; load average {} before and {} after. \
             *River for Rust* is the crate `riverqueue`, not River for Go.\n\n",
            run.date.get(..10).unwrap_or(&run.date),
            run.commit.get(..12).unwrap_or(&run.commit),
            run.machine.text(),
            others.join(", "),
            load(&run.load_average.before),
            load(&run.load_average.after),
        )
    }

    /// Says where bulk submits over HTTP come from if it is another run.
    fn bulk_origin(&self) -> String {
        let figures =
            [(SQLITE, "SQLite", &self.bulk.sqlite), (POSTGRES, "PostgreSQL", &self.bulk.postgres)];
        let other = |(peer, store, figure): (&str, &str, &Option<Figure>)| {
            let is_missing = self.value(peer, "submit bulk over HTTP").is_none();
            let figure = figure.as_ref().filter(|_| is_missing)?;
            Some(format!("{store}: {}", figure.origin))
        };
        let origins: Vec<_> = figures.into_iter().filter_map(other).collect();
        if origins.is_empty() {
            return String::new();
        }
        format!(
            " The bulk submits of ours over HTTP are from runs of `make bench` on a like machine ({}).",
            origins.join("; ")
        )
    }

    /// Drain and idle latency of both comparisons.
    pub(super) fn draw(&self, images: &Path) -> anyhow::Result<()> {
        for (name, what, lines) in [
            ("embedded", "embedded on SQLite", self.embedded()),
            ("server", "over a socket", self.servers()),
        ] {
            let caption = format!("tasks per second out of a backlog, {what}");
            let drain = images.join(format!("bench-peers-{name}.svg"));
            bars::draw(&drain, &caption, &bars(&lines, DRAIN, "/s"), &[])?;
            let caption = format!("ms from the submit of a lone task to its start, p99, {what}");
            let idle = images.join(format!("bench-peers-{name}-idle.svg"));
            let mut bars = bars(&lines, IDLE_P99, " ms");
            bars.reverse();
            bars::draw(&idle, &caption, &bars, &[])?;
        }
        Ok(())
    }
}

const RATIOS: &str =
    "Ours divided by theirs: more is better for us where it is a rate, less where it is a time.";

/// The name of a peer as its users know it.
fn display_name(peer: &str) -> String {
    match peer.strip_prefix("river-") {
        Some("postgres") => "River for Rust, PostgreSQL".to_owned(),
        Some("sqlite") => "River for Rust, SQLite".to_owned(),
        _ => peer.to_owned(),
    }
}

fn table(lines: &[Line]) -> String {
    rows(lines.iter().map(|line| {
        (format!("{} ({})", line.name, line.version), line.values.map(|value| value.map(number)))
    }))
}

fn ratios(lines: &[Line]) -> String {
    rows(lines.iter().filter_map(|line| {
        let beside = line.beside?;
        let mut cells = [const { None }; 7];
        for (cell, (ours, theirs)) in cells.iter_mut().zip(beside.iter().zip(line.values)) {
            let pair = ours.zip(theirs.filter(|theirs| *theirs > 0.0));
            *cell = pair.map(|(ours, theirs)| format!("{:.2}", ours / theirs));
        }
        Some((format!("{} ({})", line.name, line.version), cells))
    }))
}

fn rows(lines: impl Iterator<Item = (String, [Option<String>; 7])>) -> String {
    let heads = COLUMNS.map(|head| format!(" {head} |")).concat();
    let mut text = format!("| |{heads}\n|---|{}\n", "---:|".repeat(COLUMNS.len()));
    for (name, cells) in lines {
        let cells = cells.map(|cell| format!(" {} |", cell.unwrap_or_else(|| "–".to_owned())));
        text += &format!("| {name} |{}\n", cells.concat());
    }
    text
}

/// One bar for each, the largest first.
fn bars(lines: &[Line], column: usize, unit: &str) -> Vec<Bar> {
    let bar = |line: &Line| {
        let value = line.values[column]?;
        let text = format!("{}{unit}", number(value));
        Some(Bar { name: line.name.replace('*', ""), value, text, bright: line.is_ours })
    };
    let mut bars: Vec<_> = lines.iter().filter_map(bar).collect();
    bars.sort_by(|a, b| b.value.total_cmp(&a.value));
    bars
}

#[cfg(test)]
mod tests;
