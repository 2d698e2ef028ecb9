//! What was measured and what it should be.

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
    /// What bare SQLite reached in the same run.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<Target>,
}

/// What a figure must reach.
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

impl Figure {
    pub(super) fn new(name: &str, value: f64, unit: &'static str) -> Self {
        Self { name: name.to_owned(), value, unit, limit: None, ratio: None, target: None }
    }

    /// So many tasks in this time.
    pub(super) fn rate(name: &str, tasks: usize, time: Duration) -> Self {
        Self::new(name, tasks as f64 / time.as_secs_f64(), "tasks/s")
    }

    /// Sets the figure beside the limit.
    pub(super) fn beside(mut self, tasks: usize, time: Duration) -> Self {
        let limit = tasks as f64 / time.as_secs_f64();
        self.limit = Some(limit);
        self.ratio = Some(self.value / limit);
        self
    }

    pub(super) fn must(mut self, target: Target) -> Self {
        self.target = Some(target);
        self
    }

    pub(super) fn is_met(&self) -> bool {
        match self.target {
            None => true,
            Some(Target::Ratio(least)) => self.ratio.is_some_and(|ratio| ratio >= least),
            Some(Target::AtLeast(least)) => self.value >= least,
            Some(Target::AtMost(most)) => self.value <= most,
        }
    }
}

/// The middle, a high percentile and the maximum of some times.
pub(super) fn percentiles(name: &str, high: u8, mut millis: Vec<f64>) -> [Figure; 3] {
    millis.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
        let place = ((millis.len() - 1) as f64 * share) as usize;
        millis[place]
    };
    let high = (format!("p{high}"), f64::from(high) / 100.0);
    [("p50".to_owned(), 0.5), high, ("max".to_owned(), 1.0)]
        .map(|(label, share)| Figure::new(&format!("{name} {label}"), at(share), "ms"))
}

pub(super) fn table(figures: &[Figure]) -> String {
    let mut table = output::table(&["figure", "value", "unit", "limit", "ratio", "target", ""]);
    for figure in figures {
        let target = match figure.target {
            None => String::new(),
            Some(Target::Ratio(least)) => format!("≥ {least:.2} × limit"),
            Some(Target::AtLeast(least)) => format!("≥ {}", number(least)),
            Some(Target::AtMost(most)) => format!("≤ {}", number(most)),
        };
        let verdict = match (figure.target, figure.is_met()) {
            (None, _) => "",
            (Some(_), true) => "met",
            (Some(_), false) => "MISSED",
        };
        table.add_row([
            figure.name.clone(),
            number(figure.value),
            figure.unit.to_owned(),
            figure.limit.map(number).unwrap_or_default(),
            figure.ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default(),
            target,
            verdict.to_owned(),
        ]);
    }
    output::trimmed(&table)
}

fn number(value: f64) -> String {
    if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}
