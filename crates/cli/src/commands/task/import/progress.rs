//! How an import is getting on, on standard error: a bar on a terminal, now and then a line
//! elsewhere.

use std::cell::Cell;
use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use super::reader::Position;
use crate::output;

/// How often a bar is drawn and a line is said.
const DRAW_EVERY: Duration = Duration::from_millis(200);
const SAY_EVERY: Duration = Duration::from_secs(5);
const BAR_CELLS: usize = 24;
/// Moves to the start of the line and clears it.
const CLEAR: &str = "\r\x1b[K";

/// What was shown, and since when it runs.
pub(super) struct Progress {
    is_terminal: bool,
    started: Instant,
    from: Position,
    /// Bytes of the input, if known.
    size: Option<u64>,
    shown: Cell<Instant>,
    is_drawn: Cell<bool>,
}

impl Progress {
    pub(super) fn new(from: Position, size: Option<u64>) -> Self {
        let (started, is_terminal) = (Instant::now(), std::io::stderr().is_terminal());
        let (shown, is_drawn) = (Cell::new(started), Cell::new(false));
        Self { is_terminal, started, from, size, shown, is_drawn }
    }

    /// Shows how far it is, if that is not old news.
    pub(super) fn show(&self, at: Position) {
        let every = if self.is_terminal { DRAW_EVERY } else { SAY_EVERY };
        if self.shown.get().elapsed() < every {
            return;
        }
        self.shown.set(Instant::now());
        let text = text(self.from, at, self.size, self.started.elapsed());
        if self.is_terminal {
            let bar = self.size.map_or(String::new(), |size| bar(at.offset, size));
            // Nobody may be looking, which is no fault.
            write!(std::io::stderr().lock(), "{CLEAR}{bar}{text}").ok();
            self.is_drawn.set(true);
        } else {
            output::say(&text);
        }
    }

    /// Says something else, on a line of its own.
    pub(super) fn say(&self, text: &str) {
        self.clear();
        output::say(text);
    }

    /// Takes the bar away.
    pub(super) fn clear(&self) {
        if self.is_drawn.take() {
            write!(std::io::stderr().lock(), "{CLEAR}").ok();
        }
    }
}

fn bar(done: u64, size: u64) -> String {
    let cells = usize::try_from(done.saturating_mul(BAR_CELLS as u64) / size.max(1));
    let full = cells.unwrap_or(BAR_CELLS).min(BAR_CELLS);
    format!("[{}{}] ", "#".repeat(full), "-".repeat(BAR_CELLS - full))
}

/// Lines, rate, share and the time that is left at this rate.
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
        assert_eq!(bar(500, 1000), format!("[{}{}] ", "#".repeat(12), "-".repeat(12)));
        assert_eq!(bar(0, 0), format!("[{}] ", "-".repeat(24)));
    }
}
