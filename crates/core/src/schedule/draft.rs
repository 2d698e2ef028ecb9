//! From the fields of a schedule to a rule: every field is checked, and all that is wrong is reported at
//! once.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::cron::Cron;
use super::policy::{Misfire, Overlap};
use super::rule::{Rule, Timing};
use super::zone::Zone;
use crate::duration;
use crate::limits::{CATCH_UP, DEFAULT_CATCH_UP, INTERVAL, NOTE_CHARS, RUN_AHEAD, SCHEDULE_JITTER};
use crate::submit::{self, FieldError};
use crate::time::Timestamp;

/// The fields of a schedule that say when it fires, each of the right JSON type and otherwise unchecked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScheduleDraft {
    /// `cron`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// `every`, a duration such as `30s`, `1h30m` or `PT30S`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<String>,
    /// `at`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// `timeZone`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// `overlap`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlap: Option<String>,
    /// `misfire`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub misfire: Option<String>,
    /// `catchUpSeconds`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catch_up_seconds: Option<f64>,
    /// `jitterSeconds`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_seconds: Option<f64>,
    /// `startAt`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_at: Option<String>,
    /// `endAt`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_at: Option<String>,
    /// `labels`
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// `note`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl ScheduleDraft {
    /// Checks every field, and that the schedule fires after `now`.
    pub fn check(self, now: Timestamp) -> Result<Rule, Vec<FieldError>> {
        let rule = self.read()?;
        rule.check_ahead(now).map_err(|error| vec![error])?;
        Ok(rule)
    }

    /// Checks every field, whatever the time is: for a stored schedule, which may have fired for the last
    /// time.
    pub fn read(self) -> Result<Rule, Vec<FieldError>> {
        let mut errors = Vec::new();
        let timing = self.check_timing(&mut errors);
        let zone = self.check_zone(&mut errors);
        let overlap =
            word("overlap", self.overlap.as_deref(), &Overlap::ALL.map(named), &mut errors);
        let misfire =
            word("misfire", self.misfire.as_deref(), &Misfire::ALL.map(named), &mut errors);
        let range = Duration::ZERO..=CATCH_UP;
        let catch_up = submit::seconds("catchUpSeconds", self.catch_up_seconds, range, &mut errors);
        let jitter = self.check_jitter(timing.as_ref(), &mut errors);
        let start_at = time("startAt", self.start_at.as_deref(), &mut errors).map(rounded_up);
        let end_at = time("endAt", self.end_at.as_deref(), &mut errors).map(rounded_down);
        if start_at.zip(end_at).is_some_and(|(start, end)| end < start) {
            errors.push(FieldError::of("endAt", "OUT_OF_RANGE", "must not be before startAt"));
        }
        errors.extend(submit::check_labels(&self.labels).err());
        self.check_note(&mut errors);
        match (timing, zone, errors.is_empty()) {
            (Some(timing), Some(zone), true) => Ok(Rule {
                timing,
                zone,
                overlap: overlap.unwrap_or_default(),
                misfire: misfire.unwrap_or_default(),
                catch_up: catch_up.unwrap_or(DEFAULT_CATCH_UP),
                jitter,
                start_at,
                end_at,
                labels: self.labels,
                note: self.note,
            }),
            _ => Err(errors),
        }
    }

    fn check_timing(&self, errors: &mut Vec<FieldError>) -> Option<Timing> {
        let given = [("cron", &self.cron), ("every", &self.every), ("at", &self.at)];
        let given: Vec<_> =
            given.into_iter().filter_map(|(name, text)| Some((name, text.as_deref()?))).collect();
        let [(name, text)] = given[..] else {
            let name = given.last().map_or("cron", |(name, _)| *name);
            let detail = "give exactly one of cron, every and at";
            errors.push(FieldError::of(name, "CONFLICTING_FIELDS", detail));
            return None;
        };
        match name {
            "cron" => Cron::parse(text)
                .map_err(|why| errors.push(FieldError::of(name, "INVALID_CRON", why)))
                .ok()
                .map(Timing::Cron),
            "every" => check_interval(text)
                .map_err(|error| errors.push(error))
                .ok()
                .map(|interval| Timing::Every { interval }),
            _ => time(name, Some(text), errors)
                .map(|instant| Timing::At { instant: rounded_up(instant) }),
        }
    }

    fn check_zone(&self, errors: &mut Vec<FieldError>) -> Option<Zone> {
        let Some(name) = &self.time_zone else { return Some(Zone::utc()) };
        let zone = Zone::named(name);
        zone.map_err(|why| errors.push(FieldError::of("timeZone", "UNKNOWN_TIME_ZONE", why))).ok()
    }

    fn check_jitter(&self, timing: Option<&Timing>, errors: &mut Vec<FieldError>) -> Duration {
        let range = Duration::ZERO..=SCHEDULE_JITTER;
        let jitter = submit::seconds("jitterSeconds", self.jitter_seconds, range, errors);
        let jitter = jitter.unwrap_or_default();
        if let Some(Timing::Every { interval }) = timing
            && jitter >= *interval
        {
            let detail = "must be below the interval";
            errors.push(FieldError::of("jitterSeconds", "OUT_OF_RANGE", detail));
        }
        jitter
    }

    fn check_note(&self, errors: &mut Vec<FieldError>) {
        let length = self.note.as_deref().map_or(0, |note| note.chars().count());
        if length > NOTE_CHARS {
            let detail = format!("is {length} characters long; the limit is {NOTE_CHARS}");
            errors.push(FieldError::of("note", "OUT_OF_RANGE", detail));
        }
    }
}

impl From<&Rule> for ScheduleDraft {
    /// The fields that [`ScheduleDraft::read`] makes the same rule from: how stores keep it.
    fn from(rule: &Rule) -> Self {
        let mut draft = Self {
            time_zone: Some(rule.zone.name().to_owned()),
            overlap: Some(rule.overlap.to_string()),
            misfire: Some(rule.misfire.to_string()),
            catch_up_seconds: Some(rule.catch_up.as_secs_f64()),
            jitter_seconds: Some(rule.jitter.as_secs_f64()),
            start_at: rule.start_at.map(|at| at.to_string()),
            end_at: rule.end_at.map(|at| at.to_string()),
            labels: rule.labels.clone(),
            note: rule.note.clone(),
            ..Self::default()
        };
        match &rule.timing {
            Timing::Cron(cron) => draft.cron = Some(cron.text().to_owned()),
            Timing::Every { interval } => draft.every = Some(format!("{}s", interval.as_secs())),
            Timing::At { instant } => draft.at = Some(instant.to_string()),
        }
        draft
    }
}

fn check_interval(text: &str) -> Result<Duration, FieldError> {
    let of = |code, detail: String| FieldError::of("every", code, detail);
    let interval = duration::parse(text).ok_or_else(|| {
        of("INVALID_DURATION", "is not a duration, such as 30s, 5m, 1h30m or PT30S".to_owned())
    })?;
    if interval < INTERVAL {
        return Err(of("TOO_FREQUENT", format!("must be at least {} s", INTERVAL.as_secs())));
    }
    if interval > RUN_AHEAD || interval.subsec_nanos() != 0 {
        let days = RUN_AHEAD.as_secs() / (24 * 60 * 60);
        return Err(of("OUT_OF_RANGE", format!("must be whole seconds, at most {days} days")));
    }
    Ok(interval)
}

fn time(name: &str, text: Option<&str>, errors: &mut Vec<FieldError>) -> Option<Timestamp> {
    let bad =
        |bad: crate::time::NotAnInstant| FieldError::of(name, "INVALID_TIME", bad.to_string());
    Timestamp::parse(text?).map_err(|error| errors.push(bad(error))).ok()
}

/// Slots are whole seconds, and none is earlier than what was asked for.
fn rounded_up(at: Timestamp) -> Timestamp {
    rounded_down(at.plus(Duration::from_millis(999)))
}

fn rounded_down(at: Timestamp) -> Timestamp {
    Timestamp::from_millis(at.millis() - at.millis() % 1000)
}

fn named<T: Copy + ToString>(word: T) -> (String, T) {
    (word.to_string(), word)
}

/// One of a few words.
fn word<T: Copy>(
    name: &str,
    value: Option<&str>,
    words: &[(String, T)],
    errors: &mut Vec<FieldError>,
) -> Option<T> {
    let words: Vec<_> = words.iter().map(|(word, meaning)| (word.as_str(), *meaning)).collect();
    submit::choice(name, value, &words, errors)
}

#[cfg(test)]
mod tests;
