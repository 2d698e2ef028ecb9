//! The progress of an import on standard error: a bar on a terminal, a line every few seconds without
//! one.

use std::cell::Cell;
use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::reader::Position;
use crate::output;

/// The most redraws of the bar per second.
const DRAWS_PER_SECOND: u8 = 5;
/// The interval of lines.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Shows the progress.
pub(super) struct Progress {
    /// None without a terminal.
    bar: Option<ProgressBar>,
    started: Instant,
    from: Position,
    /// Bytes of the input, if known.
    size: Option<u64>,
    printed_at: Cell<Instant>,
}

impl Progress {
    pub(super) fn new(from: Position, size: Option<u64>) -> Self {
        let started = Instant::now();
        let bar = std::io::stderr().is_terminal().then(|| bar(size));
        Self { bar, started, from, size, printed_at: Cell::new(started) }
    }

    /// Shows the progress; without a terminal only once per interval.
    pub(super) fn show(&self, at: Position) {
        let text = || text(self.from, at, self.size, self.started.elapsed());
        match &self.bar {
            Some(bar) => {
                bar.set_position(at.offset);
                bar.set_message(text());
            }
            None if self.printed_at.get().elapsed() >= LINE_EVERY => {
                self.printed_at.set(Instant::now());
                output::say(&text());
            }
            None => {}
        }
    }

    /// Prints a message on its own line.
    pub(super) fn say(&self, text: &str) {
        self.suspend(|| output::say(text));
    }

    /// Prints something else while the bar is hidden.
    pub(super) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    /// Removes the bar.
    pub(super) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(size: Option<u64>) -> ProgressBar {
    let target = ProgressDrawTarget::stderr_with_hz(DRAWS_PER_SECOND);
    let shape = if size.is_some() { "[{bar:24}] {msg}" } else { "{spinner} {msg}" };
    let style = ProgressStyle::with_template(shape).expect("a template").progress_chars("#>-");
    ProgressBar::with_draw_target(size, target).with_style(style)
}

/// Lines, rate, percentage and remaining time at this rate.
fn text(from: Position, at: Position, size: Option<u64>, elapsed: Duration) -> String {
    let millis = elapsed.as_millis().max(1);
    let rate = u128::from(at.line - from.line) * 1000 / millis;
    let mut text = format!("{}, {rate}/s", output::count(at.line, "line"));
    if let Some(size) = size {
        let done = u128::from(at.offset - from.offset);
        let left = u128::from(size.saturating_sub(at.offset));
        text += &format!(", {} %", u128::from(at.offset) * 100 / u128::from(size.max(1)));
        if let Some(millis) = (left * millis).checked_div(done) {
            text += &format!(", {} s left", millis.div_ceil(1000));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_and_the_rest_are_those_of_this_run() {
        let from = Position { offset: 500, line: 50 };
        let at = Position { offset: 600, line: 70 };
        let second = Duration::from_secs(1);
        assert_eq!(text(from, at, Some(1000), second), "70 lines, 20/s, 60 %, 4 s left");
        assert_eq!(text(from, at, None, second), "70 lines, 20/s");
        assert_eq!(text(from, from, Some(1000), Duration::ZERO), "50 lines, 0/s, 50 %");
    }

    #[test]
    fn both_kinds_of_bars_can_be_drawn() {
        for size in [None, Some(0), Some(1000)] {
            assert_eq!(bar(size).length(), size);
        }
    }
}
