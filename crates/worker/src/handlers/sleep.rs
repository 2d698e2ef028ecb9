//! Waits for the time in its payload: a stand-in for work that takes time.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::reference::{Example, Outcome, PayloadField, Reference, ResultField};
use crate::handler::{Context, Handler, HandlerError, Output};

pub(super) const REFERENCE: Reference = Reference {
    r#type: "sleep",
    summary: "Waits for a time, then succeeds.",
    flag: None,
    notes: &["A stand-in for work that takes time. The task's `timeoutSeconds` (default: 30 min) \
              ends it earlier."],
    payload: &[PayloadField {
        name: "seconds",
        r#type: "number, 0 to 86,400",
        default: None,
        meaning: "How long to wait; fractions are allowed.",
    }],
    result: &[ResultField {
        name: "sleptSeconds",
        r#type: "number",
        meaning: "The seconds of the payload.",
    }],
    errors: &[],
    examples: &[
        Example {
            title: "Half a second",
            payload: r#"{"seconds": 0.5}"#,
            outcome: Outcome::Result(r#"{"sleptSeconds": 0.5}"#),
        },
        Example {
            title: "Time does not run backwards",
            payload: r#"{"seconds": -1}"#,
            outcome: Outcome::Error("INVALID_PAYLOAD"),
        },
    ],
};

/// The type `sleep`; its payload is `{"seconds": 1.5}`, at most a day.
#[derive(Clone, Copy, Debug)]
pub struct Sleep;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Payload {
    seconds: f64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Slept {
    slept_seconds: f64,
}

const LONGEST_SECONDS: f64 = 86_400.0;

#[async_trait]
impl Handler for Sleep {
    async fn run(&self, context: Context) -> Result<Output, HandlerError> {
        let Payload { seconds } = context.payload()?;
        if !(0.0..=LONGEST_SECONDS).contains(&seconds) {
            let rule = format!("seconds must lie between 0 and {LONGEST_SECONDS}");
            return Err(HandlerError::invalid_payload(rule));
        }
        tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
        Output::json(&Slept { slept_seconds: seconds })
    }
}
