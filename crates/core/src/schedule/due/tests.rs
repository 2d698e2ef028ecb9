use std::time::{Duration, Instant};

use super::*;
use crate::schedule::ScheduleDraft;

use SkipReason::{Missed, TooMany, TooOld};
use Verdict::{Run, Skip};

fn every(interval: &str, misfire: &str, catch_up: f64) -> Rule {
    let draft = ScheduleDraft {
        every: Some(interval.into()),
        misfire: Some(misfire.into()),
        catch_up_seconds: Some(catch_up),
        ..ScheduleDraft::default()
    };
    draft.read().unwrap()
}

/// So many seconds after a full hour.
fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis((1_900_000_800 + seconds) * 1000)
}

/// Verdicts, with the slots in seconds after the hour.
fn verdicts(due: &Due) -> Vec<(i64, Verdict)> {
    let seconds = |slot: Timestamp| (slot.millis() - at(0).millis()) / 1000;
    due.slots.iter().map(|due| (seconds(due.slot), due.verdict)).collect()
}

#[test]
fn slots_on_time_run_whatever_the_rule() {
    for misfire in ["latest", "skip", "all"] {
        for catch_up in [0.0, 3600.0] {
            let due = every("30s", misfire, catch_up).due(at(0), at(61));
            assert_eq!(verdicts(&due), [(30, Run), (60, Run)], "{misfire} {catch_up}");
            assert_eq!(due.next, Some(at(90)), "{misfire}");
        }
    }
}

#[test]
fn a_slot_is_missed_once_it_is_more_than_a_minute_late() {
    let rule = every("1h", "skip", 3600.0);
    let on_time = rule.due(at(-1), at(60));
    assert_eq!(verdicts(&on_time), [(0, Run)]);
    let missed = rule.due(at(-1), at(60).plus(Duration::from_millis(1)));
    assert_eq!(verdicts(&missed), [(0, Skip(Missed))]);
}

#[test]
fn missed_slots_follow_the_misfire_rule() {
    // Slots every ten minutes; the last fifty minutes were missed, and catch-up reaches back forty.
    for (misfire, now, expected) in [
        (
            "latest",
            3100,
            vec![
                (600, Skip(TooOld)),
                (1200, Skip(Missed)),
                (1800, Skip(Missed)),
                (2400, Skip(Missed)),
                (3000, Run),
            ],
        ),
        // The newest slot is on time, and leaves out all that were missed.
        (
            "latest",
            3010,
            vec![
                (600, Skip(TooOld)),
                (1200, Skip(Missed)),
                (1800, Skip(Missed)),
                (2400, Skip(Missed)),
                (3000, Run),
            ],
        ),
        (
            "skip",
            3100,
            vec![
                (600, Skip(TooOld)),
                (1200, Skip(Missed)),
                (1800, Skip(Missed)),
                (2400, Skip(Missed)),
                (3000, Skip(Missed)),
            ],
        ),
        (
            "skip",
            3010,
            vec![
                (600, Skip(TooOld)),
                (1200, Skip(Missed)),
                (1800, Skip(Missed)),
                (2400, Skip(Missed)),
                (3000, Run),
            ],
        ),
        (
            "all",
            3100,
            vec![(600, Skip(TooOld)), (1200, Run), (1800, Run), (2400, Run), (3000, Run)],
        ),
    ] {
        let due = every("10m", misfire, 2400.0).due(at(0), at(now));
        assert_eq!(verdicts(&due), expected, "{misfire} {now}");
        assert_eq!(due.next, Some(at(3600)), "{misfire} {now}");
    }
}

#[test]
fn catch_up_reaches_back_exactly_as_far_as_it_says() {
    let rule = every("1h", "all", 600.0);
    assert_eq!(verdicts(&rule.due(at(-1), at(600))), [(0, Run)]);
    let late = at(600).plus(Duration::from_millis(1));
    assert_eq!(verdicts(&rule.due(at(-1), late)), [(0, Skip(TooOld))]);
}

#[test]
fn the_newest_slot_is_too_old_as_well() {
    let due = every("1h", "latest", 600.0).due(at(-1), at(1800));
    assert_eq!(verdicts(&due), [(0, Skip(TooOld))]);
}

#[test]
fn at_most_a_thousand_missed_slots_run_and_a_hundred_are_told() {
    let due = every("1s", "all", 3600.0).due(at(0), at(3600));
    assert_eq!(due.slots.len(), 1_100);
    let run: Vec<_> = due.slots.iter().filter(|due| due.verdict == Run).collect();
    assert_eq!((run.len(), run[0].slot, run[999].slot), (1_000, at(2601), at(3600)));
    let skipped = due.slots[..100].iter().all(|due| due.verdict == Skip(TooMany));
    assert!(skipped && due.slots.is_sorted_by_key(|due| due.slot));
}

#[test]
fn a_position_that_is_not_behind_has_nothing_due() {
    let rule = every("10s", "all", 3600.0);
    for position in [at(100), at(105), at(500)] {
        assert_eq!(rule.due(position, at(100)).slots, []);
    }
    assert_eq!(verdicts(&rule.due(at(90), at(100))), [(100, Run)]);
}

#[test]
fn an_outage_of_a_year_costs_no_more_than_one_of_an_hour() {
    let bound = Duration::from_millis(if cfg!(debug_assertions) { 50 } else { 5 });
    let year = 365 * 24 * 60 * 60;
    let crons =
        ["* * * * * *", "30 2 * * *", "0 0 29 2 *", "* * * * 1 *", "* * * 1 1 *", "* * 0 1 1 *"];
    let cron = |text: &str| ScheduleDraft {
        cron: Some(text.to_owned()),
        time_zone: Some("Europe/Rome".into()),
        ..ScheduleDraft::default()
    };
    let drafts = crons.into_iter().map(cron);
    let seconds = ScheduleDraft { every: Some("1s".into()), ..ScheduleDraft::default() };
    for draft in drafts.chain([seconds]) {
        for misfire in ["latest", "skip", "all"] {
            let draft = ScheduleDraft {
                misfire: Some(misfire.into()),
                catch_up_seconds: Some(604_800.0),
                ..draft.clone()
            };
            let rule = draft.clone().read().unwrap();
            let best = (0..3).map(|_| {
                let start = Instant::now();
                let due = rule.due(at(0), at(year));
                let run = due.slots.iter().filter(|due| due.verdict == Run).count();
                assert!(run <= 1_000 && due.slots.len() - run <= 100, "{draft:?}");
                start.elapsed()
            });
            let best = best.min().unwrap();
            assert!(best < bound, "{draft:?}: {best:?}");
        }
    }
}
