//! Judges a run of the harness from the files in its folder.
//!
//! `judge FOLDER [--min-acked N] [--min-kills N] …`; writes `verdict.json` there, prints a table and
//! the story of the first violation, and ends with 0 if the run is valid, 1 if it is violated, and
//! 2 if that cannot be told: too little happened, or a file is missing.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use duly_testkit::judge::{Decision, Minima, judge};

fn main() -> ExitCode {
    let decision = run(std::env::args().skip(1)).unwrap_or_else(|error| {
        say(&format!("UNKNOWN: {error:#}\n"));
        Decision::Unknown
    });
    ExitCode::from(decision.exit_code())
}

fn run(arguments: impl Iterator<Item = String>) -> anyhow::Result<Decision> {
    let (folder, minima) = parse(arguments)?;
    let verdict = judge(&folder, &minima);
    say(&verdict.to_string());
    match verdict.write(&folder) {
        Err(error) if verdict.verdict != Decision::Violated => Err(error),
        _ => Ok(verdict.verdict),
    }
}

fn parse(mut arguments: impl Iterator<Item = String>) -> anyhow::Result<(PathBuf, Minima)> {
    let (mut folder, mut minima) = (None, Minima::default());
    while let Some(argument) = arguments.next() {
        let Some(name) = argument.strip_prefix("--min-") else {
            anyhow::ensure!(folder.is_none() && !argument.starts_with('-'), "what is {argument}?");
            folder = Some(PathBuf::from(argument));
            continue;
        };
        let value = arguments.next().with_context(|| format!("{argument} needs a number"))?;
        let value: u32 = value.parse().with_context(|| format!("{argument} {value}"))?;
        minima.ask(name, f64::from(value))?;
    }
    Ok((folder.context("usage: judge FOLDER [--min-acked N] …")?, minima))
}

/// Whoever does not read on has the verdict in the file and in the code of the exit.
fn say(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}
