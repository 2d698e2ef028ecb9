//! Waits as long as its payload says: a stand-in for work that takes time.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::handler::{Context, Handler, HandlerError, Output};

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
