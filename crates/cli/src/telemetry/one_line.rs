//! The fields of log lines. Tasks, workers and targets choose some of the texts in them, so
//! characters that could end a line, colour it or reverse it are escaped: one event is one line.

use std::error::Error;
use std::fmt::{self, Debug, Write};

use tracing::field::{Field, Visit};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::Writer;

/// Formats fields as `name=value`, the message without its name.
#[derive(Clone, Copy, Debug)]
pub(super) struct OneLine;

impl<'w> FormatFields<'w> for OneLine {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'w>, fields: R) -> fmt::Result {
        let mut line = Line { writer, is_empty: true, result: Ok(()) };
        fields.record(&mut line);
        line.result
    }
}

struct Line<'w> {
    writer: Writer<'w>,
    is_empty: bool,
    result: fmt::Result,
}

impl Line<'_> {
    fn write(&mut self, name: &str, value: fmt::Arguments<'_>) -> fmt::Result {
        if !std::mem::replace(&mut self.is_empty, false) {
            self.writer.write_char(' ')?;
        }
        if name != "message" {
            write!(self.writer, "{name}=")?;
        }
        write!(Escaping(&mut self.writer), "{value}")
    }
}

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Those of the crate `log` repeat what stands before the message.
        let is_repeated = field.name().starts_with("log.");
        if self.result.is_ok() && !is_repeated {
            self.result = self.write(field.name(), format_args!("{value:?}"));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => self.record_debug(field, &format_args!("{value}")),
            _ => self.record_debug(field, &value),
        }
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        let mut text = value.to_string();
        let mut cause = value.source();
        while let Some(error) = cause {
            text += &format!(": {error}");
            cause = error.source();
        }
        self.record_debug(field, &format_args!("{text}"));
    }
}

/// Writes text with its dangerous characters escaped.
struct Escaping<'a, W>(&'a mut W);

impl<W: Write> Write for Escaping<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for part in text.split_inclusive(is_dangerous) {
            let plain = part.trim_end_matches(is_dangerous);
            self.0.write_str(plain)?;
            for character in part[plain.len()..].chars() {
                write!(self.0, "{}", character.escape_default())?;
            }
        }
        Ok(())
    }
}

/// Whether a character could end a line, command a terminal, or change the direction of writing.
fn is_dangerous(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s23_texts_from_outside_stay_on_their_line() {
        for (text, written) in [
            ("plain ä \"x\" {\"a\":1}", "plain ä \"x\" {\"a\":1}"),
            ("a\r\nb\tc", "a\\r\\nb\\tc"),
            ("\u{1b}[31mred\u{7}\u{9b}0m", "\\u{1b}[31mred\\u{7}\\u{9b}0m"),
            ("\u{202e}evil\u{2028}", "\\u{202e}evil\\u{2028}"),
            ("\n\n", "\\n\\n"),
        ] {
            let mut line = String::new();
            write!(Escaping(&mut line), "{text}").unwrap();
            assert_eq!(line, written);
        }
    }
}
