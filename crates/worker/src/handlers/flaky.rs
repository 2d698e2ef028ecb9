//! Fails as often as its payload says, then succeeds: for seeing retries at work.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::handler::{Context, Handler, HandlerError, Output};

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
