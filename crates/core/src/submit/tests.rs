use proptest::proptest;

use super::*;

fn echo() -> Draft {
    Draft { task_type: Some("echo".to_owned()), ..Draft::default() }
}

fn codes(draft: Draft) -> Vec<(String, &'static str)> {
    let errors = draft.check().expect_err("a bad draft");
    errors.into_iter().map(|error| (error.pointer, error.code)).collect()
}

#[test]
fn what_is_not_said_has_a_default() {
    let spec = echo().check().unwrap();
    assert_eq!(spec.queue, QueueName::default_queue());
    assert_eq!(spec.priority.level(), 5);
    assert_eq!((spec.retries, spec.back_off), (None, Asked::default()));
    assert_eq!(spec.start, Start::After(Duration::ZERO));
    assert_eq!(&*spec.payload, "null");
}

#[test]
fn all_that_is_wrong_is_said_at_once() {
    let draft = Draft {
        task_type: None,
        queue: Some("No Such".to_owned()),
        priority: Some(10.0),
        retries: Some(1.5),
        delay_seconds: Some(-1.0),
        run_at: Some("soon".to_owned()),
        timeout_seconds: Some(0.0),
        idempotency_key: Some(String::new()),
        ..Draft::default()
    };
    let expected = [
        ("/type", "REQUIRED"),
        ("/queue", "INVALID_NAME"),
        ("/priority", "OUT_OF_RANGE"),
        ("/retries", "OUT_OF_RANGE"),
        ("/delaySeconds", "OUT_OF_RANGE"),
        ("/runAt", "CONFLICTING_FIELDS"),
        ("/runAt", "INVALID_TIME"),
        ("/timeoutSeconds", "OUT_OF_RANGE"),
        ("/idempotencyKey", "INVALID_KEY"),
    ];
    assert_eq!(codes(draft), expected.map(|(pointer, code)| (pointer.to_owned(), code)));
}

#[test]
fn payloads_that_could_not_be_read_back_are_refused() {
    let with = |payload: String| Draft { payload: Some(payload), ..echo() };
    let pointer = || "/payload".to_owned();
    assert_eq!(codes(with("[".repeat(65) + &"]".repeat(65))), [(pointer(), "TOO_DEEP")]);
    assert_eq!(codes(with(r#""\u0000""#.to_owned())), [(pointer(), "NUL_CHARACTER")]);
    let large = format!("\"{}\"", "x".repeat(PAYLOAD_BYTES));
    assert_eq!(codes(with(large)), [(pointer(), PAYLOAD_TOO_LARGE)]);
}

#[test]
fn labels_are_bounded() {
    let many = (0..=LABELS).map(|n| (n.to_string(), String::new())).collect();
    assert_eq!(codes(Draft { labels: many, ..echo() })[0].1, "TOO_MANY");
    for (key, value) in
        [("", "x"), ("Duly.slot", "x"), ("a\n", "x"), ("a", "\u{7}"), ("a", &"x".repeat(201))]
    {
        let labels = [(key.to_owned(), value.to_owned())].into();
        assert_eq!(codes(Draft { labels, ..echo() })[0].1, "INVALID_LABEL", "{key:?}={value:?}");
    }
}

#[test]
fn a_back_off_is_checked_field_by_field() {
    let back_off = BackOffDraft {
        strategy: Some("quadratic".to_owned()),
        base_seconds: Some(-1.0),
        factor: Some(0.5),
        cap_seconds: Some(f64::MAX),
        jitter: Some("some".to_owned()),
    };
    let found: Vec<_> = codes(Draft { back_off: Some(back_off), ..echo() });
    let expected = [
        ("/backoff/baseSeconds", "OUT_OF_RANGE"),
        ("/backoff/capSeconds", "OUT_OF_RANGE"),
        ("/backoff/factor", "OUT_OF_RANGE"),
        ("/backoff/strategy", "UNKNOWN_WORD"),
        ("/backoff/jitter", "UNKNOWN_WORD"),
    ];
    assert_eq!(found, expected.map(|(pointer, code)| (pointer.to_owned(), code)));
    let linear = BackOffDraft { strategy: Some("linear".to_owned()), ..<_>::default() };
    let spec = Draft { back_off: Some(linear), ..echo() }.check().unwrap();
    assert_eq!(spec.back_off, Asked { strategy: Some(Strategy::Linear), ..Asked::default() });
}

#[test]
fn jitter_spreads_the_start_and_never_makes_it_earlier() {
    let spec = Draft { jitter_seconds: Some(10.0), delay_seconds: Some(5.0), ..echo() };
    let spec = spec.check().unwrap();
    let now = Timestamp::from_millis(1_000_000);
    assert_eq!(spec.run_at(now, 0), now.plus(Duration::from_secs(5)));
    assert_eq!(spec.run_at(now, u64::MAX), now.plus(Duration::from_secs(15)));
}

#[test]
fn a_delay_is_rounded_up_to_the_millisecond_and_not_beyond() {
    for (given, millis) in [(0.001, 1), (0.0011, 2), (0.1, 100), (1.005, 1005), (60.0, 60_000)] {
        let spec = Draft { delay_seconds: Some(given), ..echo() }.check().unwrap();
        assert_eq!(spec.start, Start::After(Duration::from_millis(millis)), "{given}");
    }
}

#[test]
fn the_body_hash_tells_every_field_apart() {
    let mut seen = std::collections::HashSet::new();
    let text = |text: &str| Some(text.to_owned());
    let drafts = [
        echo(),
        Draft { task_type: text("other"), ..echo() },
        Draft { queue: text("other"), ..echo() },
        Draft { priority: Some(6.0), ..echo() },
        Draft { delay_seconds: Some(1.0), ..echo() },
        Draft { run_at: text("2030-01-01T00:00:00Z"), ..echo() },
        Draft { retries: Some(4.0), ..echo() },
        Draft { timeout_seconds: Some(1.0), ..echo() },
        Draft { jitter_seconds: Some(1.0), ..echo() },
        Draft { back_off: Some(BackOffDraft { factor: Some(3.0), ..<_>::default() }), ..echo() },
        Draft { payload: text("1"), ..echo() },
        Draft { labels: [("a".to_owned(), "b".to_owned())].into(), ..echo() },
    ];
    for draft in drafts {
        assert!(seen.insert(draft.clone().check().unwrap().body_hash()), "{draft:?}");
    }
}

proptest! {
    #[test]
    fn no_number_makes_the_check_panic(
        priority: f64, delay: f64, retries: f64, timeout: f64, text in ".*"
    ) {
        let draft = Draft {
            task_type: Some(text.clone()),
            priority: Some(priority),
            delay_seconds: Some(delay),
            retries: Some(retries),
            timeout_seconds: Some(timeout),
            run_at: Some(text),
            ..Draft::default()
        };
        drop(draft.check());
    }
}
