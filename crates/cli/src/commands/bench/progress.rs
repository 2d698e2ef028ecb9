//! The progress of a run on standard error: a bar on a terminal, a line per step without one.

use std::cell::Cell;
use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::output;

/// How often the bar is redrawn during a step.
const DRAW_EVERY: Duration = Duration::from_millis(500);

pub(super) struct Progress {
    /// None without a terminal.
    bar: Option<ProgressBar>,
    steps: usize,
    begun: Cell<usize>,
}

impl Progress {
    pub(super) fn new(steps: usize) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| bar(steps));
        Self { bar, steps, begun: Cell::new(0) }
    }

    /// Starts the next step.
    pub(super) fn step(&self, text: &str) {
        let begun = self.begun.get() + 1;
        self.begun.set(begun);
        match &self.bar {
            Some(bar) => {
                bar.set_position(begun as u64 - 1);
                bar.set_message(text.to_owned());
            }
            None => output::say(&format!("{begun}/{} {text}", self.steps)),
        }
    }

    /// Shows a detail of the current step.
    pub(super) fn detail(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(text.to_owned()),
            None => output::say(&format!("    {text}")),
        }
    }

    /// Removes the bar.
    pub(super) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(steps: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("[{bar:24}] {pos}/{len} {elapsed} {msg}");
    let style = style.expect("a template").progress_chars("#>-");
    let bar = ProgressBar::new(steps as u64).with_style(style);
    bar.enable_steady_tick(DRAW_EVERY);
    bar
}
