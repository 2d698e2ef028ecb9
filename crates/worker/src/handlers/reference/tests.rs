use std::collections::BTreeSet;

use super::*;
use crate::handlers::{Email, Shell, Sql, builtin, with_samples};
use crate::mail::{Mailer, Outbox, Templates};
use crate::outbound::Guard;
use crate::sql::Sources;

#[test]
fn every_built_in_type_is_described_once() {
    let outbox = Outbox::new("outbox".into());
    let mailer = Mailer::outbox("a@b".parse().unwrap(), Templates::built_in(), outbox);
    let registry = with_samples(builtin(Guard::new(Vec::new())))
        .with("shell", Shell::new([]))
        .with("email", Email::new(mailer))
        .with("sql", Sql::new(Sources::default()));
    let served: BTreeSet<String> = registry.types().iter().map(ToString::to_string).collect();
    let described: BTreeSet<String> = REFERENCES.iter().map(|it| it.r#type.to_owned()).collect();
    assert_eq!(described, served);
    assert_eq!(REFERENCES.len(), served.len());
}

#[test]
fn types_without_a_flag_are_those_that_every_worker_runs() {
    let registry = builtin(Guard::new(Vec::new()));
    let served: BTreeSet<String> = registry.types().iter().map(ToString::to_string).collect();
    let free = REFERENCES.iter().filter(|it| it.flag.is_none());
    assert_eq!(free.map(|it| it.r#type.to_owned()).collect::<BTreeSet<_>>(), served);
}

#[test]
fn examples_end_in_documented_results_and_errors() {
    for reference in REFERENCES {
        let codes: BTreeSet<&str> =
            reference.errors.iter().chain(COMMON_ERRORS).map(|error| error.code).collect();
        let fields: BTreeSet<&str> = reference.result.iter().map(|field| field.name).collect();
        assert!(!reference.examples.is_empty(), "{}", reference.r#type);
        for example in reference.examples {
            match example.outcome {
                Outcome::Error(code) => assert!(codes.contains(code), "{code}"),
                Outcome::Result(text) if !fields.is_empty() => {
                    let result: serde_json::Map<String, serde_json::Value> =
                        serde_json::from_str(text).unwrap();
                    let names: BTreeSet<&str> = result.keys().map(String::as_str).collect();
                    assert_eq!(names, fields, "{}: {text}", reference.r#type);
                }
                Outcome::Result(_) => {}
            }
        }
    }
}

#[test]
fn json_holds_payloads_as_values() {
    let json = serde_json::to_value(REFERENCES).unwrap();
    assert_eq!(json[0]["type"], "echo");
    assert_eq!(json[0]["examples"][0]["payload"]["hi"], 1);
    assert_eq!(json[0]["examples"][0]["outcome"]["result"]["hi"], 1);
}
