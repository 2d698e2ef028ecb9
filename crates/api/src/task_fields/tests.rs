use std::time::Duration;

use duly_core::back_off::{BackOff, Jitter, Strategy};
use duly_core::limits::{BODY_BYTES, PAYLOAD_BYTES};
use duly_core::submit::Start;

use super::*;
use crate::fields::ERRORS;

fn errors(body: &str) -> Vec<(String, &'static str)> {
    let error = read(body.as_bytes(), None).expect_err(body);
    error.errors().iter().map(|error| (error.pointer.clone(), error.code)).collect()
}

fn refusal(body: &str) -> (Code, Vec<(String, &'static str)>) {
    (read(body.as_bytes(), None).expect_err(body).code(), errors(body))
}

fn one(pointer: &str, code: &'static str) -> Vec<(String, &'static str)> {
    vec![(pointer.to_owned(), code)]
}

#[test]
fn the_documented_body_is_read() {
    let body = r#"{"type":"email","payload":{},"delaySeconds":60,"retries":3,"dependencies":[]}"#;
    let spec = read(body.as_bytes(), None).unwrap();
    assert_eq!(spec.task_type.as_str(), "email");
    assert_eq!(&*spec.payload, "{}");
    assert_eq!(spec.start, Start::After(std::time::Duration::from_secs(60)));
    assert_eq!(spec.retries, Some(3));
}

#[test]
fn every_optional_field_may_be_null() {
    let body = r#"{"type":"a","payload":null,"queue":null,"priority":null,"delaySeconds":null,
        "runAt":null,"retries":null,"backoff":null,"timeoutSeconds":null,"jitterSeconds":null,
        "dependencies":null,"notify":null,"labels":null,"idempotencyKey":null}"#;
    assert_eq!(&*read(body.as_bytes(), None).unwrap().payload, "null");
    assert_eq!(errors(r#"{"type":null}"#), one("/type", "REQUIRED"));
}

#[test]
fn payloads_are_kept_byte_for_byte() {
    let payload = r#"{"big": 123456789012345678901234567890,"f":1e400, "s":"\u00e9\ud83d\ude00"}"#;
    let body = format!(r#" {{ "payload" : {payload} , "type" : "a" }} "#);
    assert_eq!(&*read(body.as_bytes(), None).unwrap().payload, payload);
}

#[test]
fn what_is_no_json_is_malformed() {
    let bad: [&[u8]; 11] = [
        b"",
        b" ",
        b"{",
        b"{\"type\":\"a\"",
        b"{\"type\":\"a\"}x",
        b"{\"type\":\"a\"}{}",
        b"{\"type\":'a'}",
        b"{\"type\":\"a\",}",
        b"{\"type\":\"\xff\"}",
        b"\xef\xbb\xbf{}",
        b"{\"\\ud800\":1}",
    ];
    for body in bad {
        let error = read(body, None).expect_err("malformed");
        assert_eq!(error.code(), Code::MalformedJson, "{}", String::from_utf8_lossy(body));
        let detail = error.problem(None).detail;
        assert!(detail.contains(" line ") && detail.contains(" column "), "{detail}");
    }
}

#[test]
fn only_an_object_is_a_task() {
    for body in ["[]", "1", "\"x\"", "null", "true", "[{\"type\":\"a\"}]"] {
        assert_eq!(refusal(body), (Code::InvalidFields, one("", "WRONG_TYPE")), "{body}");
    }
}

#[test]
fn each_field_has_its_json_type() {
    let strings = ["type", "queue", "runAt", "idempotencyKey"];
    let numbers = ["priority", "delaySeconds", "retries", "timeoutSeconds"];
    let deep = "[".repeat(10_000) + &"]".repeat(10_000);
    let body = |name: &str, value: &str| match name {
        "type" => format!(r#"{{"type":{value}}}"#),
        _ => format!(r#"{{"type":"a","{name}":{value}}}"#),
    };
    for (names, values) in [
        (&strings, ["1", "true", "{}", "[]", &deep]),
        (&numbers, ["\"1\"", "true", "{}", "[]", &deep]),
        (&["labels"; 4], ["1", "true", "\"x\"", "[]", &deep]),
        (&["dependencies"; 4], ["1", "true", "\"x\"", "{}", "1.5"]),
    ] {
        for name in names {
            for value in values {
                let found = refusal(&body(name, value));
                let expected = (Code::InvalidFields, one(&format!("/{name}"), "WRONG_TYPE"));
                assert_eq!(found, expected, "{name}");
            }
        }
    }
}

#[test]
fn numbers_beyond_any_range_are_refused() {
    for name in ["priority", "delaySeconds", "retries", "timeoutSeconds"] {
        for value in ["1e400", "-1e400", "-1", &"9".repeat(5000)] {
            let found = errors(&format!(r#"{{"type":"a","{name}":{value}}}"#));
            assert_eq!(found, one(&format!("/{name}"), "OUT_OF_RANGE"), "{name}");
        }
    }
}

#[test]
fn fields_that_callers_may_not_set_are_unknown() {
    for name in ["tenantId", "status", "attempt", "epoch", "taskId", "Type", "a~/b"] {
        let found = refusal(&format!(r#"{{"type":"a","{name}":1}}"#));
        let pointer = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
        assert_eq!(found, (Code::InvalidFields, one(&pointer, "UNKNOWN_FIELD")));
    }
}

#[test]
fn a_field_given_twice_is_refused() {
    let found = errors(r#"{"type":"a","type":"b"}"#);
    assert_eq!(found, one("/type", "DUPLICATE_FIELD"));
    let found = errors(r#"{"type":"a","labels":{"x":"1","\u0078":"2"}}"#);
    assert_eq!(found, one("/labels/x", "DUPLICATE_FIELD"));
}

#[test]
fn fields_to_come_are_refused_and_not_ignored() {
    for field in [r#""notify":[]"#, r#""dependencies":["01920000-0000-7000-8000-000000000000"]"#] {
        let (code, errors) = refusal(&format!(r#"{{"type":"a",{field}}}"#));
        assert_eq!(code, Code::UnsupportedField, "{field}");
        assert_eq!(errors[0].1, "UNSUPPORTED_FIELD");
    }
    let (code, errors) = refusal(r#"{"type":"!","notify":1}"#);
    assert_eq!((code, errors.len()), (Code::InvalidFields, 2));
    assert!(read(br#"{"type":"a","dependencies":[ ]}"#, None).is_ok());
}

#[test]
fn a_back_off_is_read_field_by_field() {
    let body = r#"{"type":"a","jitterSeconds":5,"backoff":{"strategy":"linear","baseSeconds":2.5,
        "factor":null,"capSeconds":60,"jitter":"none"}}"#;
    let spec = read(body.as_bytes(), None).unwrap();
    let (base, cap) = (Duration::from_millis(2500), Duration::from_secs(60));
    let (strategy, jitter) = (Strategy::Linear, Jitter::None);
    let policy = BackOff { factor: 9.0, ..BackOff::default() };
    assert_eq!(spec.back_off.or(policy), BackOff { strategy, base, cap, jitter, ..policy });
    assert_eq!(spec.jitter, Duration::from_secs(5));
    for (back_off, pointer, code) in [
        ("[]", "/backoff", "WRONG_TYPE"),
        (r#"{"base":1}"#, "/backoff/base", "UNKNOWN_FIELD"),
        (r#"{"factor":"2"}"#, "/backoff/factor", "WRONG_TYPE"),
        (r#"{"factor":2,"factor":3}"#, "/backoff/factor", "DUPLICATE_FIELD"),
        (r#"{"factor":1e400}"#, "/backoff/factor", "OUT_OF_RANGE"),
        (r#"{"strategy":"wild"}"#, "/backoff/strategy", "UNKNOWN_WORD"),
    ] {
        let found = errors(&format!(r#"{{"type":"a","backoff":{back_off}}}"#));
        assert_eq!(found, one(pointer, code), "{back_off}");
    }
}

#[test]
fn objects_with_very_many_names_are_refused_quickly() {
    let names = |value: &str| {
        let pairs: Vec<_> = (0..60_000).map(|n| format!("\"{n}\":{value}")).collect();
        pairs.join(",")
    };
    for (field, value) in [("backoff", "null"), ("backoff", "1"), ("labels", "\"x\"")] {
        let found = errors(&format!(r#"{{"type":"a","{field}":{{{}}}}}"#, names(value)));
        assert!((1..=ERRORS).contains(&found.len()), "{field} {value}: {found:?}");
    }
}

#[test]
fn all_that_is_wrong_is_said_at_once() {
    let body = r#"{"type":7,"priority":10,"nope":1,"retries":"x","labels":{"a":1},"runAt":"soon"}"#;
    let expected = [
        ("/nope", "UNKNOWN_FIELD"),
        ("/type", "WRONG_TYPE"),
        ("/retries", "WRONG_TYPE"),
        ("/labels/a", "WRONG_TYPE"),
        ("/priority", "OUT_OF_RANGE"),
        ("/runAt", "INVALID_TIME"),
    ];
    assert_eq!(errors(body), expected.map(|(pointer, code)| (pointer.to_owned(), code)));
}

#[test]
fn errors_are_listed_up_to_a_limit() {
    let names: Vec<_> = (0..50_000).map(|n| format!("\"k{n}\":1")).collect();
    let body = format!(r#"{{"type":"a",{}}}"#, names.join(","));
    let error = read(body.as_bytes(), None).unwrap_err();
    assert_eq!(error.errors().len(), ERRORS);
    assert!(error.problem(None).detail.ends_with("(and 49999 more)"));
    let long = format!(r#"{{"type":"a","{}":1}}"#, "x".repeat(BODY_BYTES - 100));
    assert!(errors(&long)[0].0.len() < 100);
}

#[test]
fn strings_with_half_a_character_are_refused() {
    for (body, pointer) in [
        (r#"{"type":"\ud800"}"#, "/type"),
        (r#"{"type":"a","payload":{"x":"\ud800"}}"#, "/payload"),
        (r#"{"type":"a","payload":{"\udc00":1}}"#, "/payload"),
        (r#"{"type":"a","labels":{"\ud800":"x"}}"#, "/labels"),
        (r#"{"type":"a","labels":{"x":"\ud800"}}"#, "/labels/x"),
    ] {
        assert_eq!(errors(body), one(pointer, "INVALID_UNICODE"), "{body}");
    }
}

#[test]
fn payloads_that_no_worker_could_take_are_refused() {
    let with = |payload: String| format!(r#"{{"type":"a","payload":{payload}}}"#);
    let deep = with("[".repeat(10_000) + &"]".repeat(10_000));
    assert_eq!(errors(&deep), one("/payload", "TOO_DEEP"));
    assert_eq!(errors(&with(r#""\u0000""#.to_owned())), one("/payload", "NUL_CHARACTER"));
    let large = with(format!("\"{}\"", "x".repeat(PAYLOAD_BYTES)));
    assert_eq!(refusal(&large), (Code::PayloadTooLarge, one("/payload", "PAYLOAD_TOO_LARGE")));
}

#[test]
fn the_header_and_the_field_must_agree_on_the_key() {
    let key = |text: &str| Some(text.to_owned());
    let body = br#"{"type":"a","idempotencyKey":"k"}"#;
    assert_eq!(read(body, key("k")).unwrap().idempotency_key, key("k"));
    assert_eq!(read(br#"{"type":"a"}"#, key("h")).unwrap().idempotency_key, key("h"));
    let error = read(body, key("other")).unwrap_err();
    assert_eq!(error.code(), Code::ConflictingFields);
    assert_eq!(error.errors()[0].pointer, "/idempotencyKey");
    assert_eq!(read(br#"{"type":"a"}"#, key("")).unwrap_err().errors()[0].code, "INVALID_KEY");
}
