//! Colours, on a terminal and only if wanted.

use std::io::IsTerminal;
use std::sync::OnceLock;

use duly_core::state::Status;

use super::variable;

const RESET: &str = "\x1b[0m";
const RED: &str = "\x1b[31m";
const GREEN: &str = "\x1b[32m";
const YELLOW: &str = "\x1b[33m";
const CYAN: &str = "\x1b[36m";
const DIM: &str = "\x1b[2m";

/// Whether `--no-color` was given.
static DISABLED: OnceLock<bool> = OnceLock::new();

/// Stores the command line's choice of colours for all later output.
pub(crate) fn configure(no_color: bool) {
    DISABLED.get_or_init(|| no_color);
}

/// Whether to colour a stream. `NO_COLOR` and `--no-color` disable it, `CLICOLOR_FORCE` enables it
/// without a terminal.
pub(crate) fn is_wanted(stream: &impl IsTerminal) -> bool {
    let is_set = |value: &str| !matches!(value, "" | "0");
    if DISABLED.get().copied().unwrap_or(false)
        || variable("NO_COLOR").is_some_and(|it| !it.is_empty())
    {
        return false;
    }
    variable("CLICOLOR_FORCE").is_some_and(|value| is_set(&value))
        || (stream.is_terminal() && variable("TERM").is_none_or(|term| term != "dumb"))
}

/// Chooses the colour of a cell by its text.
#[derive(Clone, Copy)]
pub(crate) struct Paint(fn(&str) -> Option<&'static str>);

impl Paint {
    /// By the state of a task.
    pub(crate) const STATUS: Self = Self(status);
    /// By the health of a check or a process.
    pub(crate) const HEALTH: Self = Self(health);
    /// By the kind of an event.
    pub(crate) const EVENT: Self = Self(event);

    /// The padded cell in its colour.
    pub(super) fn apply(self, cell: &str, padded: &str) -> String {
        match self.0(cell) {
            Some(color) => format!("{color}{cell}{RESET}{}", &padded[cell.len()..]),
            None => padded.to_owned(),
        }
    }
}

fn status(cell: &str) -> Option<&'static str> {
    let status = Status::ALL.into_iter().find(|status| status.as_str() == cell)?;
    Some(match status {
        Status::Success => GREEN,
        Status::Failed => RED,
        Status::Running => CYAN,
        Status::Pending => YELLOW,
        Status::Blocked | Status::Cancelled => DIM,
    })
}

fn health(cell: &str) -> Option<&'static str> {
    match cell {
        "ok" | "active" | "alive" | "open" => Some(GREEN),
        "warning" | "draining" | "silent" | "not running" => Some(YELLOW),
        "FAILED" | "SUSPENDED" => Some(RED),
        _ => None,
    }
}

fn event(cell: &str) -> Option<&'static str> {
    match cell {
        "task.succeeded" => Some(GREEN),
        "task.failed" => Some(RED),
        "task.retried" | "task.lost" | "queue.paused" | "schedule.skipped" => Some(YELLOW),
        "task.started" | "task.progressed" | "task.replayed" => Some(CYAN),
        "task.cancelled" | "task.deleted" | "task.released" => Some(DIM),
        _ => None,
    }
}

/// Red text on standard error.
pub(super) fn red(text: &str) -> String {
    if is_wanted(&std::io::stderr()) { format!("{RED}{text}{RESET}") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_word_is_coloured_not_the_blanks() {
        assert_eq!(Paint::STATUS.apply("FAILED", "FAILED   "), "\x1b[31mFAILED\x1b[0m   ");
        assert_eq!(Paint::STATUS.apply("other", "other "), "other ");
    }
}
