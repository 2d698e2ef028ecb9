//! Instants as whole milliseconds since 1970 UTC, the resolution of ids and due times.

mod rfc3339;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// An instant by the store's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// The text is not an instant that can be stored.
#[derive(Debug, thiserror::Error)]
#[error("not an RFC 3339 instant between 1970 and 9999, such as 2030-01-31T08:00:00Z")]
pub struct NotAnInstant;

/// The last millisecond of the year 9999, the end of RFC 3339.
const END: i64 = 253_402_300_799_999;

impl Timestamp {
    /// The beginning of 1970.
    pub const EPOCH: Self = Self(0);

    /// The instant this many milliseconds after 1970.
    ///
    /// # Panics
    /// When the instant lies outside 1970 ..= 9999; callers check what comes from outside.
    pub fn from_millis(millis: i64) -> Self {
        assert!((0..=END).contains(&millis), "instant {millis} lies outside 1970 ..= 9999");
        Self(millis)
    }

    /// The same, for numbers from outside that must never stop the program: one that lies
    /// outside 1970 ..= 9999 becomes the nearer end.
    pub fn clamped(millis: i64) -> Self {
        Self(millis.clamp(0, END))
    }

    /// Milliseconds since 1970.
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// This instant moved forward, at most to the end of 9999.
    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        let by = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(by).min(END))
    }

    /// The instant this much earlier.
    #[must_use]
    pub fn minus(self, by: Duration) -> Self {
        let by = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(by).max(0))
    }

    /// How far this instant lies after `earlier`; zero if it does not.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0 - earlier.0).unwrap_or(0))
    }

    /// Reads an RFC 3339 instant; digits beyond the millisecond are rounded up, since a task must
    /// never start before the time that was asked for. What its zone puts after 9999 is the last
    /// instant.
    pub fn parse(text: &str) -> Result<Self, NotAnInstant> {
        let millis = rfc3339::parse(text).ok_or(NotAnInstant)?;
        if millis < 0 { Err(NotAnInstant) } else { Ok(Self::clamped(millis)) }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        rfc3339::write(self.0, f)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_survives_its_text() {
        let instant = Timestamp::from_millis(1_900_000_000_123);
        assert_eq!(instant.to_string(), "2030-03-17T17:46:40.123Z");
        assert_eq!(Timestamp::parse(&instant.to_string()).unwrap(), instant);
    }

    #[test]
    fn a_fraction_of_a_millisecond_rounds_up() {
        let instant = Timestamp::parse("2030-01-01T00:00:00.0000001Z").unwrap();
        assert_eq!(instant, Timestamp::parse("2030-01-01T00:00:00.001Z").unwrap());
    }

    #[test]
    fn zones_are_understood_and_nonsense_is_refused() {
        let zoned = Timestamp::parse("2030-01-01T01:00:00+01:00").unwrap();
        assert_eq!(zoned, Timestamp::parse("2030-01-01T00:00:00Z").unwrap());
        for text in
            ["", "tomorrow", "2030-01-01", "1969-12-31T23:59:59Z", "-000001-01-01T00:00:00Z"]
        {
            assert!(Timestamp::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn only_the_grammar_of_rfc_3339_is_read() {
        for (text, same) in [
            ("2030-01-01t00:00:00z", "2030-01-01T00:00:00Z"),
            ("2030-01-01T00:00:00-00:00", "2030-01-01T00:00:00Z"),
            ("2030-01-01T23:59:00+23:59", "2030-01-01T00:00:00Z"),
            ("2030-01-01T00:00:00.5Z", "2030-01-01T00:00:00.500Z"),
            ("2030-01-01T00:00:00.123456789012Z", "2030-01-01T00:00:00.124Z"),
            ("2028-02-29T00:00:00Z", "2028-02-29T00:00:00Z"),
            // A leap second, after which nothing may start early.
            ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"),
            ("2016-12-31T15:59:60.25-08:00", "2017-01-01T00:00:00.250Z"),
        ] {
            let [read, same] = [text, same].map(|text| Timestamp::parse(text).unwrap());
            assert_eq!(read, same, "{text}");
        }
        for text in [
            "2030-01-01T00:00:00",
            "2030-01-01 00:00:00Z",
            "2030-01-01T00:00Z",
            "2030-01-01T24:00:00Z",
            "2030-01-01T00:60:00Z",
            "2030-01-01T00:00:61Z",
            "2030-01-01T12:00:60Z",
            "2030-02-29T00:00:00Z",
            "2030-13-01T00:00:00Z",
            "2030-01-01T00:00:00+24:00",
            "2030-01-01T00:00:00+00:60",
            "2030-01-01T00:00:00+0000",
            "2030-01-01T00:00:00+00",
            "2030-01-01T00:00:00+00:00:00",
            "2030-01-01T00:00:00,5Z",
            "2030-01-01T00:00:00.Z",
            "2030-01-01T00:00:00Z[Europe/Berlin]",
            "2030-01-01T00:00:00Z ",
            "+002030-01-01T00:00:00Z",
            "20300101T000000Z",
            "2030-01-01T00:00:00é",
        ] {
            assert!(Timestamp::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_last_day_of_9999_can_be_read_and_written() {
        for (text, written) in [
            ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59.000Z"),
            ("9999-12-30T22:00:01Z", "9999-12-30T22:00:01.000Z"),
            ("9999-12-31T23:59:59.9999Z", "9999-12-31T23:59:59.999Z"),
            ("9999-12-31T23:59:59-01:00", "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(Timestamp::parse(text).unwrap().to_string(), written, "{text}");
        }
        assert_eq!(Timestamp::clamped(i64::MAX).to_string(), "9999-12-31T23:59:59.999Z");
        assert_eq!(Timestamp::EPOCH.to_string(), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn numbers_from_outside_are_clamped() {
        assert_eq!(Timestamp::clamped(-5).millis(), 0);
        assert_eq!(Timestamp::clamped(i64::MAX).millis(), END);
        assert_eq!(Timestamp::clamped(7), Timestamp::from_millis(7));
    }

    #[test]
    fn moving_past_the_end_stops_there() {
        let far = Timestamp::from_millis(END).plus(Duration::from_secs(u64::MAX / 1000));
        assert_eq!(far.millis(), END);
    }
}
