//! Beliefs that are raised and lowered.

use super::*;

const RANGE: Range = Range { lane: 1, rank: 4 };

fn look(since: i64, head: Option<i64>) -> [Look; 1] {
    [Look { range: RANGE, since, head }]
}

/// What a list of all ranges shows.
fn shown(at: i64) -> HashMap<Range, i64> {
    [(RANGE, at)].into_iter().collect()
}

#[test]
fn a_look_does_not_hide_what_came_meanwhile() {
    let heads = Heads::default();
    let next = || heads.next(|_, _| true);
    let before = heads.moment();
    heads.add(RANGE, 70);
    heads.settle(before, look(0, None));
    assert_eq!(next(), Some(70));
    assert_eq!(heads.learn(before, &HashMap::default()), None);
    assert_eq!(next(), Some(70));
    heads.settle(heads.moment(), look(0, Some(90)));
    assert_eq!(next(), Some(90));
    heads.learn(heads.moment(), &HashMap::default());
    assert_eq!(next(), None);
}

#[test]
fn a_look_does_not_bring_back_what_went_meanwhile() {
    let heads = Heads::default();
    heads.add(RANGE, 70);
    let shown = shown(70);
    let before = heads.moment();
    heads.settle(before, look(0, None));
    assert_eq!(heads.learn(before, &shown), None);
    assert_eq!(heads.next(|_, _| true), None);
    assert_eq!(heads.learn(heads.moment(), &shown), Some(70), "now it is news");
    assert_eq!(heads.next(|_, _| true), Some(70));
}

#[test]
fn what_comes_late_is_not_hidden_by_looks_that_began_behind_it() {
    let heads = Heads::default();
    let shown = shown(30);
    let (listing, claiming) = (heads.moment_of_list(), heads.moment());
    // A claim ends while all ranges are listed, and another one after that.
    heads.settle(claiming, look(70, Some(90)));
    assert_eq!(heads.learn(listing, &shown), Some(30));
    heads.settle(claiming, look(80, Some(90)));
    assert_eq!(heads.next(|_, _| true), Some(30));
    heads.settle(heads.moment(), look(30, Some(90)));
    assert_eq!(heads.next(|_, _| true), Some(90), "the look began there");
}

#[test]
fn a_slow_list_does_not_bring_back_what_several_claims_have_passed() {
    let heads = Heads::default();
    heads.add(RANGE, 70);
    let shown = shown(70);
    let listing = heads.moment_of_list();
    heads.settle(heads.moment(), look(70, Some(90)));
    heads.settle(heads.moment(), look(90, None));
    assert_eq!(heads.learn(listing, &shown), None);
    assert_eq!(heads.next(|_, _| true), None);
    // What one that begins later shows was put there late.
    let listing = heads.moment_of_list();
    heads.settle(heads.moment(), look(95, None));
    assert_eq!(heads.learn(listing, &shown), Some(70));
}

#[test]
fn ranges_come_in_the_order_of_claims() {
    let heads = Heads::default();
    let (urgent, old) = (Range { lane: 1, rank: 0 }, Range { lane: 1, rank: 9 });
    heads.add(urgent, 100);
    heads.add(old, 50);
    heads.add(Range { lane: 2, rank: 0 }, 10);
    assert_eq!(heads.due(100, 1, |lane| lane == 1), [(urgent, 100)]);
    assert_eq!(heads.due(99, 2, |lane| lane == 1), [(old, 50)]);
    assert!(!heads.is_drained(1, 50) && heads.is_drained(1, 49) && heads.is_drained(3, 100));
}
