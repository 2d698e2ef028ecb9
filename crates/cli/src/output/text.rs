//! Text that fits a width on a terminal.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The width of a text in columns.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// The text, cut with an ellipsis if it is wider than this.
pub(super) fn shorten(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let (start, _) = split(text, most.saturating_sub(1));
    format!("{}…", start.trim_end())
}

/// The lines of a text, wrapped to this width: after a blank or a comma if possible, so that words
/// and ids stay whole.
pub(super) fn wrap(text: &str, most: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut rest = line;
        while width(rest) > most {
            let (start, _) = split(rest, most);
            let after = |(at, c): (usize, char)| at + c.len_utf8();
            let fits_whole = rest[start.len()..].starts_with(' ');
            let end = match start.char_indices().rfind(|(_, c)| matches!(c, ' ' | ',')) {
                Some(found) if !fits_whole => after(found),
                _ => start.len(),
            };
            lines.push(rest[..end].trim_end().to_owned());
            rest = rest[end..].trim_start();
        }
        lines.push(rest.to_owned());
    }
    lines
}

/// As much of a text as fits into this width, but at least one character, and the rest.
fn split(text: &str, most: usize) -> (&str, &str) {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > most && at > 0 {
            return text.split_at(at);
        }
    }
    (text, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_whole_where_they_can() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap(r#"{"a":1,"b":2}"#, 8), [r#"{"a":1,"#, r#""b":2}"#]);
        assert_eq!(wrap("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrap("a\nb", 3), ["a", "b"]);
        assert_eq!(wrap("", 3), Vec::<String>::new());
    }

    #[test]
    fn a_text_that_fits_is_not_cut() {
        assert_eq!(shorten("timeout", 7), "timeout");
        assert_eq!(shorten("timed out", 7), "timed…");
    }
}
