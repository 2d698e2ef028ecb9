//! Figures, and the line that carries one to the runner.

use std::time::Duration;

use serde_json::json;

pub(crate) fn rate(name: &str, tasks: usize, time: Duration) -> (String, f64, &'static str) {
    (name.to_owned(), tasks as f64 / time.as_secs_f64(), "tasks/s")
}

/// The middle, the 99th percentile and the maximum.
pub(crate) fn percentiles(name: &str, mut millis: Vec<f64>) -> Vec<(String, f64, &'static str)> {
    millis.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| millis[((millis.len() - 1) as f64 * share) as usize];
    [("p50", 0.5), ("p99", 0.99), ("max", 1.0)]
        .map(|(label, share)| (format!("{name} {label}"), at(share), "ms"))
        .into()
}

pub(crate) fn print(
    peer: &str,
    version: &str,
    figure: &str,
    value: f64,
    unit: &str,
    settings: &str,
) -> anyhow::Result<()> {
    let line = json!({
        "peer": peer, "version": version, "figure": figure,
        "value": value, "unit": unit, "settings": settings,
    });
    println!("{}", serde_json::to_string(&line)?);
    Ok(())
}
