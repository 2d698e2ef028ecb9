use super::*;

fn view(seen: &str, low: i64, high: i64) -> View {
    View { seen: seen.parse().unwrap(), low, high, at: Timestamp::from_millis(1_900_000_000_000) }
}

/// In a step between two views, up to a row and an event in it.
fn within(from: &View, to: &View, number: i64, index: u32) -> Place {
    Place { from: from.clone(), to: Some(to.clone()), number, index }
}

#[test]
fn a_place_reads_back_from_its_position() {
    let (from, to) = (view("10:20:11,14", 5, 9), view("14:25:14", 8, 12));
    for place in [Place::at(from.clone()), within(&from, &to, 11, 2), within(&from, &to, 12, 0)] {
        let text = place.position().to_string();
        assert_eq!(Place::of(&text.parse().unwrap()), Some(place), "{text}");
    }
}

#[test]
fn what_is_no_place_is_refused() {
    let position =
        |view: &str, number| Position { view: view.into(), at: Timestamp::EPOCH, number, index: 0 };
    for (view, number) in [
        ("", 0),
        ("10:20:", 0),
        ("10:20:~1", 0),
        ("20:10:~1~2", 0),
        ("0:10:~1~2", 0),
        ("10:20:9~1~2", 0),
        ("10:20:20~1~2", 0),
        ("10:20:12,11~1~2", 0),
        ("10:20:~1~2", 5),
        ("10:20:~1~2~10:19:~1~2~3", 5),
        ("10:20:~1~2~10:30:~1~2~3", u64::MAX),
    ] {
        assert_eq!(Place::of(&position(view, number)), None, "{view}");
    }
}

#[test]
fn a_later_snapshot_sees_what_an_earlier_one_does() {
    let of = |text: &str| text.parse::<Snapshot>().unwrap();
    let times = ["10:20:11,14", "10:20:11", "11:24:11,21", "24:24:", "24:30:25"].map(of);
    for (one, earlier) in times.iter().enumerate() {
        for (other, later) in times.iter().enumerate() {
            assert_eq!(earlier.is_within(later), one <= other, "{earlier} {later}");
        }
    }
}

#[test]
fn a_place_covers_those_before_it() {
    let views = [view("10:10:", 1, 2), view("10:20:12", 4, 9), view("12:30:12,25", 8, 14)];
    let [first, second, third] = &views;
    let order = [
        Place::at(first.clone()),
        within(first, second, 3, 1),
        within(first, second, 3, 2),
        within(first, second, 3, 0),
        within(first, second, 9, 0),
        Place::at(second.clone()),
        within(second, third, 6, 0),
        Place::at(third.clone()),
    ];
    for (one, later) in order.iter().enumerate() {
        for earlier in &order[..=one] {
            assert!(later.covers(earlier), "{later:?} covers {earlier:?}");
        }
        for earlier in &order[..one] {
            // The end of a step is the beginning of the next.
            let same = earlier.number == 9 && *later == Place::at(second.clone());
            assert!(same || !earlier.covers(later), "{earlier:?} does not cover {later:?}");
        }
    }
}

#[test]
fn a_longer_step_covers_what_lies_in_it() {
    let views = [view("10:10:", 1, 2), view("10:20:12", 4, 9), view("12:30:12,25", 8, 14)];
    let [first, second, third] = &views;
    assert!(within(first, third, 9, 0).covers(&Place::at(second.clone())));
    assert!(!within(first, third, 8, 0).covers(&Place::at(second.clone())));
    assert!(!within(first, third, 9, 1).covers(&Place::at(second.clone())), "the row in part");
    assert!(within(first, third, 7, 0).covers(&within(first, second, 6, 3)));
    assert!(!within(first, second, 9, 0).covers(&within(first, third, 6, 0)), "there may be more");
}
