//! Time zones, from the database that is part of the program: all nodes of one version agree, whatever
//! is installed around them.

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use crate::limits::TIME_ZONE_CHARS;

/// A time zone of the IANA database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    name: String,
    rules: TimeZone,
}

impl Zone {
    /// The zone of a schedule that names none.
    pub fn utc() -> Self {
        Self { name: "UTC".to_owned(), rules: TimeZone::UTC }
    }

    /// The zone of this name, in upper or lower case. An error says so, and which zone was perhaps meant.
    pub fn named(name: &str) -> Result<Self, String> {
        let unknown = || "is no time zone of the IANA database".to_owned();
        if name.len() > TIME_ZONE_CHARS {
            return Err(unknown());
        }
        let found = TimeZoneDatabase::bundled().get(name).ok().filter(|zone| !zone.is_unknown());
        let named = found.and_then(|rules| Some((rules.iana_name()?.to_owned(), rules)));
        match named {
            Some((name, rules)) => Ok(Self { name, rules }),
            None => Err(nearest(name)
                .map_or_else(unknown, |near| format!("{}; perhaps `{near}` is meant", unknown()))),
        }
    }

    /// Its name, as the database spells it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The stretch of time around an instant in which the clocks are not changed.
    pub(super) fn segment(&self, instant: i64) -> Segment {
        let at = |second: i64| {
            let [first, last] = [Timestamp::UNIX_EPOCH, Timestamp::MAX].map(Timestamp::as_second);
            Timestamp::from_second(second.clamp(first, last)).expect("clamped")
        };
        let offset = |second| i64::from(self.rules.to_offset(at(second)).seconds());
        let change = |change: jiff::tz::TimeZoneTransition<'_>| change.timestamp().as_second();
        let start = self.rules.preceding(at(instant + 1)).next().map(change);
        let end = self.rules.following(at(instant)).next().map(change);
        Segment {
            start: start.unwrap_or(i64::MIN / 2),
            end: end.unwrap_or(i64::MAX / 2),
            offset: offset(instant),
            before: offset(start.unwrap_or(instant) - 1),
        }
    }
}

/// A stretch of time, in seconds since 1970, in which the clocks of a zone are not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// The first second after the change.
    pub(super) start: i64,
    /// The second of the next change.
    pub(super) end: i64,
    /// Seconds by which local time is ahead of UTC.
    pub(super) offset: i64,
    /// The same before the change.
    pub(super) before: i64,
}

impl Segment {
    pub(super) fn contains(&self, instant: i64) -> bool {
        (self.start..self.end).contains(&instant)
    }

    /// The first and the last local time that the change left out.
    pub(super) fn gap(&self) -> Option<(i64, i64)> {
        let is_gap = self.offset > self.before;
        is_gap.then(|| (self.start + self.before, self.start + self.offset - 1))
    }

    /// The first and the last local time that the change repeats.
    pub(super) fn repeated(&self) -> Option<(i64, i64)> {
        let is_repeated = self.offset < self.before;
        is_repeated.then(|| (self.start + self.offset, self.start + self.before - 1))
    }
}

/// A zone whose name is almost this one.
fn nearest(name: &str) -> Option<String> {
    let plain = |name: &str| name.replace([' ', '-'], "_").to_ascii_lowercase();
    let wanted = plain(name);
    let near = |known: &str| {
        let known = plain(known);
        let city = known.rsplit('/').next().unwrap_or(&known);
        let likeness = strsim::jaro_winkler(&known, &wanted);
        if city == wanted { 1.0 } else { likeness }
    };
    let database = TimeZoneDatabase::bundled();
    let names = database.available().map(|name| name.as_str().to_owned());
    let rated = names.map(|name| (near(&name), name)).filter(|(likeness, _)| *likeness > 0.9);
    rated.max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.cmp(&a.1))).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_found_in_either_case_and_bear_their_own_name() {
        for (given, name) in [
            ("Europe/Rome", "Europe/Rome"),
            ("europe/rome", "Europe/Rome"),
            ("UTC", "UTC"),
            ("utc", "UTC"),
            ("US/Eastern", "US/Eastern"),
            ("Asia/Kathmandu", "Asia/Kathmandu"),
        ] {
            assert_eq!(Zone::named(given).unwrap().name(), name, "{given}");
        }
        assert_eq!(Zone::named("UTC").unwrap(), Zone::utc());
    }

    #[test]
    fn an_unknown_zone_is_answered_with_a_near_one() {
        for (given, near) in [
            ("Rome", "Europe/Rome"),
            ("Europe/Roma", "Europe/Rome"),
            ("new york", "America/New_York"),
            ("America/New York", "America/New_York"),
            ("Europe/Berln", "Europe/Berlin"),
        ] {
            let error = Zone::named(given).unwrap_err();
            assert!(error.ends_with(&format!("perhaps `{near}` is meant")), "{given}: {error}");
        }
        for nonsense in ["", "+02:00", "xyzzy", "Etc/Unknown", "\0", "ä", &"a".repeat(100_000)] {
            let error = Zone::named(nonsense).unwrap_err();
            assert!(error.starts_with("is no time zone of the IANA database"), "{nonsense}");
        }
    }

    #[test]
    fn segments_meet_at_the_change_of_the_clocks() {
        let rome = Zone::named("Europe/Rome").unwrap();
        let change = Timestamp::constant(1_806_195_600, 0).as_second();
        let (before, after) = (rome.segment(change - 1), rome.segment(change));
        assert_eq!((before.end, after.start), (change, change));
        assert_eq!((before.offset, after.before, after.offset), (3600, 3600, 7200));
        assert_eq!(after.gap(), Some((change + 3600, change + 7199)));
        assert_eq!((after.repeated(), before.gap()), (None, None));
    }
}
