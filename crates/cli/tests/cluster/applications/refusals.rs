//! Whatever is wrong is refused with the argument's name and a code, and nothing is stored.

use duly_core::limits::{
    BACK_OFF, BACK_OFF_FACTOR, IDEMPOTENCY_KEY_CHARS, JITTER, JSON_DEPTH, LABEL_CHARS, LABELS,
    LANES, NAME_CHARS, PAYLOAD_BYTES, PRIORITY, RETRIES, RUN_AHEAD, TIMEOUT,
};

use super::world::{App, World};

/// Why a call was refused: the code, the argument, the reason's code.
pub(super) async fn refusal(app: &App, arguments: &str) -> (String, String, String) {
    let shown = &arguments[..arguments.floor_char_boundary(200)];
    let refused = app.submit(arguments).await.expect_err(shown);
    let error = refused.as_db_error().unwrap();
    let part = |part: Option<&str>| part.unwrap_or_default().to_owned();
    let column = part(error.column());
    assert!(error.message().starts_with(&column), "{error}");
    (error.code().code().to_owned(), column, part(error.constraint()))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_bad_argument_is_named_and_nothing_is_stored() {
    let Some(world) = World::start(1).await else { return };
    let app = world.connect().await;
    let bad = [
        ("NULL", "type", "REQUIRED"),
        ("''", "type", "INVALID_NAME"),
        ("'-E-Mail'", "type", "INVALID_NAME"),
        ("'Duly.Bulk'", "type", "INVALID_NAME"),
        ("'email', tenant => 'Acme'", "tenant", "INVALID_NAME"),
        ("'duly.bulk'", "type", "INVALID_NAME"),
        ("E'email\\n'", "type", "INVALID_NAME"),
        ("'é'", "type", "INVALID_NAME"),
        ("'email', queue => 'a b'", "queue", "INVALID_NAME"),
        ("'email', tenant => '.a'", "tenant", "INVALID_NAME"),
        ("'email', tenant => 'duly.x'", "tenant", "INVALID_NAME"),
        ("'email', priority => -1", "priority", "OUT_OF_RANGE"),
        ("'email', retries => -1", "retries", "OUT_OF_RANGE"),
        ("'email', delay => '-1 ms'", "delay", "OUT_OF_RANGE"),
        ("'email', delay => '1 s', run_at => now()", "run_at", "CONFLICTING_FIELDS"),
        ("'email', run_at => 'infinity'", "run_at", "INVALID_TIME"),
        ("'email', run_at => '-infinity'", "run_at", "INVALID_TIME"),
        ("'email', run_at => '1969-12-31'", "run_at", "INVALID_TIME"),
        ("'email', run_at => '9999-12-31'", "run_at", "OUT_OF_RANGE"),
        ("'email', timeout => '0'", "timeout", "OUT_OF_RANGE"),
        ("'email', jitter => '-1 s'", "jitter", "OUT_OF_RANGE"),
        ("'email', labels => '[]'", "labels", "WRONG_TYPE"),
        (r#"'email', labels => '{"a":1}'"#, "labels", "WRONG_TYPE"),
        (r#"'email', labels => '{"":"a"}'"#, "labels", "INVALID_LABEL"),
        (r#"'email', labels => '{"a":"\u0085"}'"#, "labels", "INVALID_LABEL"),
        (r#"'email', labels => '{"Duly.slot":"a"}'"#, "labels", "INVALID_LABEL"),
        ("'email', idempotency_key => ''", "idempotency_key", "INVALID_KEY"),
        ("'email', idempotency_key => E'a\\tb'", "idempotency_key", "INVALID_KEY"),
        ("'email', backoff => '1'", "backoff", "WRONG_TYPE"),
        (r#"'email', backoff => '{"base":1}'"#, "backoff", "UNKNOWN_FIELD"),
        (r#"'email', backoff => '{"factor":"2"}'"#, "backoff.factor", "WRONG_TYPE"),
        (r#"'email', backoff => '{"factor":0.9}'"#, "backoff.factor", "OUT_OF_RANGE"),
        (r#"'email', backoff => '{"strategy":"slow"}'"#, "backoff.strategy", "UNKNOWN_WORD"),
        (r#"'email', backoff => '{"jitter":"some"}'"#, "backoff.jitter", "UNKNOWN_WORD"),
        (r#"'email', backoff => '{"baseSeconds":-1}'"#, "backoff.baseSeconds", "OUT_OF_RANGE"),
        (r#"'email', '{"a":"\u0000"}'"#, "payload", "NUL_CHARACTER"),
        (r#"'email', '"\\\u0000"'"#, "payload", "NUL_CHARACTER"),
        (r#"'email', '"\ud800"'"#, "payload", "INVALID_UNICODE"),
        (r#"'email', '"\ude00\ud83d"'"#, "payload", "INVALID_UNICODE"),
    ];
    for (arguments, column, code) in bad {
        let expected = ("22023".to_owned(), column.to_owned(), code.to_owned());
        assert_eq!(refusal(&app, arguments).await, expected, "{arguments}");
    }
    let broken = app.submit("'email', '{'").await.unwrap_err();
    assert_eq!(broken.code().unwrap().code(), "22P02", "that is no JSON");
    let stored = "SELECT (SELECT count(*) FROM duly.task) + (SELECT count(*) FROM duly.due)
        + (SELECT count(*) FROM duly.lane) + (SELECT count(*) FROM duly.idempotency)";
    assert_eq!(app.count(stored).await, 0);
    for good in [r#""\\u0000""#, r#""\\ud800""#, r#""\ud83d\ude00""#, r#""\"[[{""#] {
        app.submit(&format!("'email', '{good}'")).await.unwrap();
    }
}

/// So many labels, with keys and values of so many characters.
fn labels(count: usize, chars: usize) -> String {
    let label = |number| format!(r#""{number:0chars$}":"{}""#, "é".repeat(chars));
    (0..count).map(label).collect::<Vec<_>>().join(",")
}

/// A value that is nested as deep as it may be, or deeper.
fn deep(over: usize) -> String {
    let levels = JSON_DEPTH / 2 + over;
    format!("{}1{}", r#"[{"a[":"#.repeat(levels), "}]".repeat(levels))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bounds_are_those_of_the_interface() {
    let Some(world) = World::start(1).await else { return };
    let app = world.connect().await;
    let name = |over: usize| format!("'{}'", "a".repeat(NAME_CHARS + over));
    let text = |over: usize| "x".repeat(PAYLOAD_BYTES - 2 + over);
    let key = |over: usize| "é".repeat(IDEMPOTENCY_KEY_CHARS + over);
    type Bound<'a> = (&'a str, &'a str, Box<dyn Fn(usize) -> String + 'a>);
    let seconds = |argument: &'static str, bound: std::time::Duration| {
        move |over| format!("'email', {argument} => '{}.{over:03} s'", bound.as_secs())
    };
    let back_off = |field: &'static str, bound: u64| {
        move |over| format!(r#"'email', backoff => '{{"{field}":{bound}.{over:03}}}'"#)
    };
    let bounds: [Bound<'_>; 15] = [
        ("type", "INVALID_NAME", Box::new(name)),
        ("queue", "INVALID_NAME", Box::new(|over| format!("'email', queue => {}", name(over)))),
        ("payload", "PAYLOAD_TOO_LARGE", Box::new(|over| format!("'email', '\"{}\"'", text(over)))),
        ("payload", "TOO_DEEP", Box::new(|over| format!("'email', '{}'", deep(over)))),
        (
            "priority",
            "OUT_OF_RANGE",
            Box::new(|over| format!("'email', priority => {}", usize::from(PRIORITY) + over)),
        ),
        (
            "retries",
            "OUT_OF_RANGE",
            Box::new(|over| format!("'email', retries => {}", RETRIES as usize + over)),
        ),
        ("delay", "OUT_OF_RANGE", Box::new(seconds("delay", RUN_AHEAD))),
        ("timeout", "OUT_OF_RANGE", Box::new(seconds("timeout", TIMEOUT))),
        ("jitter", "OUT_OF_RANGE", Box::new(seconds("jitter", JITTER))),
        (
            "backoff.baseSeconds",
            "OUT_OF_RANGE",
            Box::new(back_off("baseSeconds", BACK_OFF.as_secs())),
        ),
        (
            "backoff.capSeconds",
            "OUT_OF_RANGE",
            Box::new(back_off("capSeconds", BACK_OFF.as_secs())),
        ),
        ("backoff.factor", "OUT_OF_RANGE", Box::new(back_off("factor", BACK_OFF_FACTOR.into()))),
        (
            "labels",
            "TOO_MANY",
            Box::new(|over| format!("'email', labels => '{{{}}}'", labels(LABELS + over, 3))),
        ),
        (
            "labels",
            "INVALID_LABEL",
            Box::new(|over| format!("'email', labels => '{{{}}}'", labels(1, LABEL_CHARS + over))),
        ),
        (
            "idempotency_key",
            "INVALID_KEY",
            Box::new(|over| format!("'email', idempotency_key => '{}'", key(over))),
        ),
    ];
    for (column, code, arguments) in bounds {
        app.submit(&arguments(0)).await.unwrap_or_else(|error| panic!("{column} {code}: {error}"));
        let expected = ("22023".to_owned(), column.to_owned(), code.to_owned());
        assert_eq!(refusal(&app, &arguments(1)).await, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn there_are_so_many_lanes_and_no_more() {
    let Some(world) = World::start(1).await else { return };
    let app = world.connect().await;
    let fill = format!(
        "INSERT INTO duly.lane (tenant, queue, type)
        SELECT 'default', 'default', 'type-' || n FROM generate_series(2, {LANES}) n"
    );
    app.batch_execute(&fill).await.unwrap();
    app.submit("'email'").await.unwrap();
    let expected = ("54000".to_owned(), String::new(), "LANE_LIMIT".to_owned());
    assert_eq!(refusal(&app, "'sms'").await, expected);
    app.submit("'email'").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn names_tell_upper_from_lower_case() {
    let Some(world) = World::start(1).await else { return };
    let app = world.connect().await;
    let lanes = "SELECT count(*) FROM duly.lane WHERE lower(queue) = 'mail'";
    for (arguments, found) in [("'E-Mail', queue => 'Mail'", 1), ("'e-mail', queue => 'mail'", 2)] {
        app.submit(arguments).await.unwrap();
        assert_eq!(app.count(lanes).await, found);
    }
}
