//! Succeeds with its own payload: the smallest handler, for trials and measurements.

use async_trait::async_trait;

use super::reference::{Example, Outcome, Reference};
use crate::handler::{Context, Handler, HandlerError, Output};

pub(super) const REFERENCE: Reference = Reference {
    r#type: "echo",
    summary: "Succeeds with its payload as the result.",
    flag: None,
    notes: &["The smallest type: for trying things out and for measuring."],
    payload: &[],
    result: &[],
    errors: &[],
    examples: &[Example {
        title: "A payload comes back",
        payload: r#"{"hi": 1}"#,
        outcome: Outcome::Result(r#"{"hi": 1}"#),
    }],
};

/// The type `echo`.
#[derive(Clone, Copy, Debug)]
pub struct Echo;

#[async_trait]
impl Handler for Echo {
    async fn run(&self, context: Context) -> Result<Output, HandlerError> {
        Ok(Output::payload_of(&context))
    }
}
