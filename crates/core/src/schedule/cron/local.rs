//! The search for local times that match. Local times are counted in seconds since 1970 as if the place
//! were at UTC; what time it then is in the world is the concern of [`slots`](super::super::slots).

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::Offset;

use super::Cron;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

impl Cron {
    /// The first match from `from` to `last`, both included.
    pub(in crate::schedule) fn first_local(&self, from: i64, last: i64) -> Option<i64> {
        if from > last {
            return None;
        }
        let mut month = Month::with(from)?;
        let mut earliest = (from - month.start) / DAY + 1;
        if month.matching(self) & bit(earliest) != 0 {
            let day = month.day(earliest);
            if let Some(time) = self.time_from(from - day) {
                return Some(day + time).filter(|found| *found <= last);
            }
        }
        earliest += 1;
        while month.start <= last {
            let days = u64::from(month.matching(self));
            if let Some(day) = lowest_from(days, earliest) {
                let found = month.day(day) + self.time_from(0)?;
                return Some(found).filter(|found| *found <= last);
            }
            month = Month::with(month.end())?;
            earliest = 1;
        }
        None
    }

    /// The last match from `first` to `until`, both included.
    pub(in crate::schedule) fn last_local(&self, first: i64, until: i64) -> Option<i64> {
        if first > until {
            return None;
        }
        let mut month = Month::with(until)?;
        let mut latest = (until - month.start) / DAY + 1;
        if month.matching(self) & bit(latest) != 0 {
            let day = month.day(latest);
            if let Some(time) = self.time_until(until - day) {
                return Some(day + time).filter(|found| *found >= first);
            }
        }
        latest -= 1;
        while month.end() > first {
            let days = u64::from(month.matching(self));
            if let Some(day) = highest_until(days, latest) {
                let found = month.day(day) + self.time_until(DAY - 1)?;
                return Some(found).filter(|found| *found >= first);
            }
            month = Month::with(month.start - 1)?;
            latest = 31;
        }
        None
    }

    /// The first matching time of day, in seconds, from one on.
    fn time_from(&self, time: i64) -> Option<i64> {
        let (hour, minute, second) = (time / HOUR, time % HOUR / MINUTE, time % MINUTE);
        let first_second = lowest_from(self.seconds, 0)?;
        if self.hours & bit(hour) != 0 {
            if self.minutes & u64_bit(minute) != 0
                && let Some(second) = lowest_from(self.seconds, second)
            {
                return Some(hour * HOUR + minute * MINUTE + second);
            }
            if let Some(minute) = lowest_from(self.minutes, minute + 1) {
                return Some(hour * HOUR + minute * MINUTE + first_second);
            }
        }
        let hour = lowest_from(self.hours.into(), hour + 1)?;
        Some(hour * HOUR + lowest_from(self.minutes, 0)? * MINUTE + first_second)
    }

    /// The last matching time of day, in seconds, up to one.
    fn time_until(&self, time: i64) -> Option<i64> {
        let (hour, minute, second) = (time / HOUR, time % HOUR / MINUTE, time % MINUTE);
        let last_second = highest_until(self.seconds, 59)?;
        if self.hours & bit(hour) != 0 {
            if self.minutes & u64_bit(minute) != 0
                && let Some(second) = highest_until(self.seconds, second)
            {
                return Some(hour * HOUR + minute * MINUTE + second);
            }
            if let Some(minute) = highest_until(self.minutes, minute - 1) {
                return Some(hour * HOUR + minute * MINUTE + last_second);
            }
        }
        let hour = highest_until(self.hours.into(), hour - 1)?;
        Some(hour * HOUR + highest_until(self.minutes, 59)? * MINUTE + last_second)
    }
}

/// A month, and when it starts.
struct Month {
    first: Date,
    start: i64,
}

impl Month {
    /// The month of a local time; none beyond the years that the calendar has.
    fn with(local: i64) -> Option<Self> {
        let at = Offset::UTC.to_datetime(Timestamp::from_second(local).ok()?);
        let first = at.date().first_of_month();
        let days = i64::from(at.day()) - 1;
        Some(Self { first, start: local - local.rem_euclid(DAY) - days * DAY })
    }

    fn end(&self) -> i64 {
        self.start + i64::from(self.first.days_in_month()) * DAY
    }

    fn day(&self, day: i64) -> i64 {
        self.start + (day - 1) * DAY
    }

    fn matching(&self, cron: &Cron) -> u32 {
        let is_due = u32::from(cron.months) & bit(self.first.month().into()) != 0;
        if is_due { cron.days.in_month(self.first) } else { 0 }
    }
}

fn bit(at: i64) -> u32 {
    1 << at
}

fn u64_bit(at: i64) -> u64 {
    1 << at
}

/// The lowest bit that is set, from one on.
fn lowest_from(mask: u64, from: i64) -> Option<i64> {
    let rest = mask & u64::MAX.checked_shl(u32::try_from(from).ok()?)?;
    (rest != 0).then(|| rest.trailing_zeros().into())
}

/// The highest bit that is set, up to one; none below zero.
fn highest_until(mask: u64, until: i64) -> Option<i64> {
    let above = u32::try_from(until + 1).ok()?;
    let rest = mask & !u64::MAX.checked_shl(above).unwrap_or(0);
    (rest != 0).then(|| (63 - rest.leading_zeros()).into())
}
