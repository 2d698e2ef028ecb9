//! What an attempt logs, as it travels: pieces of one text, each with its place in it.

use std::borrow::Cow;
use std::sync::Arc;

use crate::limits::LOG_BYTES;

/// A text as it may stand in a log: databases refuse U+0000. What stands for it has as many bytes,
/// since the writer counts them before.
pub fn plain(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "?").into() } else { text.into() }
}

/// A piece of an attempt's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogChunk {
    /// How many bytes of the log come before it; at most [`crate::limits::COUNT`].
    pub offset: u64,
    /// The text, without U+0000.
    pub text: Arc<str>,
}

impl LogChunk {
    /// Where the next piece starts.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.text.len() as u64)
    }

    /// What it adds to a log that is known up to `end`, with its place: nothing if all of it is
    /// known, and no more than is kept. So a piece may be sent again, also as part of a longer one.
    pub fn beyond(&self, end: u64) -> Option<(u64, &str)> {
        let known = usize::try_from(end.saturating_sub(self.offset)).unwrap_or(usize::MAX);
        let surplus = self.text.len().saturating_sub(LOG_BYTES);
        let skipped = self.text.ceil_char_boundary(known.max(surplus));
        let text = &self.text[skipped..];
        (!text.is_empty()).then(|| (self.offset.saturating_add(skipped as u64), text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(offset: u64, text: &str) -> LogChunk {
        LogChunk { offset, text: text.into() }
    }

    #[test]
    fn only_what_is_new_is_added() {
        let piece = chunk(10, "añb");
        assert_eq!(piece.end(), 14);
        for (end, added) in [
            (0, Some((10, "añb"))),
            (10, Some((10, "añb"))),
            (11, Some((11, "ñb"))),
            (12, Some((13, "b"))),
            (13, Some((13, "b"))),
            (14, None),
            (u64::MAX, None),
        ] {
            assert_eq!(piece.beyond(end), added, "known up to {end}");
        }
        assert_eq!(chunk(3, "").beyond(0), None);
        assert_eq!(chunk(u64::MAX, "x").beyond(0), Some((u64::MAX, "x")));
    }

    #[test]
    fn what_no_store_takes_is_replaced_byte_by_byte() {
        assert_eq!(plain("añ\0b\0"), "añ?b?");
        assert!(matches!(plain("añb"), Cow::Borrowed("añb")));
    }

    #[test]
    fn no_more_than_is_kept_is_added() {
        let (offset, text) = (5, "x".repeat(LOG_BYTES) + "y");
        let piece = chunk(offset, &text);
        let (start, kept) = piece.beyond(0).unwrap();
        assert_eq!((start, kept.len()), (6, LOG_BYTES));
        assert!(kept.ends_with("xy"));
    }
}
