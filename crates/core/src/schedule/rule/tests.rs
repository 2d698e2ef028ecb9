use super::*;
use crate::schedule::ScheduleDraft;

fn at(text: &str) -> Timestamp {
    let text = if text.len() == 16 { format!("{text}:00Z") } else { format!("{text}Z") };
    Timestamp::parse(&text).unwrap_or_else(|_| panic!("{text}"))
}

fn cron(zone: &str, expression: &str) -> Rule {
    let draft = ScheduleDraft {
        cron: Some(expression.into()),
        time_zone: Some(zone.into()),
        ..ScheduleDraft::default()
    };
    draft.read().unwrap_or_else(|errors| panic!("{expression}: {errors:?}"))
}

fn every(text: &str, start_at: Option<&str>, end_at: Option<&str>) -> Rule {
    let draft = ScheduleDraft {
        every: Some(text.into()),
        start_at: start_at.map(Into::into),
        end_at: end_at.map(Into::into),
        ..ScheduleDraft::default()
    };
    draft.read().unwrap()
}

/// Slots in UTC, without the seconds that are zero.
fn shown(slots: &[Timestamp]) -> Vec<String> {
    let text = |slot: &Timestamp| slot.to_string().replace(".000Z", "");
    let short = |text: String| text.strip_suffix(":00").unwrap_or(&text).to_owned();
    slots.iter().map(|slot| short(text(slot))).collect()
}

/// Every slot between two instants, in UTC; the search backwards must agree.
fn between(rule: &Rule, from: &str, until: &str) -> Vec<String> {
    let (from, until) = (at(from), at(until));
    let before = Timestamp::from_millis(from.millis() - 1);
    let slots = rule.slots(before, until, 1000);
    let mut back = rule.newest(before, until, 1000);
    back.reverse();
    assert_eq!(shown(&slots), shown(&back), "forwards and backwards");
    let mut next = Vec::new();
    let mut after = before;
    while let Some(slot) = rule.next(after).filter(|slot| *slot <= until) {
        assert_eq!(rule.previous(slot), Some(slot));
        next.push(slot);
        after = slot;
    }
    assert_eq!(slots, next, "one by one");
    shown(&slots)
}

fn check_table(table: &str) {
    for row in table.lines().filter(|row| row.contains('|')) {
        let [zone, expression, from, until, slots] =
            row.split('|').map(str::trim).collect::<Vec<_>>()[..]
        else {
            panic!("{row}");
        };
        let found = between(&cron(zone, expression), from, until);
        let found: Vec<_> = found.iter().map(|slot| &slot["2027-".len()..]).collect();
        assert_eq!(found.join(" "), slots, "{row}");
    }
}

/// Zone, expression, two instants, and the slots between them without their year; all in UTC.
const GAPS: &str = "
    # 2027-03-28, 02:00 to 03:00 at 01:00 UTC.
    Europe/Rome | 30 2 * * * | 2027-03-27T00:00 | 2027-03-29T12:00 | 03-27T01:30 03-28T01:00 03-29T00:30
    Europe/Rome | 0,15,30 2 * * * | 2027-03-28T00:00 | 2027-03-28T23:00 | 03-28T01:00
    Europe/Rome | 30 2,3 * * * | 2027-03-28T00:00 | 2027-03-28T23:00 | 03-28T01:00 03-28T01:30
    Europe/Rome | 0 2,3 * * * | 2027-03-28T00:00 | 2027-03-28T23:00 | 03-28T01:00
    Europe/Rome | */30 * * * * | 2027-03-28T00:00 | 2027-03-28T02:00 | 03-28T00:00 03-28T00:30 03-28T01:00 03-28T01:30 03-28T02:00
    Europe/Rome | */20 2 * * * | 2027-03-28T00:00 | 2027-03-28T23:00 | 03-28T01:00
    Europe/Rome | 15 30 2 * * * | 2027-03-28T00:00 | 2027-03-28T23:00 | 03-28T01:00
    # 2027-03-14, 02:00 to 03:00 at 07:00 UTC.
    America/New_York | 30 2 * * * | 2027-03-13T12:00 | 2027-03-15T12:00 | 03-14T07:00 03-15T06:30
    # 2027-10-03, 02:00 to 02:30 at 15:30 UTC of the day before.
    Australia/Lord_Howe | 15 2 * * * | 2027-10-01T12:00 | 2027-10-04T12:00 | 10-01T15:45 10-02T15:30 10-03T15:15
    # 2025-04-06, the end of Ramadan: 02:00 to 03:00 at 02:00 UTC.
    Africa/Casablanca | 30 2 * * * | 2025-04-05T00:00 | 2025-04-07T12:00 | 04-05T02:30 04-06T02:00 04-07T01:30
    # All of 2011-12-30 was left out, at 10:00 UTC.
    Pacific/Apia | 0 12 * * * | 2011-12-29T00:00 | 2011-12-31T23:00 | 12-29T22:00 12-30T10:00 12-30T22:00 12-31T22:00
    # Never changes, and is ahead by 5:45.
    Asia/Kathmandu | 30 2 * * * | 2027-03-27T00:00 | 2027-03-29T12:00 | 03-27T20:45 03-28T20:45
";

#[test]
fn a_slot_in_a_gap_fires_at_the_first_instant_after_it() {
    check_table(GAPS);
}

/// The same around hours that are repeated.
const REPEATED_HOURS: &str = "
    # 2027-10-31, 03:00 to 02:00 at 01:00 UTC.
    Europe/Rome | 30 2 * * * | 2027-10-30T12:00 | 2027-11-01T12:00 | 10-31T00:30 11-01T01:30
    Europe/Rome | 0,30 1-3 * * * | 2027-10-30T22:30 | 2027-10-31T03:00 | 10-30T23:00 10-30T23:30 10-31T00:00 10-31T00:30 10-31T02:00 10-31T02:30
    Europe/Rome | 30 * * * * | 2027-10-30T23:00 | 2027-10-31T02:30 | 10-30T23:30 10-31T00:30 10-31T01:30 10-31T02:30
    Europe/Rome | */30 2 * * * | 2027-10-31T00:00 | 2027-10-31T23:00 | 10-31T00:00 10-31T00:30 10-31T01:00 10-31T01:30
    Europe/Rome | 30 2-4/2 * * * | 2027-10-31T00:00 | 2027-10-31T23:00 | 10-31T00:30 10-31T01:30 10-31T03:30
    Europe/Rome | 0 3 * * * | 2027-10-31T00:00 | 2027-10-31T23:00 | 10-31T02:00
    # 2027-11-07, 02:00 to 01:00 at 06:00 UTC.
    America/New_York | 30 1 * * * | 2027-11-06T12:00 | 2027-11-08T12:00 | 11-07T05:30 11-08T06:30
    # 2027-04-04, 02:00 to 01:30 at 15:00 UTC of the day before.
    Australia/Lord_Howe | 45 1 * * * | 2027-04-03T00:00 | 2027-04-05T12:00 | 04-03T14:45 04-04T15:15
    Australia/Lord_Howe | */15 1 * * * | 2027-04-03T14:00 | 2027-04-03T20:00 | 04-03T14:00 04-03T14:15 04-03T14:30 04-03T14:45 04-03T15:00 04-03T15:15
    # 2025-02-23, the beginning of Ramadan: 03:00 to 02:00 at 02:00 UTC.
    Africa/Casablanca | 30 2 * * * | 2025-02-22T12:00 | 2025-02-24T12:00 | 02-23T01:30 02-24T02:30
    Africa/Casablanca | 30 * * * * | 2025-02-23T01:00 | 2025-02-23T03:00 | 02-23T01:30 02-23T02:30
";

#[test]
fn in_a_repeated_hour_fixed_times_fire_once_and_wildcards_go_on() {
    check_table(REPEATED_HOURS);
}

#[test]
fn leap_days_fire_in_leap_years_alone_and_across_the_century() {
    let rule = cron("Europe/Rome", "0 12 29 2 *");
    let mut after = at("2088-03-01T00:00");
    let mut years = Vec::new();
    for _ in 0..3 {
        after = rule.next(after).unwrap();
        years.push(after.to_string()[..10].to_owned());
    }
    assert_eq!(years, ["2092-02-29", "2096-02-29", "2104-02-29"]);
    assert_eq!(rule.previous(at("2104-02-01T00:00")), Some(at("2096-02-29T11:00")));
}

#[test]
fn next_is_later_and_never_between_seconds() {
    let rule = cron("UTC", "* * * * * *");
    let now = Timestamp::from_millis(1_900_000_000_000);
    assert_eq!(rule.next(now), Some(Timestamp::from_millis(1_900_000_001_000)));
    assert_eq!(rule.next(Timestamp::from_millis(1_899_999_999_001)), Some(now));
    assert_eq!(rule.next(Timestamp::EPOCH), Some(Timestamp::from_millis(1_000)));
}

#[test]
fn the_end_of_time_is_no_slot() {
    let end = Timestamp::clamped(i64::MAX);
    for rule in [cron("Asia/Tokyo", "* * * * * *"), every("1s", None, None)] {
        assert_eq!(rule.next(end), None);
        assert_eq!(rule.due(end.minus(Duration::from_secs(5)), end).next, None);
    }
    assert_eq!(cron("UTC", "0 0 31 2 *").next(at("2027-01-01T00:00")), None);
}

#[test]
fn intervals_are_counted_from_their_start_or_from_1970() {
    let hourly = every("1h", None, None);
    assert_eq!(
        between(&hourly, "2027-01-01T00:30", "2027-01-01T02:00"),
        ["2027-01-01T01:00", "2027-01-01T02:00"]
    );
    let started = every("90m", Some("2027-01-01T00:10:00.5Z"), Some("2027-01-01T03:10:01Z"));
    assert_eq!(
        between(&started, "2026-01-01T00:00", "2028-01-01T00:00"),
        ["2027-01-01T00:10:01", "2027-01-01T01:40:01", "2027-01-01T03:10:01"]
    );
    assert_eq!(started.next(at("2027-01-01T03:10:01")), None);
}

#[test]
fn start_and_end_are_slots_themselves() {
    let draft = ScheduleDraft {
        cron: Some("0 12 * * *".into()),
        start_at: Some("2027-06-02T12:00:00Z".into()),
        end_at: Some("2027-06-04T12:00:00Z".into()),
        ..ScheduleDraft::default()
    };
    let rule = draft.read().unwrap();
    assert_eq!(
        between(&rule, "2027-01-01T00:00", "2028-01-01T00:00"),
        ["2027-06-02T12:00", "2027-06-03T12:00", "2027-06-04T12:00"]
    );
    assert_eq!(rule.previous(at("2027-06-01T12:00")), None);
}

#[test]
fn a_single_slot_fires_once() {
    let draft = ScheduleDraft { at: Some("2027-06-02T12:00:00.001Z".into()), ..Default::default() };
    let rule = draft.read().unwrap();
    let slot = at("2027-06-02T12:00:01");
    assert_eq!(rule.next(at("2027-01-01T00:00")), Some(slot));
    assert_eq!((rule.next(slot), rule.previous(slot)), (None, Some(slot)));
}

#[test]
fn rules_are_told_in_plain_english() {
    let told = |rule: Rule| rule.describe();
    let nightly = cron("europe/rome", "0 2 * * 1-5");
    assert_eq!(told(nightly), "At 02:00, Monday through Friday (Europe/Rome)");
    assert_eq!(told(every("30s", None, None)), "Every 30 seconds");
    assert_eq!(told(every("PT1H", None, None)), "Every hour");
    assert_eq!(told(every("1h30m", None, None)), "Every 1 hour and 30 minutes");
    let started = every("36h", Some("2027-06-02T12:00:00Z"), None);
    assert_eq!(told(started), "Every 1 day and 12 hours from 2027-06-02 12:00:00 (UTC)");
    let once = ScheduleDraft {
        at: Some("2027-06-02T12:00:00Z".into()),
        time_zone: Some("Europe/Rome".into()),
        ..Default::default()
    };
    assert_eq!(told(once.read().unwrap()), "Once at 2027-06-02 14:00:00 (Europe/Rome)");
}

#[test]
fn many_slots_are_found_one_like_all() {
    for zone in ["Europe/Rome", "Australia/Lord_Howe", "Africa/Casablanca", "America/Sao_Paulo"] {
        for expression in ["0 */6 * * *", "30 2 * * SUN", "15 1 L * *", "0 0 * * *"] {
            between(&cron(zone, expression), "2027-01-01T00:00", "2027-08-01T00:00");
        }
    }
}
