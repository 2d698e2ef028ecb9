//! Places among the stored events.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::time::Timestamp;

/// A place among the stored events: everything up to here was seen. Only its store compares positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// What was to be seen when this part of the events was opened, as the store writes it; empty where the
    /// number says all.
    pub view: Arc<str>,
    /// When that was.
    pub at: Timestamp,
    /// The row, within that part.
    pub number: u64,
    /// The event within the row, from 1; 0 is before the first one.
    pub index: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { view, at, number, index } = self;
        write!(f, "{}.{number}.{index}.{view}", at.millis())
    }
}

/// The text is no position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the position of an event")]
pub struct NotAPosition;

impl FromStr for Position {
    type Err = NotAPosition;

    fn from_str(text: &str) -> Result<Self, NotAPosition> {
        let mut parts = text.splitn(4, '.');
        let mut next = || parts.next().ok_or(NotAPosition);
        let at: i64 = next()?.parse().map_err(|_| NotAPosition)?;
        let number = next()?.parse().map_err(|_| NotAPosition)?;
        let index = next()?.parse().map_err(|_| NotAPosition)?;
        let view = next()?;
        let is_plain = |byte: u8| byte.is_ascii_digit() || matches!(byte, b':' | b',' | b'~');
        if !view.bytes().all(is_plain) {
            return Err(NotAPosition);
        }
        let at = Some(Timestamp::clamped(at)).filter(|it| it.millis() == at).ok_or(NotAPosition)?;
        Ok(Self { view: view.into(), at, number, index })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_reads_back_from_its_text() {
        let at = Timestamp::from_millis(1_900_000_000_123);
        let position = Position { view: "10:20:11,14~12:20:".into(), at, number: 7, index: 3 };
        assert_eq!(position.to_string().parse(), Ok(position));
        for bad in ["", "1", "1.2.3", "1.2.3.x", "-5.1.1.", "1.2.3.\n", "9999999999999999.1.1."] {
            assert_eq!(bad.parse::<Position>(), Err(NotAPosition), "{bad:?}");
        }
    }
}
