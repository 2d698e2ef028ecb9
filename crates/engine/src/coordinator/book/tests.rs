use std::time::Duration;

use duly_core::schedule::ScheduleDraft;

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_millis(1_900_000_000_000 + second * 1000)
}

fn id(n: u64) -> ScheduleId {
    ScheduleId::mint(Timestamp::EPOCH, n)
}

fn plan(wake: Option<i64>) -> Plan {
    let draft = ScheduleDraft { every: Some("1m".to_owned()), ..ScheduleDraft::default() };
    Plan {
        generation: 1,
        tenant: TenantName::default_tenant(),
        name: ScheduleName::given("s").unwrap(),
        rule: draft.read().unwrap(),
        template: Arc::from(""),
        position: at(0),
        ahead: false,
        wake: wake.map(at),
    }
}

fn entry(wake: i64) -> Entry {
    Entry { version: 1, plan: Some(plan(Some(wake))) }
}

fn ahead(wake: i64) -> Entry {
    Entry { version: 1, plan: Some(Plan { ahead: true, ..plan(Some(wake)) }) }
}

fn book(entries: impl IntoIterator<Item = Entry>) -> Book {
    let mut book = Book::default();
    for (n, entry) in (1..).zip(entries) {
        book.put(id(n), entry);
    }
    book
}

#[test]
fn what_is_due_comes_in_its_order_and_up_to_a_limit() {
    let book = book([entry(3), entry(1), entry(2), entry(9)]);
    assert_eq!(book.next(), Some(at(1)));
    assert_eq!(book.due(at(0), 9), []);
    assert_eq!(book.due(at(3), 9), [id(2), id(3), id(1)]);
    assert_eq!(book.due(at(3), 2), [id(2), id(3)]);
}

#[test]
fn a_schedule_is_in_the_agenda_once() {
    let mut book = book([entry(1)]);
    book.put(id(1), entry(5));
    assert_eq!((book.next(), book.due(at(9), 9)), (Some(at(5)), vec![id(1)]));
    book.decided(id(1), at(5), Some(at(7)));
    assert_eq!((book.next(), book.due(at(9), 9)), (Some(at(7)), vec![id(1)]));
    assert_eq!(book.plan(id(1)).unwrap().position, at(5));
    book.remove(id(1));
    assert_eq!((book.next(), book.version(id(1))), (None, None));
    book.decided(id(1), at(7), Some(at(8)));
    assert_eq!(book.next(), None, "it is gone");
}

#[test]
fn what_does_not_fire_is_known_and_not_due() {
    let mut book = book([Entry { version: 4, plan: None }, entry(1)]);
    book.put(id(3), Entry { version: 1, plan: Some(plan(None)) });
    book.stop(id(2));
    assert_eq!((book.next(), book.version(id(1)), book.version(id(2))), (None, Some(4), Some(1)));
    assert_eq!(book.between(None, None).collect::<Vec<_>>(), [id(1), id(2), id(3)]);
    assert_eq!(book.between(Some(id(1)), Some(id(2))).collect::<Vec<_>>(), [id(2)]);
}

#[test]
fn slots_that_have_come_go_before_those_ahead_unless_these_wait_long() {
    let book = book([ahead(0), entry(5), ahead(2)]);
    assert_eq!(book.next(), Some(at(0)));
    assert_eq!(book.due(at(4), 9), [id(1), id(3)]);
    assert_eq!(book.due(at(5), 9), [id(2)]);
    let half = Duration::from_secs(30);
    assert_eq!(book.due(at(0).plus(half), 9), [id(1), id(2)]);
    assert_eq!(book.due(at(2).plus(half), 2), [id(1), id(3)]);
}
