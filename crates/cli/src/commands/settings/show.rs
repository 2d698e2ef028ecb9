//! Settings as text.

use duly_client::wire::{Backoff, SettingsAnswer, SettingsVersion, SettingsView};

use crate::args::Output;
use crate::output;

/// Prints the settings; their version serves as the id.
pub(super) fn print(answer: &SettingsAnswer, format: Output) -> anyhow::Result<()> {
    match format {
        Output::Json => output::json(answer),
        Output::Table => output::data(&settings_table(answer)),
        Output::Id => output::data(&answer.current.version.to_string()),
    }
}

/// One setting per line, in the form of `duly settings set`.
fn settings_table(answer: &SettingsAnswer) -> String {
    let SettingsAnswer { current, effective } = answer;
    let mut table = output::table(&["setting", "value"]).wrap_last();
    for (key, value) in lines(&current.settings) {
        let here = match key {
            "workerConcurrency" if value == "null" => Some(effective.worker_concurrency),
            "lossLimit" if value == "null" => Some(effective.loss_limit),
            _ => None,
        };
        let started = |number| format!("null (started with {number})");
        table.add_row([key.to_owned(), here.map_or(value, started)]);
    }
    let changed = match current.changed_at {
        Some(at) => format!("version {} of {at}", current.version),
        None => "version 0: never changed".to_owned(),
    };
    let comment = current.comment.as_deref().map(|text| format!("; {}", output::first_line(text)));
    format!("{}\n{changed}{}", output::render(&table), comment.unwrap_or_default())
}

/// Versions, one per line, with their settings.
pub(super) fn table(versions: &[SettingsVersion]) -> String {
    let header = ["version", "changed at", "comment", "settings"];
    let mut table = output::table(&header).shorten(&["comment"], 12).wrap_last();
    for version in versions {
        let lines = lines(&version.settings).into_iter();
        let settings: Vec<_> = lines.map(|(key, value)| format!("{key}={value}")).collect();
        table.add_row([
            version.version.to_string(),
            output::instant(version.changed_at),
            output::first_line(version.comment.as_deref().unwrap_or("-")),
            settings.join(" "),
        ]);
    }
    output::render(&table)
}

fn lines(settings: &SettingsView) -> Vec<(&'static str, String)> {
    let SettingsView { retries, backoff, worker_concurrency, loss_limit, retention, redact } =
        settings;
    let Backoff { strategy, base_seconds, factor, cap_seconds, jitter } = backoff;
    vec![
        ("retries", retries.to_string()),
        ("backoff.strategy", strategy.clone().unwrap_or_default()),
        ("backoff.baseSeconds", or_null(*base_seconds)),
        ("backoff.factor", or_null(*factor)),
        ("backoff.capSeconds", or_null(*cap_seconds)),
        ("backoff.jitter", jitter.clone().unwrap_or_default()),
        ("workerConcurrency", or_null(*worker_concurrency)),
        ("lossLimit", or_null(*loss_limit)),
        ("retention.success", period(retention.success_seconds)),
        ("retention.failed", period(retention.failed_seconds)),
        ("retention.cancelled", period(retention.cancelled_seconds)),
        ("redact", redact.join(",")),
    ]
}

fn or_null(value: Option<impl ToString>) -> String {
    value.map_or("null".to_owned(), |value| value.to_string())
}

/// `7d`, `36h`, `1.5s`: in the largest unit that needs no fraction.
pub(in crate::commands) fn period(seconds: Option<f64>) -> String {
    let Some(seconds) = seconds else { return "forever".to_owned() };
    let units = [(86_400.0, "d"), (3_600.0, "h"), (60.0, "m")];
    let whole = units.into_iter().find(|(size, _)| seconds % size == 0.0);
    let (size, unit) = whole.unwrap_or((1.0, "s"));
    format!("{}{unit}", seconds / size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_read_as_they_are_written() {
        for (seconds, text) in
            [(604_800.0, "7d"), (129_600.0, "36h"), (90.0, "90s"), (120.0, "2m"), (1.5, "1.5s")]
        {
            assert_eq!(period(Some(seconds)), text);
        }
        assert_eq!(period(None), "forever");
    }
}
