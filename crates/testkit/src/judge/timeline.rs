//! The story of one violation: all its lines, in order of time.

use std::fmt::{self, Display};

use serde_json::Value;

use super::witness::{Told, Witness};

impl Display for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let violation = &self.violation;
        writeln!(f, "{}: {}", violation.class.name(), self.sentence)?;
        writeln!(f, "  {}", violation.detail)?;
        for task in &violation.tasks {
            writeln!(f, "  task {task}")?;
        }
        for key in &violation.keys {
            writeln!(f, "  key {key}")?;
        }
        let first = self.lines.iter().map(|line| line.mono_ns).min().unwrap_or(0);
        self.lines.iter().try_for_each(|line| tell(f, line, first))
    }
}

fn tell(f: &mut fmt::Formatter<'_>, told: &Told, first: u64) -> fmt::Result {
    let micros = (told.mono_ns - first) / 1_000;
    let name = told.file.trim_end_matches(".jsonl");
    let mut line = told.line.clone();
    if let Value::Object(fields) = &mut line {
        // The time stands in front, and what the line is about stands above.
        fields.retain(|field, _| !["mono_ns", "seq"].contains(&field.as_str()));
    }
    writeln!(f, "{:>8}.{:03} ms  {name:<8} {line}", micros / 1_000, micros % 1_000)
}
