//! Colours, where they help: on a terminal, and only if they are wanted.

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
static REFUSED: OnceLock<bool> = OnceLock::new();

/// Keeps what the command line says of colours, for all that is printed from now on.
pub(crate) fn choose(no_color: bool) {
    REFUSED.get_or_init(|| no_color);
}

/// Whether what is printed there may be coloured. `NO_COLOR` and `--no-color` forbid it,
/// `CLICOLOR_FORCE` asks for it although it is no terminal.
pub(crate) fn is_wanted(stream: &impl IsTerminal) -> bool {
    let is_asked = |value: &str| !matches!(value, "" | "0");
    if REFUSED.get().copied().unwrap_or(false)
        || variable("NO_COLOR").is_some_and(|it| !it.is_empty())
    {
        return false;
    }
    variable("CLICOLOR_FORCE").is_some_and(|value| is_asked(&value))
        || (stream.is_terminal() && variable("TERM").is_none_or(|term| term != "dumb"))
}

/// Which colour the text of a cell gets.
#[derive(Clone, Copy)]
pub(crate) struct Paint(fn(&str) -> Option<&'static str>);

impl Paint {
    /// By the state of a task.
    pub(crate) const STATUS: Self = Self(status);
    /// By how a check or a process is.
    pub(crate) const HEALTH: Self = Self(health);

    /// The padded cell in the colour of what it says.
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
        "FAILED" => Some(RED),
        _ => None,
    }
}

/// A word of warning on standard error.
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
