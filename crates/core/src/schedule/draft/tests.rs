use std::time::Instant;

use proptest::prelude::*;

use super::*;

fn now() -> Timestamp {
    Timestamp::parse("2027-01-01T00:00:00Z").unwrap()
}

/// A draft from its JSON.
fn draft(fields: &str) -> ScheduleDraft {
    serde_json::from_str(fields).unwrap_or_else(|bad| panic!("{fields}: {bad}"))
}

/// `field CODE` of every error.
fn errors(fields: &str) -> Vec<String> {
    let errors = draft(fields).check(now()).err().unwrap_or_default();
    errors.into_iter().map(|error| format!("{} {}", error.pointer, error.code)).collect()
}

#[test]
fn what_is_not_said_has_its_default() {
    let rule = draft(r#"{"cron": "@daily"}"#).check(now()).unwrap();
    assert_eq!(rule.zone, Zone::utc());
    assert_eq!((rule.overlap, rule.misfire), (Overlap::Skip, Misfire::Latest));
    assert_eq!((rule.catch_up, rule.jitter), (Duration::from_secs(3600), Duration::ZERO));
    assert_eq!((rule.start_at, rule.end_at, rule.note), (None, None, None));
}

#[test]
fn each_field_is_refused_with_its_code() {
    let long = format!(r#"{{"every": "1m", "note": "{}"}}"#, "n".repeat(NOTE_CHARS + 1));
    for (fields, expected) in [
        ("{}", "/cron CONFLICTING_FIELDS"),
        (r#"{"cron": "@daily", "every": "1m"}"#, "/every CONFLICTING_FIELDS"),
        (r#"{"every": "1m", "at": "2027-06-01T00:00:00Z"}"#, "/at CONFLICTING_FIELDS"),
        (r#"{"cron": "61 * * * *"}"#, "/cron INVALID_CRON"),
        (r#"{"cron": "@reboot"}"#, "/cron INVALID_CRON"),
        (r#"{"cron": "0 0 31 2 *"}"#, "/cron NEVER_FIRES"),
        (r#"{"cron": "@daily", "endAt": "2026-12-31T00:00:00Z"}"#, "/cron NEVER_FIRES"),
        (r#"{"every": "1h", "endAt": "2027-01-01T00:59:59Z"}"#, "/every NEVER_FIRES"),
        (r#"{"at": "2026-12-31T23:59:59Z"}"#, "/at NEVER_FIRES"),
        (r#"{"at": "2027-01-01T00:00:00Z"}"#, "/at NEVER_FIRES"),
        (r#"{"at": "2027-06-01T00:00:00Z", "endAt": "2027-05-01T00:00:00Z"}"#, "/at NEVER_FIRES"),
        (r#"{"at": "2029-06-01T00:00:00Z"}"#, "/at OUT_OF_RANGE"),
        (r#"{"every": "1h", "startAt": "2029-01-01T00:00:00Z"}"#, "/startAt OUT_OF_RANGE"),
        (r#"{"at": "tomorrow"}"#, "/at INVALID_TIME"),
        (r#"{"every": "soon"}"#, "/every INVALID_DURATION"),
        (r#"{"every": "30"}"#, "/every INVALID_DURATION"),
        (r#"{"every": "-1h"}"#, "/every INVALID_DURATION"),
        (r#"{"every": "0s"}"#, "/every TOO_FREQUENT"),
        (r#"{"every": "999ms"}"#, "/every TOO_FREQUENT"),
        (r#"{"every": "1500ms"}"#, "/every OUT_OF_RANGE"),
        (r#"{"every": "9601h"}"#, "/every OUT_OF_RANGE"),
        (r#"{"cron": "@daily", "timeZone": "Rome"}"#, "/timeZone UNKNOWN_TIME_ZONE"),
        (r#"{"cron": "@daily", "overlap": "queue"}"#, "/overlap UNKNOWN_WORD"),
        (r#"{"cron": "@daily", "misfire": "SKIP"}"#, "/misfire UNKNOWN_WORD"),
        (r#"{"cron": "@daily", "catchUpSeconds": 604801}"#, "/catchUpSeconds OUT_OF_RANGE"),
        (r#"{"cron": "@daily", "catchUpSeconds": -1}"#, "/catchUpSeconds OUT_OF_RANGE"),
        (r#"{"cron": "@daily", "jitterSeconds": 3601}"#, "/jitterSeconds OUT_OF_RANGE"),
        (r#"{"every": "30s", "jitterSeconds": 30}"#, "/jitterSeconds OUT_OF_RANGE"),
        (r#"{"every": "30s", "startAt": "soon"}"#, "/startAt INVALID_TIME"),
        (r#"{"every": "30s", "endAt": "2027-02-30T00:00:00Z"}"#, "/endAt INVALID_TIME"),
        (
            r#"{"every": "30s", "startAt": "2027-02-02T00:00:00Z", "endAt": "2027-02-01T00:00:00Z"}"#,
            "/endAt OUT_OF_RANGE",
        ),
        (r#"{"every": "30s", "labels": {"": "x"}}"#, "/labels INVALID_LABEL"),
        (&long, "/note OUT_OF_RANGE"),
    ] {
        assert_eq!(errors(fields), [expected], "{fields}");
    }
}

#[test]
fn all_errors_are_reported_at_once() {
    let fields = r#"{"cron": "x", "timeZone": "x", "overlap": "x", "misfire": "x", "startAt": "x",
                     "endAt": "x", "catchUpSeconds": -1, "jitterSeconds": -1, "labels": {"": ""}}"#;
    assert_eq!(errors(fields).len(), 9, "{:?}", errors(fields));
}

#[test]
fn the_longest_and_the_shortest_interval_are_taken() {
    for (every, seconds) in
        [("1s", 1), ("PT30S", 30), ("1h30m", 5400), ("1000ms", 1), ("9600h", 34_560_000)]
    {
        let rule = draft(&format!(r#"{{"every": "{every}"}}"#)).check(now()).unwrap();
        let interval = Duration::from_secs(seconds);
        assert_eq!(rule.timing, Timing::Every { interval }, "{every}");
    }
}

#[test]
fn a_rule_survives_being_stored() {
    for fields in [
        r#"{"cron": "0 2 * * MON-FRI", "timeZone": "europe/rome", "overlap": "bufferOne",
            "misfire": "all", "catchUpSeconds": 7200.5, "jitterSeconds": 0.25, "note": "nightly",
            "labels": {"team": "billing"}}"#,
        r#"{"every": "1h30m", "startAt": "2027-01-31T08:00:00.5Z", "endAt": "2027-03-01T00:00:00Z"}"#,
        r#"{"at": "2027-01-31T08:00:00+01:00", "overlap": "cancelOther", "misfire": "skip"}"#,
    ] {
        let rule = draft(fields).check(now()).unwrap();
        let stored = serde_json::to_string(&ScheduleDraft::from(&rule)).unwrap();
        assert_eq!(draft(&stored).read().unwrap(), rule, "{stored}");
    }
}

#[test]
fn a_stored_schedule_is_read_after_its_last_slot() {
    for fields in [
        r#"{"at": "2026-12-31T00:00:00Z"}"#,
        r#"{"cron": "@daily", "endAt": "2026-12-31T00:00:00Z"}"#,
    ] {
        assert!(draft(fields).check(now()).is_err(), "{fields}");
        assert_eq!(draft(fields).read().unwrap().next(now()), None, "{fields}");
    }
}

#[test]
fn leap_days_are_taken_even_where_the_next_is_eight_years_ahead() {
    for (now, is_taken) in [("2096-02-29T00:00:00Z", true), ("2101-01-01T00:00:00Z", true)] {
        let now = Timestamp::parse(now).unwrap();
        assert_eq!(draft(r#"{"cron": "0 0 29 2 *"}"#).check(now).is_ok(), is_taken, "{now}");
    }
}

#[test]
fn s21_checking_a_schedule_takes_less_than_a_millisecond() {
    let bound = Duration::from_millis(if cfg!(debug_assertions) { 30 } else { 1 });
    let zone = "x".repeat(64);
    for (cron, zone) in [
        ("0 0 31 2 *", "Europe/Rome"),
        ("0 0 29 2 1#5", "America/New_York"),
        ("0 0 29 2 *", "Africa/Casablanca"),
        ("0 0 31 2 *", "Europe/Roma"),
        ("x", &zone),
        ("x", "Argentina/Buenos Aires of the South"),
    ] {
        let once = || {
            let draft = ScheduleDraft {
                cron: Some(cron.into()),
                time_zone: Some(zone.into()),
                ..ScheduleDraft::default()
            };
            let start = Instant::now();
            let _ = draft.check(now());
            start.elapsed()
        };
        let best = (0..5).map(|_| once()).min().unwrap();
        assert!(best < bound, "{cron} {zone}: {best:?}");
    }
}

proptest! {
    #[test]
    fn no_draft_makes_it_panic(
        cron in proptest::option::of("\\PC{0,40}"),
        every in proptest::option::of("[-0-9a-zPTHMS. ]{0,20}"),
        at in proptest::option::of("[-0-9TZ:.+]{0,30}"),
        time_zone in proptest::option::of("\\PC{0,80}"),
        seconds in proptest::option::of(proptest::num::f64::ANY),
        now in 0_i64..=253_402_300_799_999,
    ) {
        let draft = ScheduleDraft {
            cron, every, at, time_zone,
            catch_up_seconds: seconds,
            jitter_seconds: seconds,
            ..ScheduleDraft::default()
        };
        let now = Timestamp::from_millis(now);
        if let Ok(rule) = draft.check(now) {
            let next = rule.next(now).unwrap();
            prop_assert!(next > now);
            rule.due(now, next);
            rule.describe();
            rule.dst_note(now, 10);
        }
    }
}
