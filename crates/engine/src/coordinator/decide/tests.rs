use std::sync::Arc;

use duly_core::limits::ALL_MISSED;
use duly_core::name::{ScheduleName, TenantName};
use duly_core::schedule::{ScheduleDraft, SkipReason};
use duly_core::submit::Draft;

use super::*;
use crate::coordinator::book::Entry;

fn at(second: i64) -> Timestamp {
    Timestamp::from_millis(1_900_000_000_000 + second * 1000)
}

fn id(n: u64) -> ScheduleId {
    ScheduleId::mint(Timestamp::EPOCH, n)
}

fn template(payload: usize) -> Template {
    let payload = Some(format!("\"{}\"", "x".repeat(payload)));
    let draft = Draft { task_type: Some("t".to_owned()), payload, ..Draft::default() };
    Template::task(draft.check().unwrap()).unwrap()
}

/// A schedule of every second that is decided up to this second.
fn plan(decided: i64, draft: ScheduleDraft, template: &Template) -> Plan {
    let draft = ScheduleDraft { every: Some("1s".to_owned()), ..draft };
    let rule = draft.read().unwrap();
    let ahead = rule.overlap == Overlap::Allow;
    Plan {
        generation: 1,
        tenant: TenantName::default_tenant(),
        name: ScheduleName::given("s").unwrap(),
        wake: wake(&rule, at(decided), ahead),
        rule,
        template: Arc::from(template.encode()),
        position: at(decided),
        ahead,
    }
}

fn book(plans: impl IntoIterator<Item = Plan>) -> Book {
    let mut book = Book::default();
    for (n, plan) in (1..).zip(plans) {
        book.put(id(n), Entry { version: 1, plan: Some(plan) });
    }
    book
}

fn all() -> ScheduleDraft {
    ScheduleDraft { misfire: Some("all".to_owned()), ..ScheduleDraft::default() }
}

fn allow() -> ScheduleDraft {
    ScheduleDraft { overlap: Some("allow".to_owned()), ..ScheduleDraft::default() }
}

fn gathered(book: &mut Book, now: i64) -> Batch {
    let due = book.due(at(now), BATCH);
    let rules = Rules { defaults: Settings::default(), tenants: AllKnown::default() };
    gather(book, &due, at(now), &rules)
}

#[test]
fn a_call_holds_so_many_slots_and_the_rest_stays_due() {
    let small = template(1);
    let mut book = book([plan(0, all(), &small), plan(0, all(), &small)]);
    let batch = gathered(&mut book, 900);
    let counts: Vec<_> = batch.decisions.iter().map(|decision| decision.slots.len()).collect();
    assert_eq!(counts, [900, STORE_BATCH - 900]);
    assert_eq!(batch.decisions[0].moves, Some((at(0), at(900))));
    assert_eq!(batch.decisions[1].moves, Some((at(0), at(100))), "it goes on from there");
}

#[test]
fn a_call_holds_so_many_bytes() {
    let large = template(1_000_000);
    let mut book = book([plan(0, all(), &large)]);
    let batch = gathered(&mut book, 900);
    assert_eq!(batch.decisions[0].slots.len(), STORE_BATCH_BYTES / 1_000_000);
}

#[test]
fn skipped_slots_are_bounded_too() {
    let small = template(1);
    let plans = std::iter::repeat_n(plan(0, ScheduleDraft::default(), &small), 20);
    let mut book = book(plans);
    let batch = gathered(&mut book, 10_000);
    let slots: usize = batch.decisions.iter().map(|decision| decision.slots.len()).sum();
    assert!(slots <= STORE_BATCH && batch.decisions.len() < 20, "{slots}");
    let missed = (at(9_901), SlotOrder::Skip(SkipReason::Missed));
    assert!(batch.decisions[0].slots.contains(&missed));
}

#[test]
fn many_slots_are_decided_ahead_at_once_and_none_before_its_time() {
    let small = template(1);
    let mut book = book([plan(0, allow(), &small)]);
    let batch = gathered(&mut book, 0);
    let slots = &batch.decisions[0].slots;
    assert_eq!((slots.len(), slots[0].0, slots[59].0), (60, at(1), at(60)));
    let plan = book.plan(id(1)).unwrap().clone();
    let next = wake(&plan.rule, at(60), true);
    assert_eq!(next, Some(at(30)), "half of them are left");
    let hourly = Timestamp::from_millis(1_900_000_800_000);
    let draft = ScheduleDraft { every: Some("1h".to_owned()), ..allow() };
    let rule = draft.read().unwrap();
    let slot = rule.next(hourly).unwrap();
    assert_eq!(wake(&rule, hourly, true), Some(slot.minus(LOOK_AHEAD)));
    assert_eq!(wake(&rule, hourly, false), Some(slot));
}

#[test]
fn a_decision_that_is_repeated_is_the_same() {
    let draft = ScheduleDraft { jitter_seconds: Some(0.9), ..all() };
    let draft = || ScheduleDraft { every: Some("1s".to_owned()), ..draft.clone() };
    let (one, other) = (template(1), template(1));
    let mut first = book([plan(0, draft(), &one)]);
    let mut second = book([plan(0, draft(), &other)]);
    let (first, second) = (gathered(&mut first, 7), gathered(&mut second, 7));
    assert_eq!(first.decisions, second.decisions);
    let SlotOrder::Task(task) = &first.decisions[0].slots[0].1 else { panic!("it runs a task") };
    assert!(task.delay.is_none() && (at(1)..at(2)).contains(&task.run_at));
    assert_eq!(task.id.first_due(), task.run_at);
    assert_eq!(task.labels["duly.schedule"], "s");
    assert_eq!(task.labels["duly.slot"], at(1).to_string());
    assert!(first.decisions[0].slots.len() <= ALL_MISSED);
}

#[test]
fn a_damaged_template_stops_its_schedule_alone() {
    let small = template(1);
    let damaged = Plan { template: Arc::from("{"), ..plan(0, all(), &small) };
    let mut book = book([damaged, plan(0, all(), &small)]);
    let batch = gathered(&mut book, 1);
    assert_eq!(batch.decisions.len(), 1);
    assert_eq!(batch.decisions[0].schedule, id(2));
    assert_eq!(book.due(at(1), BATCH), [id(2)]);
}
