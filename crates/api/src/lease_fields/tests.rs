use duly_core::lease::Outcome;
use duly_core::limits::RESULT_BYTES;
use duly_core::log::LogChunk;

use super::*;

/// Counts instead of drawing.
struct Counter;

impl Random for Counter {
    fn fill(&self, numbers: &mut [u64]) {
        numbers.fill(7);
    }
}

const ID: &str = "01920000-0000-7000-8000-000000000000";

/// A finish with one outcome, of which these fields are given.
fn finish(more: &str) -> Result<Finish, Vec<String>> {
    let outcome = format!(r#"{{"taskId":"{ID}","epoch":3{more}}}"#);
    let body = format!(r#"{{"sessionId":"{ID}","outcomes":[{outcome}]}}"#);
    match finishes(body.as_bytes(), &TenantName::default_tenant(), &Counter) {
        Ok((_, mut finishes)) => Ok(finishes.pop().unwrap()),
        Err(refused) => Err(pointers(&refused)),
    }
}

fn pointers(refused: &ApiError) -> Vec<String> {
    let of = |error: &duly_core::submit::FieldError| format!("{} {}", error.pointer, error.code);
    refused.errors().iter().map(of).collect()
}

#[test]
fn every_kind_of_outcome_is_read() {
    let result = r#"{"b": 123456789012345678901234567890, "a":1.0e2}"#;
    let read = finish(&format!(r#","outcome":"success","result":{result}"#)).unwrap();
    assert_eq!((read.task.to_string().as_str(), read.epoch), (ID, 3));
    assert_eq!(read.outcome, Outcome::Success { result: Some(result.into()) });
    let error = r#""error":{"code":"X_1","message":"y"}"#;
    let why = duly_core::task::Failure::new("X_1", "y");
    let read = finish(&format!(r#","outcome":"retry",{error},"afterSeconds":1.5"#)).unwrap();
    let after = Some(Duration::from_millis(1500));
    assert_eq!(read.outcome, Outcome::Retry { error: why.clone(), entropy: 7, after });
    let read = finish(&format!(r#","outcome":"fail",{error},"log":"z""#)).unwrap();
    let log = |offset, text: &str| Some(LogChunk { offset, text: text.into() });
    assert_eq!((read.outcome, read.log), (Outcome::Fail { error: why }, log(0, "z")));
    let read = finish(r#","outcome":"success","log":"z","logOffset":7"#).unwrap();
    assert_eq!(read.log, log(7, "z"));
    let read = finish(r#","outcome":"release","result":null,"error":null"#).unwrap();
    assert_eq!(read.outcome, Outcome::Release);
}

#[test]
fn fields_go_only_with_their_outcome() {
    let error = r#""error":{"code":"X","message":"y"}"#;
    let conflict = |name: &str| format!("/outcomes/0/{name} CONFLICTING_FIELDS");
    for (more, wanted) in [
        (format!(r#","outcome":"success",{error}"#), vec![conflict("error")]),
        (r#","outcome":"success","afterSeconds":1"#.to_owned(), vec![conflict("afterSeconds")]),
        (format!(r#","outcome":"retry","result":1,{error}"#), vec![conflict("result")]),
        (format!(r#","outcome":"fail","afterSeconds":1,{error}"#), vec![conflict("afterSeconds")]),
        (
            format!(r#","outcome":"release","result":1,"afterSeconds":1,{error}"#),
            vec![conflict("result"), conflict("error"), conflict("afterSeconds")],
        ),
        (r#","outcome":"retry""#.to_owned(), vec!["/outcomes/0/error REQUIRED".to_owned()]),
        (r#","outcome":"fail""#.to_owned(), vec!["/outcomes/0/error REQUIRED".to_owned()]),
    ] {
        assert_eq!(finish(&more).unwrap_err(), wanted, "{more}");
    }
}

#[test]
fn values_keep_their_rules() {
    let deep = format!("{}{}", "[".repeat(65), "]".repeat(65));
    let large = format!("\"{}\"", "x".repeat(RESULT_BYTES));
    let code = |code: &str| format!(r#""fail","error":{{"code":"{code}","message":"m"}}"#);
    let long = code(&"X".repeat(65));
    for (outcome, wanted) in [
        ("\"done\"", "/outcome UNKNOWN_WORD"),
        ("1", "/outcome WRONG_TYPE"),
        ("null", "/outcome REQUIRED"),
        (&format!(r#""success","result":{deep}"#), "/result TOO_DEEP"),
        (&format!(r#""success","result":{large}"#), "/result RESULT_TOO_LARGE"),
        (r#""success","result":"\u0000""#, "/result NUL_CHARACTER"),
        (r#""success","result":"\ud800""#, "/result INVALID_UNICODE"),
        (r#""success","log":1"#, "/log WRONG_TYPE"),
        (r#""success","logOffset":"1""#, "/logOffset WRONG_TYPE"),
        (r#""success","logOffset":-1"#, "/logOffset OUT_OF_RANGE"),
        (r#""success","logOffset":9007199254740992"#, "/logOffset OUT_OF_RANGE"),
        (r#""fail","error":"x""#, "/error WRONG_TYPE"),
        (r#""fail","error":{"code":"X"}"#, "/error/message REQUIRED"),
        (r#""fail","error":{"message":"X"}"#, "/error/code REQUIRED"),
        (r#""fail","error":{"code":"X","message":"","x":1}"#, "/error/x UNKNOWN_FIELD"),
        (&code("x"), "/error/code INVALID_CODE"),
        (&code(""), "/error/code INVALID_CODE"),
        (&code("1X"), "/error/code INVALID_CODE"),
        (&long, "/error/code INVALID_CODE"),
    ] {
        let refused = finish(&format!(r#","outcome":{outcome}"#)).unwrap_err();
        assert_eq!(refused, [format!("/outcomes/0{wanted}")], "{outcome:.60}");
    }
}

#[test]
fn a_log_loses_what_no_store_takes() {
    let read = finish(r#","outcome":"release","log":"a\u0000b""#).unwrap();
    assert_eq!(read.log.map(|log| log.text).as_deref(), Some("a?b"), "a byte for a byte");
    let item = format!(r#"{{"taskId":"{ID}","epoch":3,"offset":7,"text":"a\u0000b"}}"#);
    let body = format!(r#"{{"sessionId":"{ID}","items":[{item}]}}"#);
    let read = report::logs(body.as_bytes()).unwrap().items.remove(0).log.unwrap();
    assert_eq!((&*read.text, read.end()), ("a?b", 10), "the next piece starts where it ends");
}

#[test]
fn a_claim_says_who_and_how_much() {
    let body = format!(r#"{{"sessionId":"{ID}","seq":9007199254740991,"max":1000}}"#);
    let read = claim(body.as_bytes()).unwrap();
    let ClaimBody { claim, patience, .. } = &read;
    assert_eq!((claim.sequence, claim.max, *patience), (EXACT, 1000, Duration::ZERO));
    assert!(!read.is_narrowed());
}

#[test]
fn all_that_is_wrong_with_a_claim_is_said_at_once() {
    let body = br#"{"seq":0,"max":1001,"waitSeconds":61,"session":1,"queues":[],"types":["!"]}"#;
    let refused = claim(body).unwrap_err();
    assert_eq!(
        pointers(&refused),
        [
            "/session UNKNOWN_FIELD",
            "/sessionId REQUIRED",
            "/seq OUT_OF_RANGE",
            "/max OUT_OF_RANGE",
            "/waitSeconds OUT_OF_RANGE",
            "/queues REQUIRED",
            "/types/0 INVALID_NAME",
        ]
    );
}

#[test]
fn an_extension_is_longer_than_nothing() {
    for (seconds, code) in [
        ("0", "OUT_OF_RANGE"),
        ("86401", "OUT_OF_RANGE"),
        ("null", "REQUIRED"),
        ("\"\"", "WRONG_TYPE"),
    ] {
        let lease = format!(r#"{{"taskId":"{ID}","epoch":1,"seconds":{seconds}}}"#);
        let body = format!(r#"{{"sessionId":"{ID}","leases":[{lease}]}}"#);
        let refused = extensions(body.as_bytes()).unwrap_err();
        assert_eq!(pointers(&refused), [format!("/leases/0/seconds {code}")]);
    }
}
