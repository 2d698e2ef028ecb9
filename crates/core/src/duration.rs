//! Durations as people write them: `30s`, `500ms`, `2m`, `1h`, or ISO 8601 such as `PT30S`.

use std::time::Duration;

use jiff::SignedDuration;

/// The most characters of a duration: parsing must stay cheap.
const MAX_CHARS: usize = 32;

/// Reads a duration of zero or more. Days and longer units are refused, since their length varies.
pub fn parse(text: &str) -> Option<Duration> {
    if text.len() > MAX_CHARS {
        return None;
    }
    let duration: SignedDuration = text.parse().ok()?;
    Duration::try_from(duration).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_are_read() {
        let cases = [
            ("30s", 30_000),
            ("500ms", 500),
            ("2m", 120_000),
            ("1h", 3_600_000),
            ("1m30s", 90_000),
            ("0s", 0),
            ("PT30S", 30_000),
            ("PT1M", 60_000),
            ("PT0.5S", 500),
        ];
        for (text, millis) in cases {
            assert_eq!(parse(text), Some(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        let long = format!("{}s", "0".repeat(64));
        for text in ["", "30", "s", "-5s", "5 parsecs", "1e9s", "PT", "P1Y", "30s;", &long] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
