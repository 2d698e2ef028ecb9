//! How a run is getting on, on standard error: a bar on a terminal, a line per step elsewhere.

use std::cell::Cell;
use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::output;

/// How often the bar is drawn while a step takes its time.
const DRAW_EVERY: Duration = Duration::from_millis(500);

pub(super) struct Progress {
    /// Nothing where nobody looks at a terminal.
    bar: Option<ProgressBar>,
    steps: usize,
    begun: Cell<usize>,
}

impl Progress {
    pub(super) fn new(steps: usize) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| bar(steps));
        Self { bar, steps, begun: Cell::new(0) }
    }

    /// The next step begins.
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

    /// More about the step that has begun.
    pub(super) fn detail(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(text.to_owned()),
            None => output::say(&format!("    {text}")),
        }
    }

    /// Takes the bar away.
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
