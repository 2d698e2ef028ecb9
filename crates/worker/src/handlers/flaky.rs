//! Fails as often as its payload says, then succeeds: shows how retries work.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::reference::{
    ErrorCode, Example, Outcome, PayloadField, Reference, ResultField, Retried,
};
use crate::handler::{Context, Handler, HandlerError, Output};

pub(super) const REFERENCE: Reference = Reference {
    r#type: "flaky",
    summary: "Fails as many attempts as its payload says, then succeeds.",
    flag: None,
    notes: &["For seeing retries and back-off at work."],
    payload: &[PayloadField {
        name: "failTimes",
        r#type: "whole number",
        default: None,
        meaning: "How many attempts of this run fail before one succeeds.",
    }],
    result: &[ResultField {
        name: "attempts",
        r#type: "whole number",
        meaning: "How many attempts it took, with the one that succeeded.",
    }],
    errors: &[ErrorCode {
        code: "FLAKY",
        retried: Retried::Yes,
        meaning: "The attempt failed as the payload asked.",
    }],
    examples: &[
        Example {
            title: "Two attempts fail, the third succeeds about 2 s later",
            payload: r#"{"failTimes": 2}"#,
            outcome: Outcome::Result(r#"{"attempts": 3}"#),
        },
        Example {
            title: "More failures than retries",
            payload: r#"{"failTimes": 9}"#,
            outcome: Outcome::Error("FLAKY"),
        },
    ],
};

/// The type `flaky`; its payload is `{"failTimes": 2}`.
#[derive(Clone, Copy, Debug)]
pub struct Flaky;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Payload {
    fail_times: u32,
}

#[derive(Serialize)]
struct Survived {
    attempts: u32,
}

#[async_trait]
impl Handler for Flaky {
    async fn run(&self, context: Context) -> Result<Output, HandlerError> {
        let Payload { fail_times } = context.payload()?;
        let attempt = context.attempt();
        context.log(format_args!("attempt {attempt}; the first {fail_times} fail"));
        if attempt <= fail_times {
            let message = format!("attempt {attempt} fails, as {fail_times} were asked to");
            return Err(HandlerError::retry("FLAKY", message));
        }
        Output::json(&Survived { attempts: attempt })
    }
}
