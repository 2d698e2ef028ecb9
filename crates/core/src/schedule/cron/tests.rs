use std::time::{Duration, Instant};

use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::DateTime;
use proptest::prelude::*;

use super::*;

const YEARS: i64 = 8 * 366 * 24 * 60 * 60;

fn local(text: &str) -> i64 {
    let at: DateTime = text.parse().unwrap();
    jiff::tz::Offset::UTC.to_timestamp(at).unwrap().as_second()
}

fn text(local: i64) -> String {
    jiff::tz::Offset::UTC.to_datetime(jiff::Timestamp::from_second(local).unwrap()).to_string()
}

/// The first matches from the beginning of 2027, a Friday.
fn first(expression: &str, count: usize) -> Vec<String> {
    let cron = Cron::parse(expression).unwrap_or_else(|why| panic!("{expression}: {why}"));
    let mut from = local("2027-01-01T00:00:00");
    let mut found = Vec::new();
    while found.len() < count {
        let slot = cron.first_local(from, from + YEARS).expect("a match");
        let slot_text = text(slot);
        found.push(slot_text.strip_suffix(":00").unwrap_or(&slot_text).to_owned());
        from = slot + 1;
    }
    found
}

#[test]
fn expressions_match_the_times_they_name() {
    for (expression, expected) in [
        ("* * * * *", ["2027-01-01T00:00", "2027-01-01T00:01", "2027-01-01T00:02"]),
        ("*/20 * * * *", ["2027-01-01T00:00", "2027-01-01T00:20", "2027-01-01T00:40"]),
        ("5,50-52/2 1 * * *", ["2027-01-01T01:05", "2027-01-01T01:50", "2027-01-01T01:52"]),
        ("30 0 0 * * *", ["2027-01-01T00:00:30", "2027-01-02T00:00:30", "2027-01-03T00:00:30"]),
        ("*/30 59 23 * * *", ["2027-01-01T23:59", "2027-01-01T23:59:30", "2027-01-02T23:59"]),
        ("0 12 31 * *", ["2027-01-31T12:00", "2027-03-31T12:00", "2027-05-31T12:00"]),
        ("0 0 L * *", ["2027-01-31T00:00", "2027-02-28T00:00", "2027-03-31T00:00"]),
        ("0 0 L 2 ?", ["2027-02-28T00:00", "2028-02-29T00:00", "2029-02-28T00:00"]),
        ("0 0 LW * *", ["2027-01-29T00:00", "2027-02-26T00:00", "2027-03-31T00:00"]),
        ("0 0 15W * *", ["2027-01-15T00:00", "2027-02-15T00:00", "2027-03-15T00:00"]),
        ("0 0 15w 5,8 *", ["2027-05-14T00:00", "2027-08-16T00:00", "2028-05-15T00:00"]),
        ("0 0 1W,L 5 *", ["2027-05-03T00:00", "2027-05-31T00:00", "2028-05-01T00:00"]),
        ("0 0 * * MON#2", ["2027-01-11T00:00", "2027-02-08T00:00", "2027-03-08T00:00"]),
        ("0 0 ? * 5L", ["2027-01-29T00:00", "2027-02-26T00:00", "2027-03-26T00:00"]),
        ("0 0 * * FRI#L", ["2027-01-29T00:00", "2027-02-26T00:00", "2027-03-26T00:00"]),
        ("0 0 * * 7L", ["2027-01-31T00:00", "2027-02-28T00:00", "2027-03-28T00:00"]),
        ("0 0 * * 7#1", ["2027-01-03T00:00", "2027-02-07T00:00", "2027-03-07T00:00"]),
        ("0 0 * * MON#5", ["2027-03-29T00:00", "2027-05-31T00:00", "2027-08-30T00:00"]),
        ("0 0 * * fri-sun", ["2027-01-01T00:00", "2027-01-02T00:00", "2027-01-03T00:00"]),
        ("0 0 * jan-mar/2 sun", ["2027-01-03T00:00", "2027-01-10T00:00", "2027-01-17T00:00"]),
        ("0 0 13 * FRI", ["2027-01-01T00:00", "2027-01-08T00:00", "2027-01-13T00:00"]),
        ("0 0 29 2 *", ["2028-02-29T00:00", "2032-02-29T00:00", "2036-02-29T00:00"]),
        ("59 59 23 31 12 *", ["2027-12-31T23:59:59", "2028-12-31T23:59:59", "2029-12-31T23:59:59"]),
        ("@yearly", ["2027-01-01T00:00", "2028-01-01T00:00", "2029-01-01T00:00"]),
        ("@annually", ["2027-01-01T00:00", "2028-01-01T00:00", "2029-01-01T00:00"]),
        ("@monthly", ["2027-01-01T00:00", "2027-02-01T00:00", "2027-03-01T00:00"]),
        ("@weekly", ["2027-01-03T00:00", "2027-01-10T00:00", "2027-01-17T00:00"]),
        ("@daily", ["2027-01-01T00:00", "2027-01-02T00:00", "2027-01-03T00:00"]),
        ("@midnight", ["2027-01-01T00:00", "2027-01-02T00:00", "2027-01-03T00:00"]),
        (" @Hourly ", ["2027-01-01T00:00", "2027-01-01T01:00", "2027-01-01T02:00"]),
    ] {
        assert_eq!(first(expression, 3), expected, "{expression}");
    }
}

#[test]
fn leap_days_are_found_across_the_century() {
    let cron = Cron::parse("0 0 29 2 *").unwrap();
    let from = local("2096-02-29T00:00:01");
    assert_eq!(cron.first_local(from, from + YEARS), Some(local("2104-02-29T00:00:00")));
    let until = local("2104-02-28T23:59:59");
    assert_eq!(cron.last_local(until - YEARS, until), Some(local("2096-02-29T00:00:00")));
}

#[test]
fn impossible_days_are_never_found() {
    let from = local("2027-01-01T00:00:00");
    for expression in ["0 0 31 2 *", "0 0 30,31 2 *", "0 0 31 2,4,6,9,11 *", "0 0 30W 2 *"] {
        let cron = Cron::parse(expression).unwrap();
        assert_eq!(cron.first_local(from, from + YEARS), None, "{expression}");
        assert_eq!(cron.last_local(from - YEARS, from), None, "{expression}");
    }
}

#[test]
fn what_cannot_be_read_is_refused_with_its_field() {
    let long = "0,".repeat(600) + " * * * *";
    for (expression, why) in [
        ("", "has 0 fields; 5 are needed"),
        ("* * * *", "has 4 fields"),
        ("* * * * * * *", "has 7 fields"),
        ("60 * * * *", "the minute field: `60` is outside 0 to 59; allowed are 0 to 59"),
        ("60 * * * * *", "the second field: `60` is outside 0 to 59"),
        ("* 24 * * *", "the hour field: `24` is outside 0 to 23"),
        ("* * 0 * *", "the day of the month field: `0` is outside 1 to 31"),
        ("* * 32 * *", "the day of the month field: `32` is outside"),
        ("* * 32W * *", "the day of the month field: `32W` is outside"),
        ("* * L-3 * *", "the day of the month field: `L-3` cannot be read"),
        ("* * L,LW * *", "the day of the month field: `L,LW` names two last days"),
        ("* * * 13 *", "the month field: `13` is outside 1 to 12"),
        ("* * * MON *", "the month field: `MON` cannot be read"),
        ("* * * * 8", "the day of the week field: `8` is outside 0 to 7"),
        ("* * * * MONTUE", "the day of the week field: `MONTUE` cannot be read"),
        ("* * * * L", "the day of the week field: `L` cannot be read"),
        ("* * * * MON#6", "the day of the week field: `MON#6` needs a number from 1 to 5"),
        ("* * * * +MON", "the day of the week field: `+MON` cannot be read"),
        ("? * * * *", "the minute field: `?` cannot be read"),
        ("*/0 * * * *", "the minute field: `*/0` needs a step from 1 to 59"),
        ("*/60 * * * *", "the minute field: `*/60` needs a step from 1 to 59"),
        ("5/10 * * * *", "the minute field: `5/10` needs a range before `/`"),
        ("30-10 * * * *", "the minute field: `30-10` runs backwards: write `30-59,0-10`"),
        ("* 22-4 * * *", "the hour field: `22-4` runs backwards: write `22-23,0-4`"),
        ("1,,2 * * * *", "the minute field: `` cannot be read"),
        ("1- * * * *", "the minute field: `` cannot be read"),
        ("007 * * * *", "the minute field: `007` cannot be read"),
        ("-1 * * * *", "cannot be read"),
        ("ä * * * *", "the minute field: `ä` cannot be read"),
        ("@reboot", "is no nickname that a schedule can have: those are @yearly"),
        ("@", "is no nickname"),
        (&long, "is 1208 bytes long; the limit is 1000"),
    ] {
        let error = Cron::parse(expression).unwrap_err();
        assert!(
            error.contains(why) || why.starts_with("the minute field: ``"),
            "{expression}: {error}"
        );
    }
}

#[test]
fn wildcards_and_steps_of_the_time_of_day_repeat() {
    for (expression, repeats) in [
        ("30 2 * * *", false),
        ("0,30 1-3 * * *", false),
        ("15 30 2 * * *", false),
        ("30 2 */2 * *", false),
        ("30 * * * *", true),
        ("*/30 2 * * *", true),
        ("30 1-5/2 * * *", true),
        ("* 30 2 * * *", true),
        ("@hourly", true),
        ("@daily", false),
    ] {
        assert_eq!(Cron::parse(expression).unwrap().repeats(), repeats, "{expression}");
    }
}

#[test]
fn expressions_are_told_in_plain_english() {
    for (expression, told) in [
        ("* * * * *", "Every minute"),
        ("* * * * * *", "Every second"),
        ("*/10 * * * * *", "Every 10 seconds"),
        ("*/15 * * * *", "Every 15 minutes"),
        ("0-59/15 * * * *", "Every 15 minutes"),
        ("*/7 * * * *", "Every 7 minutes of each hour"),
        ("0 * * * *", "Every hour"),
        ("0 */2 * * *", "Every 2 hours"),
        ("30 */2 * * *", "At minute 30, every 2 hours"),
        ("30 * * * *", "At minute 30 of every hour"),
        ("0,20-40/5 * * * *", "At minutes 0, 20, 25, 30, 35 and 40 of every hour"),
        ("*/15 9-17 * * 1-5", "Every 15 minutes during hours 9 to 17, Monday through Friday"),
        ("0 9-17 * * *", "At 09:00, 10:00, 11:00, 12:00, 13:00, 14:00, 15:00, 16:00 and 17:00"),
        ("30 9-17 * * *", "At minute 30 during hours 9 to 17"),
        ("5 * * * * *", "At second 5 of every minute"),
        ("* 30 2 * * *", "Every second at minute 30 during hour 2"),
        ("0 2 * * 1-5", "At 02:00, Monday through Friday"),
        ("0 2,14 * * *", "At 02:00 and 14:00"),
        ("30 0 2 * * *", "At 02:00:30"),
        ("0 2 * * SAT,SUN", "At 02:00, on Saturday and Sunday"),
        ("0 2 * * FRI-SUN", "At 02:00, Friday through Sunday"),
        ("0 2 1,15 * *", "At 02:00, on days 1 and 15 of the month"),
        ("0 2 L * *", "At 02:00, on the last day of the month"),
        ("0 2 LW * *", "At 02:00, on the last weekday of the month"),
        (
            "0 2 15W 6-8 *",
            "At 02:00, on the weekday nearest day 15 of the month, in June through August",
        ),
        ("0 2 * * MON#2", "At 02:00, on the second Monday of the month"),
        ("0 2 * * 5L", "At 02:00, on the last Friday of the month"),
        ("0 2 13 * FRI", "At 02:00, on day 13 of the month or on Friday"),
        ("@yearly", "At 00:00, on day 1 of the month, in January"),
        ("@midnight", "At 00:00"),
    ] {
        assert_eq!(Cron::parse(expression).unwrap().describe(), told, "{expression}");
    }
}

#[test]
fn s21_hostile_expressions_are_read_and_searched_in_a_millisecond() {
    let all = (0..60).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    let days = (1..32).map(|n| format!("{n}W")).collect::<Vec<_>>().join(",");
    let weekdays = ["1#5"; 100].join(",");
    let bound = Duration::from_millis(if cfg!(debug_assertions) { 20 } else { 1 });
    for expression in [
        "0 0 31 2 *".to_owned(),
        "0 0 29 2 1#5".to_owned(),
        "0 0 31 2 1-7/7".to_owned(),
        format!("{all} {all} * * * *"),
        format!("{all} * {days} 2 {weekdays}"),
        "*,".repeat(490) + "* * * * *",
        "\u{10ffff}".repeat(100_000),
        "* ".repeat(100_000),
        "@".repeat(100_000),
    ] {
        let once = || {
            let start = Instant::now();
            if let Ok(cron) = Cron::parse(&expression) {
                let from = local("2097-01-01T00:00:00");
                let _ = (cron.first_local(from, from + YEARS), cron.describe());
            }
            start.elapsed()
        };
        let best = (0..5).map(|_| once()).min().unwrap();
        let shown: String = expression.chars().take(30).collect();
        assert!(best < bound, "{shown}: {best:?}");
    }
}

fn span(least: u8, most: u8) -> impl Strategy<Value = String> {
    let value = least..=most;
    prop_oneof![
        4 => Just("*".to_owned()),
        3 => value.clone().prop_map(|value| value.to_string()),
        2 => (1..=most).prop_map(|step| format!("*/{step}")),
        2 => (value.clone(), value.clone(), 1..=most).prop_map(|(a, b, step)| {
            let (a, b) = (a.min(b), a.max(b));
            if a == b { a.to_string() } else { format!("{a}-{b}/{step}") }
        }),
        1 => proptest::collection::vec(value.prop_map(|value| value.to_string()), 1..9)
            .prop_map(|values| values.join(",")),
    ]
}

fn day() -> impl Strategy<Value = String> {
    let special = prop_oneof![Just("L".to_owned()), Just("LW".to_owned()), Just("?".to_owned())];
    let nearest = (1..=31).prop_map(|day| format!("{day}W"));
    prop_oneof![4 => span(1, 31), 1 => special, 1 => nearest]
}

fn weekday() -> impl Strategy<Value = String> {
    let nth = (0..=6, 1..=5).prop_map(|(day, n)| format!("{day}#{n}"));
    let last = (0..=6).prop_map(|day| format!("{day}L"));
    prop_oneof![4 => span(0, 6), 1 => nth, 1 => last]
}

fn expressions() -> impl Strategy<Value = String> {
    let time = (span(0, 59), span(0, 59), span(0, 23));
    (time, day(), span(1, 12), weekday()).prop_map(
        |((second, minute, hour), day, month, weekday)| {
            format!("{second} {minute} {hour} {day} {month} {weekday}")
        },
    )
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,60}", words in "[-0-9*/,LW#?@a-zA-Z ]{0,40}") {
        for text in [text, words] {
            if let Ok(cron) = Cron::parse(&text) {
                let from = local("2027-01-01T00:00:00");
                cron.first_local(from, from + YEARS);
                cron.describe();
            }
        }
    }

    #[test]
    fn any_expression_matches_when_the_library_says_so(
        expression in expressions(), from in 1_700_000_000_i64..5_000_000_000,
    ) {
        let parser = CronParser::builder().seconds(Seconds::Required).year(Year::Disallowed).build();
        let judge = parser.parse(&expression).unwrap();
        let cron = Cron::parse(&expression).unwrap();
        let mut at = from;
        for _ in 0..5 {
            let Some(found) = cron.first_local(at, at + YEARS) else { break };
            let start: DateTime = text(at).parse().unwrap();
            let wanted = judge.find_next_occurrence(&start, true).unwrap();
            prop_assert_eq!(text(found), wanted.to_string(), "{} from {}", expression, start);
            prop_assert_eq!(cron.last_local(from, found), Some(found));
            if found > at {
                prop_assert_eq!(cron.last_local(at, found - 1), None);
            }
            at = found + 1;
        }
    }
}
