//! Which days of a month match. What a month looks like is told by its length and by the weekday of its
//! first day, so there are 28 kinds of months. The library is asked about each day of each kind once,
//! and what it answers is kept: 112 bytes instead of its own 5 KB, and a search of bits instead of a
//! walk over days.

use croner::CronPattern;
use croner::time::Weekday;
use jiff::civil::Date;

/// The days that match, one bit for each, by the length of the month (from 28) and the weekday of its
/// first day (from Sunday).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Days([[u32; 7]; 4]);

/// A month that begins on each weekday, for each length.
const MONTHS: [[(i16, i8); 7]; 4] = [
    [(2026, 2), (2021, 2), (2022, 2), (2023, 2), (2029, 2), (2030, 2), (2025, 2)],
    [(2032, 2), (2044, 2), (2028, 2), (2040, 2), (2024, 2), (2036, 2), (2020, 2)],
    [(2020, 11), (2020, 6), (2020, 9), (2020, 4), (2021, 4), (2022, 4), (2023, 4)],
    [(2020, 3), (2021, 3), (2020, 12), (2020, 1), (2020, 10), (2020, 5), (2020, 8)],
];

impl Days {
    /// What the library says of each day of each kind of month.
    pub(super) fn of(pattern: &CronPattern) -> Self {
        let mut days = [[0; 7]; 4];
        for (length, of_length) in days.iter_mut().enumerate() {
            for (first, matching) in of_length.iter_mut().enumerate() {
                let (year, month) = MONTHS[length][first];
                *matching = matching_days(pattern, Date::constant(year, month, 1));
            }
        }
        Self(days)
    }

    /// The days of a month that match.
    pub(super) fn in_month(&self, first: Date) -> u32 {
        let (length, weekday) = kind(first);
        self.0[length][weekday]
    }
}

fn matching_days(pattern: &CronPattern, first: Date) -> u32 {
    let (length, weekday) = kind(first);
    let mut days = 0;
    for day in 1..=28 + u32::try_from(length).expect("below 4") {
        let weekday = u32::try_from(weekday).expect("below 7") + day - 1;
        let weekday = Weekday::from_days_from_sunday(weekday % 7);
        let (year, month) = (first.year().into(), first.month().unsigned_abs().into());
        if pattern.day_match(year, month, day, weekday).unwrap_or(false) {
            days |= 1 << day;
        }
    }
    days
}

/// The length of the month that begins on this day, less 28, and the weekday of the day.
fn kind(first: Date) -> (usize, usize) {
    let length = usize::from(first.days_in_month().unsigned_abs()) - 28;
    let weekday = usize::from(first.weekday().to_sunday_zero_offset().unsigned_abs());
    (length, weekday)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_month_has_an_example() {
        for (length, months) in MONTHS.iter().enumerate() {
            for (weekday, (year, month)) in months.iter().enumerate() {
                let first = Date::new(*year, *month, 1).unwrap();
                assert_eq!(kind(first), (length, weekday), "{first}");
            }
        }
    }
}
