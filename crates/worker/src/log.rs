//! What one attempt logs. Only its end is kept, and only a failed attempt's is sent anywhere.

use std::fmt::{Display, Write as _};
use std::sync::Arc;

use duly_core::limits::LOG_BYTES;
use parking_lot::Mutex;

/// The end of a log. Takes no room until something is logged.
#[derive(Debug, Default)]
pub(crate) struct Log(Mutex<String>);

impl Log {
    /// Adds a line.
    pub(crate) fn add(&self, line: impl Display) {
        let mut text = self.0.lock();
        // A line whose `Display` fails is kept as far as it came.
        let _ = writeln!(Tail(&mut text), "{line}");
    }

    /// The last lines, if there are any.
    pub(crate) fn end(&self) -> Option<Arc<str>> {
        let text = self.0.lock();
        (!text.is_empty()).then(|| end_of(&text).into())
    }
}

/// Writes at the end and forgets the beginning, in large steps so that it costs little.
struct Tail<'a>(&'a mut String);

impl std::fmt::Write for Tail<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let text = end_of(text);
        if self.0.len() + text.len() > 2 * LOG_BYTES {
            let surplus = self.0.len() - end_of(self.0).len();
            self.0.drain(..surplus);
        }
        if text.contains('\0') {
            // Databases refuse U+0000.
            self.0.push_str(&text.replace('\0', "\u{fffd}"));
        } else {
            self.0.push_str(text);
        }
        Ok(())
    }
}

/// As much of the end as is kept, from a whole character on.
fn end_of(text: &str) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(LOG_BYTES))..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_kept_in_order() {
        let log = Log::default();
        assert_eq!(log.end(), None);
        log.add("one");
        log.add(format_args!("t{}o", "\0w"));
        assert_eq!(log.end().as_deref(), Some("one\nt\u{fffd}wo\n"));
    }

    #[test]
    fn only_the_end_is_kept_from_a_whole_character_on() {
        let log = Log::default();
        for number in 0..10_000 {
            log.add(number);
            assert!(log.0.lock().len() <= 2 * LOG_BYTES);
        }
        let end = log.end().unwrap();
        assert_eq!(end.len(), LOG_BYTES);
        assert!(end.ends_with("9998\n9999\n"));
        log.add("ä".repeat(LOG_BYTES));
        let end = log.end().unwrap();
        assert!(end.starts_with('ä') && end.ends_with("ä\n"));
        assert_eq!(end.len(), LOG_BYTES - 1);
    }
}
