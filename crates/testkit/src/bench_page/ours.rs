//! The figures of `duly bench`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::bars::{self, Bar};
use super::{Machine, number};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Run {
    command: String,
    date: String,
    version: String,
    labels: BTreeMap<String, String>,
    store: String,
    machine: Machine,
    load_average: Load,
    figures: Vec<Figure>,
}

impl Run {
    /// How many tasks a second are submitted in batches over HTTP.
    pub(super) fn bulk_over_http(&self) -> Option<super::peers::Figure> {
        let figure = self.figures.iter().find(|figure| figure.name == "REST: batch submit")?;
        let date = self.date.get(..10).unwrap_or(&self.date);
        let commit = self.labels.get("commit").map_or("unknown", String::as_str);
        let origin = format!("{date}, commit {commit}");
        Some(super::peers::Figure { value: figure.value, origin })
    }
}

#[derive(Debug, Deserialize)]
struct Load {
    before: Option<f64>,
    after: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct Figure {
    name: String,
    value: f64,
    unit: String,
    limit: Option<f64>,
    ratio: Option<f64>,
    must: Option<Target>,
    then: Option<Target>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Target {
    Ratio(f64),
    RatioAtMost(f64),
    AtLeast(f64),
    AtMost(f64),
}

impl Target {
    fn text(self) -> String {
        match self {
            Self::Ratio(least) => format!("≥ {least:.2} ×"),
            Self::RatioAtMost(most) => format!("≤ {most:.2} ×"),
            Self::AtLeast(least) => format!("≥ {}", number(least)),
            Self::AtMost(most) => format!("≤ {}", number(most)),
        }
    }
}

impl Figure {
    /// Its share of the limit, to be drawn.
    fn share(&self) -> Bar {
        let ratio = self.ratio.unwrap_or_default();
        Bar {
            name: self.name.clone(),
            value: ratio,
            text: format!("{ratio:.2} ({}/s)", number(self.value)),
            bright: self.must.is_none_or(|must| self.meets(must)),
        }
    }

    fn meets(&self, target: Target) -> bool {
        let ratio = self.ratio.unwrap_or_default();
        match target {
            Target::Ratio(least) => ratio >= least,
            Target::RatioAtMost(most) => ratio <= most,
            Target::AtLeast(least) => self.value >= least,
            Target::AtMost(most) => self.value <= most,
        }
    }

    fn verdict(&self) -> &'static str {
        match (self.must, self.then) {
            (None, _) => "",
            (Some(must), _) if !self.meets(must) => "**missed**",
            (Some(_), Some(then)) if self.meets(then) => "meets target and stretch goal",
            (Some(_), _) => "met",
        }
    }

    fn row(&self) -> String {
        let target = |target: Option<Target>| target.map(Target::text).unwrap_or_default();
        format!(
            "| {} | {} {} | {} | {} | {} | {} | {} |\n",
            self.name,
            number(self.value),
            self.unit,
            self.limit.map(number).unwrap_or_default(),
            self.ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default(),
            target(self.must),
            target(self.then),
            self.verdict(),
        )
    }
}

/// Where the figures come from.
fn origin(run: &Run) -> String {
    let labels = run.labels.iter().map(|(key, value)| format!(", {key} {value}"));
    let load = |load: Option<f64>| load.map_or("unknown".to_owned(), |load| format!("{load:.1}"));
    format!(
        "`{}`, {}, version {}{}, {}. {}; load average {} before and {} after.\n\n",
        run.command,
        run.date.get(..10).unwrap_or(&run.date),
        run.version,
        labels.collect::<String>(),
        run.store,
        run.machine.text(),
        load(run.load_average.before),
        load(run.load_average.after),
    )
}

/// All figures, with their limits and targets.
pub(super) fn tables(run: &Run) -> String {
    let head =
        "| figure | value | limit | ratio | must | then | |\n|---|---:|---:|---:|---|---|---|\n";
    let rows = run.figures.iter().map(Figure::row);
    origin(run) + head + &rows.collect::<String>()
}

/// The times of questions: one row for each kind.
pub(super) fn questions(run: &Run) -> String {
    let mut text = origin(run);
    text += "| question | p50 ms | p95 ms | max ms | must | |\n|---|---:|---:|---:|---|---|\n";
    for p95 in &run.figures {
        let Some(name) = p95.name.strip_suffix(" p95") else { continue };
        let other = |suffix: &str| {
            let wanted = format!("{name} {suffix}");
            let found = run.figures.iter().find(|figure| figure.name == wanted);
            found.map(|figure| number(figure.value)).unwrap_or_default()
        };
        text += &format!(
            "| {} | {} | {} | {} | {} | {} |\n",
            name.trim_start_matches("queries: "),
            other("p50"),
            number(p95.value),
            other("max"),
            p95.must.map(Target::text).unwrap_or_default(),
            p95.verdict(),
        );
    }
    text
}

/// Shares of the limit, and rates beside a backlog.
pub(super) fn draw(run: &Run, images: &Path, store: &str) -> anyhow::Result<()> {
    let shares = run.figures.iter().filter(|figure| {
        figure.unit == "tasks/s" && figure.ratio.is_some() && !figure.name.starts_with("growth")
    });
    let bars: Vec<_> = shares.map(Figure::share).collect();
    let marks = [(0.5, "must"), (0.7, "then"), (1.0, "limit")];
    let caption = "share of what the bare store reaches with the same rows";
    bars::draw(&images.join(format!("bench-{store}-limit.svg")), caption, &bars, &marks)?;
    let growth = run.figures.iter().filter(|figure| {
        figure.name.starts_with("growth: whole cycle") && figure.unit == "tasks/s"
    });
    let bar = |figure: &Figure| Bar {
        name: figure.name.trim_start_matches("growth: whole cycle, ").to_owned(),
        value: figure.value,
        text: format!("{}/s", number(figure.value)),
        bright: figure.must.is_none_or(|must| figure.meets(must)),
    };
    let bars: Vec<_> = growth.map(bar).collect();
    let caption = "tasks per second, submitted, run and committed, while others wait";
    bars::draw(&images.join(format!("bench-{store}-growth.svg")), caption, &bars, &[])
}

/// Rates beside a transaction that is held open, from its beginning to its end, as shares of those
/// without one.
pub(super) fn draw_held(run: &Run, images: &Path) -> anyhow::Result<()> {
    let bars: Vec<_> = run.figures.iter().map(Figure::share).collect();
    let caption = "share of the rate without, while somebody holds a transaction open";
    bars::draw(&images.join("bench-held.svg"), caption, &bars, &[(0.8, "must"), (1.0, "without")])
}
