//! Warns of slots that a change of the clocks moves or repeats.

use std::time::Duration;

use super::cron::Cron;
use super::rule::{Rule, Timing, instant, local_text, seconds};
use super::zone::Segment;
use crate::time::Timestamp;

/// How far ahead a change of the clocks is told.
const YEAR: Duration = Duration::from_secs(366 * 24 * 60 * 60);

impl Rule {
    /// The first of the next `count` slots, up to a year ahead, that falls into a gap or into a repeated
    /// hour, in one sentence. Nothing if there is none.
    pub fn dst_note(&self, from: Timestamp, count: usize) -> Option<String> {
        let Timing::Cron(cron) = &self.timing else { return None };
        let from = from.max(self.start_at.unwrap_or(from));
        let end = self.last_of(from, count)?;
        let (from, last) = (seconds(from), seconds(end));
        let mut segment = self.zone.segment(from);
        // A slot in a repeated hour lies before the change.
        while segment.end <= last + 24 * 60 * 60 {
            segment = self.zone.segment(segment.end);
            let note = self.gap_note(cron, segment, last);
            let note = note.or_else(|| self.repeat_note(cron, segment, from, last));
            if note.is_some() {
                return note;
            }
        }
        None
    }

    /// The last of the next `count` slots, up to a year ahead.
    fn last_of(&self, from: Timestamp, count: usize) -> Option<Timestamp> {
        let until = from.plus(YEAR);
        // More slots than a year has days are looked at as a whole year.
        if count > 366 {
            return self.next(from).map(|_| self.end_at.map_or(until, |end| end.min(until)));
        }
        self.slots(from, until, count).pop()
    }

    fn gap_note(&self, cron: &Cron, segment: Segment, last: i64) -> Option<String> {
        let (first, end) = segment.gap()?;
        let slot = cron.first_local(first, end).filter(|_| segment.start <= last)?;
        let (day, from) = day_and_time(first);
        let (_, to) = day_and_time(end + 1);
        let (_, slot) = day_and_time(slot);
        let zone = self.zone.name();
        Some(format!(
            "On {day} the clocks in {zone} go forward from {from} to {to}: the slot at {slot} fires \
             at {to}."
        ))
    }

    fn repeat_note(&self, cron: &Cron, segment: Segment, from: i64, last: i64) -> Option<String> {
        let (first, end) = segment.repeated()?;
        let slot = cron.first_local(first, end)?;
        let at = slot - segment.before;
        let is_ahead = from < at && at <= last && self.end_at.is_none_or(|end| instant(at) <= end);
        let (day, to) = is_ahead.then(|| day_and_time(first))?;
        let (_, from) = day_and_time(end + 1);
        let (_, slot) = day_and_time(slot);
        let zone = self.zone.name();
        let times = if cron.repeats() { "twice" } else { "once, the first time" };
        Some(format!(
            "On {day} the clocks in {zone} go back from {from} to {to}: the slot at {slot} fires \
             {times}."
        ))
    }
}

fn day_and_time(local: i64) -> (String, String) {
    let text = local_text(local);
    let (day, time) = text.split_once(' ').expect("a day and a time");
    (day.to_owned(), time.strip_suffix(":00").unwrap_or(time).to_owned())
}

#[cfg(test)]
mod tests;
