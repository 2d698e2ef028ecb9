//! The rule of a schedule, and its slots.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::tz::Offset;

use super::cron::Cron;
use super::policy::{Misfire, Overlap};
use super::slots::Slots;
use super::zone::Zone;
use crate::limits::{NEXT_SLOT, RUN_AHEAD};
use crate::submit::FieldError;
use crate::time::Timestamp;

/// What the slots of a schedule are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Timing {
    /// The times that a cron expression matches in the schedule's zone.
    Cron(Cron),
    /// `startAt` and every interval after it; without `startAt`, the multiples of the interval since
    /// 1970 in UTC, so that `1h` is on the hour.
    Every {
        /// Whole seconds.
        interval: Duration,
    },
    /// One slot.
    At {
        /// A whole second.
        instant: Timestamp,
    },
}

/// When a schedule fires, and what it does with slots that are late or overlap. Every field holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// What its slots are.
    pub timing: Timing,
    /// The zone of a cron expression, and of texts for people.
    pub zone: Zone,
    /// What happens while an earlier slot runs.
    pub overlap: Overlap,
    /// What happens to missed slots.
    pub misfire: Misfire,
    /// How late a missed slot may still run.
    pub catch_up: Duration,
    /// The starts are spread over this time.
    pub jitter: Duration,
    /// No slot lies before it: a whole second.
    pub start_at: Option<Timestamp>,
    /// No slot lies after it: a whole second.
    pub end_at: Option<Timestamp>,
    /// Searchable marks.
    pub labels: BTreeMap<String, String>,
    /// For people.
    pub note: Option<String>,
}

impl Rule {
    /// The first slot after an instant. None if there is no other, or only one that lies more than eight
    /// years ahead.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let from = after.millis().div_euclid(1000) + 1;
        self.finder(from).first(from).map(instant)
    }

    /// The last slot up to an instant. None if there is no earlier one within eight years.
    pub fn previous(&self, until: Timestamp) -> Option<Timestamp> {
        let until = seconds(until);
        self.finder(until).last(0, until).map(instant)
    }

    /// The slots after an instant, up to and including another, at most so many.
    pub fn slots(&self, after: Timestamp, until: Timestamp, limit: usize) -> Vec<Timestamp> {
        let (mut from, until) = (after.millis().div_euclid(1000) + 1, seconds(until));
        let mut finder = self.finder(from);
        let mut found = Vec::new();
        while found.len() < limit && from <= until {
            let Some(slot) = finder.first(from).filter(|slot| *slot <= until) else { break };
            found.push(instant(slot));
            from = slot + 1;
        }
        found
    }

    /// The slots after `position`, up to and including `now`, newest first and at most so many.
    pub(super) fn newest(
        &self,
        position: Timestamp,
        now: Timestamp,
        limit: usize,
    ) -> Vec<Timestamp> {
        let (first, mut until) = (position.millis().div_euclid(1000) + 1, seconds(now));
        let mut finder = self.finder(until);
        let mut found = Vec::new();
        while found.len() < limit {
            let Some(slot) = finder.last(first, until) else { break };
            found.push(instant(slot));
            until = slot - 1;
        }
        found
    }

    /// Checks that there is a slot ahead, and not too far.
    pub(super) fn check_ahead(&self, now: Timestamp) -> Result<(), FieldError> {
        let too_far = now.plus(RUN_AHEAD);
        let days = RUN_AHEAD.as_secs() / (24 * 60 * 60);
        let detail = format!("must be at most {days} days ahead");
        if self.start_at.is_some_and(|start| start > too_far) {
            return Err(FieldError::of("startAt", "OUT_OF_RANGE", detail));
        }
        if let Timing::At { instant } = self.timing
            && instant > too_far
        {
            return Err(FieldError::of("at", "OUT_OF_RANGE", detail));
        }
        if self.next(now).is_some() {
            return Ok(());
        }
        let (field, why) = match &self.timing {
            Timing::Cron(_) if self.end_at.is_none() => ("cron", "has no slot within eight years"),
            Timing::Cron(_) => ("cron", "has no slot before endAt"),
            Timing::Every { .. } => ("every", "has no slot before endAt"),
            Timing::At { instant } if *instant <= now => ("at", "lies in the past"),
            Timing::At { .. } => ("at", "lies outside startAt to endAt"),
        };
        Err(FieldError::of(field, "NEVER_FIRES", why))
    }

    /// When it fires, in plain English.
    pub fn describe(&self) -> String {
        let zone = self.zone.name();
        match &self.timing {
            Timing::Cron(cron) => format!("{} ({zone})", cron.describe()),
            Timing::Every { interval } => {
                let from = self.start_at.map(|start| format!(" from {}", self.local(start)));
                let from = from.map(|from| format!("{from} ({zone})")).unwrap_or_default();
                format!("Every {}{from}", span(interval.as_secs()))
            }
            Timing::At { instant } => format!("Once at {} ({zone})", self.local(*instant)),
        }
    }

    /// Date and time of day in its zone.
    fn local(&self, at: Timestamp) -> String {
        let at = seconds(at);
        local_text(at + self.zone.segment(at).offset)
    }

    fn finder(&self, near: i64) -> Finder<'_> {
        let near = near.max(self.start_at.map_or(0, seconds));
        let slots = match &self.timing {
            Timing::Cron(cron) => Some(Slots::near(cron, &self.zone, near)),
            Timing::Every { .. } | Timing::At { .. } => None,
        };
        Finder { rule: self, slots }
    }
}

/// Finds slots; one that looks for neighbours one after the other does so faster than many.
struct Finder<'a> {
    rule: &'a Rule,
    slots: Option<Slots<'a>>,
}

impl Finder<'_> {
    /// The first slot from an instant on.
    fn first(&mut self, from: i64) -> Option<i64> {
        let from = from.max(self.begin());
        let ahead = from + NEXT_SLOT.as_secs().cast_signed();
        let last = self.rule.end_at.map_or(END, seconds).min(ahead);
        match (&self.rule.timing, &mut self.slots) {
            (Timing::Cron(_), slots) => slots.as_mut()?.first(from, last),
            (Timing::Every { interval }, _) => {
                let interval = interval.as_secs().cast_signed();
                let late = (from - self.begin()).rem_euclid(interval);
                Some(if late == 0 { from } else { from - late + interval })
            }
            (Timing::At { instant }, _) => Some(seconds(*instant)).filter(|slot| *slot >= from),
        }
        .filter(|slot| *slot <= last)
    }

    /// The last slot from `first` to `until`, both included.
    fn last(&mut self, first: i64, until: i64) -> Option<i64> {
        let until = until.min(self.rule.end_at.map_or(END, seconds));
        let behind = until - NEXT_SLOT.as_secs().cast_signed();
        let first = first.max(self.begin()).max(behind);
        match (&self.rule.timing, &mut self.slots) {
            (Timing::Cron(_), slots) => slots.as_mut()?.last(first, until),
            (Timing::Every { interval }, _) => {
                let interval = interval.as_secs().cast_signed();
                Some(until - (until - self.begin()).rem_euclid(interval))
            }
            (Timing::At { instant }, _) => Some(seconds(*instant)).filter(|slot| *slot <= until),
        }
        .filter(|slot| *slot >= first)
    }

    /// Where slots begin, and what intervals are counted from.
    fn begin(&self) -> i64 {
        self.rule.start_at.map_or(0, seconds)
    }
}

/// The last second of the year 9999.
const END: i64 = 253_402_300_799;

/// The whole seconds of an instant.
pub(super) fn seconds(at: Timestamp) -> i64 {
    at.millis().div_euclid(1000)
}

/// The instant of a whole second.
pub(super) fn instant(second: i64) -> Timestamp {
    Timestamp::clamped(second.saturating_mul(1000))
}

/// A local time, counted in seconds since 1970.
pub(super) fn local_text(local: i64) -> String {
    let at = jiff::Timestamp::from_second(local).unwrap_or(jiff::Timestamp::MAX);
    Offset::UTC.to_datetime(at).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// `1 hour and 30 minutes`, from a number of seconds.
fn span(seconds: u64) -> String {
    let units = [(24 * 60 * 60, "day"), (60 * 60, "hour"), (60, "minute"), (1, "second")];
    if let Some((_, unit)) = units.iter().find(|(length, _)| *length == seconds) {
        return (*unit).to_owned();
    }
    let mut rest = seconds;
    let mut parts = Vec::new();
    for (length, unit) in units {
        match rest / length {
            0 => {}
            1 => parts.push(format!("1 {unit}")),
            count => parts.push(format!("{count} {unit}s")),
        }
        rest %= length;
    }
    let last = parts.pop().unwrap_or_default();
    if parts.is_empty() { last } else { format!("{} and {last}", parts.join(", ")) }
}

#[cfg(test)]
mod tests;
