use crate::schedule::{Rule, ScheduleDraft};
use crate::time::Timestamp;

fn rule(zone: &str, expression: &str) -> Rule {
    let draft = ScheduleDraft {
        cron: Some(expression.into()),
        time_zone: Some(zone.into()),
        ..ScheduleDraft::default()
    };
    draft.read().unwrap()
}

#[test]
fn the_next_change_that_meets_a_slot_is_told() {
    for (zone, expression, from, note) in [
        (
            "Europe/Rome",
            "30 2 * * *",
            "2027-01-01",
            Some(
                "On 2027-03-28 the clocks in Europe/Rome go forward from 02:00 to 03:00: the slot at \
             02:30 fires at 03:00.",
            ),
        ),
        (
            "Europe/Rome",
            "30 2 * * *",
            "2027-06-01",
            Some(
                "On 2027-10-31 the clocks in Europe/Rome go back from 03:00 to 02:00: the slot at 02:30 \
             fires once, the first time.",
            ),
        ),
        (
            "Europe/Rome",
            "*/30 2 * * *",
            "2027-06-01",
            Some(
                "On 2027-10-31 the clocks in Europe/Rome go back from 03:00 to 02:00: the slot at 02:00 \
             fires twice.",
            ),
        ),
        (
            "Australia/Lord_Howe",
            "15 2 * * *",
            "2027-06-01",
            Some(
                "On 2027-10-03 the clocks in Australia/Lord_Howe go forward from 02:00 to 02:30: the slot \
             at 02:15 fires at 02:30.",
            ),
        ),
        ("Europe/Rome", "30 4 * * *", "2027-01-01", None),
        ("Asia/Kathmandu", "30 2 * * *", "2027-01-01", None),
        ("UTC", "30 2 * * *", "2027-01-01", None),
    ] {
        let from = Timestamp::parse(&format!("{from}T00:00:00Z")).unwrap();
        let told = rule(zone, expression).dst_note(from, 1_000);
        assert_eq!(told.as_deref(), note, "{zone} {expression}");
    }
}

#[test]
fn only_the_next_slots_count() {
    let rule = rule("Europe/Rome", "30 2 * * *");
    let from = Timestamp::parse("2027-03-18T12:00:00Z").unwrap();
    assert_eq!(rule.dst_note(from, 9), None);
    assert!(rule.dst_note(from, 10).is_some());
    let from = Timestamp::parse("2027-10-21T12:00:00Z").unwrap();
    assert_eq!(rule.dst_note(from, 9), None);
    assert!(rule.dst_note(from, 10).is_some());
}

#[test]
fn intervals_and_single_slots_know_no_clocks() {
    let from = Timestamp::parse("2027-01-01T00:00:00Z").unwrap();
    let every = ScheduleDraft { every: Some("1h".into()), ..ScheduleDraft::default() };
    let once = ScheduleDraft { at: Some("2027-03-28T01:00:00Z".into()), ..Default::default() };
    for draft in [every, once] {
        assert_eq!(draft.read().unwrap().dst_note(from, 1_000), None);
    }
}
