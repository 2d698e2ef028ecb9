//! Figures and their targets.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::output;

/// One measurement.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Figure {
    name: String,
    value: f64,
    unit: &'static str,
    /// What it is compared with: the bare store in the same run, or another figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<f64>,
    /// The target.
    #[serde(skip_serializing_if = "Option::is_none")]
    must: Option<Target>,
    /// The stretch goal.
    #[serde(skip_serializing_if = "Option::is_none")]
    then: Option<Target>,
}

/// The target of a figure.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Target {
    /// At least this share of the limit.
    Ratio(f64),
    /// At least this.
    AtLeast(f64),
    /// At most this.
    AtMost(f64),
}

impl Target {
    fn is_met(self, value: f64, ratio: Option<f64>) -> bool {
        match self {
            Self::Ratio(least) => ratio.is_some_and(|ratio| ratio >= least),
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Ratio(least) => write!(f, "≥ {least:.2} × limit"),
            Self::AtLeast(least) => write!(f, "≥ {}", number(least)),
            Self::AtMost(most) => write!(f, "≤ {}", number(most)),
        }
    }
}

impl Figure {
    pub(super) fn new(name: &str, value: f64, unit: &'static str) -> Self {
        let name = name.to_owned();
        Self { name, value, unit, limit: None, ratio: None, must: None, then: None }
    }

    /// The rate of tasks in this time.
    pub(super) fn rate(name: &str, tasks: usize, time: Duration) -> Self {
        Self::new(name, tasks as f64 / time.as_secs_f64(), "tasks/s")
    }

    /// Log bytes per task.
    pub(super) fn bytes(name: &str, value: f64) -> Self {
        Self::new(name, value, "B/task")
    }

    /// Compares a rate with its limit.
    pub(super) fn compare_rate(self, tasks: usize, time: Duration) -> Self {
        self.compare(tasks as f64 / time.as_secs_f64())
    }

    /// Compares the figure with its limit.
    pub(super) fn compare(mut self, limit: f64) -> Self {
        self.limit = Some(limit);
        self.ratio = Some(self.value / limit);
        self
    }

    /// The measured value.
    pub(super) fn value(&self) -> f64 {
        self.value
    }

    /// Whether it is less than another.
    pub(super) fn is_below(&self, other: &Self) -> bool {
        self.value < other.value
    }

    pub(super) fn must(mut self, target: Target) -> Self {
        self.must = Some(target);
        self
    }

    pub(super) fn stretch(mut self, target: Target) -> Self {
        self.then = Some(target);
        self
    }

    /// Whether it meets its target.
    pub(super) fn is_met(&self) -> bool {
        self.must.is_none_or(|target| target.is_met(self.value, self.ratio))
    }

    fn verdict(&self) -> &'static str {
        let then = self.then.map(|target| target.is_met(self.value, self.ratio));
        match (self.must, self.is_met(), then) {
            (None, ..) => "",
            (Some(_), false, _) => "MISSED",
            (Some(_), true, Some(true)) => "meets target and stretch goal",
            (Some(_), true, _) => "met",
        }
    }
}

/// The median, a high percentile and the maximum of some times.
pub(super) fn percentiles(name: &str, high: u8, mut millis: Vec<f64>) -> [Figure; 3] {
    millis.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
        let index = ((millis.len() - 1) as f64 * share) as usize;
        millis[index]
    };
    let high = (format!("p{high}"), f64::from(high) / 100.0);
    [("p50".to_owned(), 0.5), high, ("max".to_owned(), 1.0)]
        .map(|(label, share)| Figure::new(&format!("{name} {label}"), at(share), "ms"))
}

pub(super) fn table(figures: &[Figure]) -> String {
    let mut table =
        output::table(&["figure", "value", "unit", "limit", "ratio", "must", "then", ""]);
    for figure in figures {
        let target =
            |target: Option<Target>| target.map(|target| target.to_string()).unwrap_or_default();
        table.add_row([
            figure.name.clone(),
            number(figure.value),
            figure.unit.to_owned(),
            figure.limit.map(number).unwrap_or_default(),
            figure.ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default(),
            target(figure.must),
            target(figure.then),
            figure.verdict().to_owned(),
        ]);
    }
    output::render(&table)
}

fn number(value: f64) -> String {
    if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}
