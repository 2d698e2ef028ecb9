//! What the attempts of a task log.

use duly_core::ports::store::LogPart;
use duly_core::time::Timestamp;
use serde::{Deserialize, Serialize};

/// A piece of an attempt's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(title = "LogPart", as = LogPart))]
pub struct LogPartView {
    /// Which run of the task.
    pub run: u32,
    /// Which attempt of the run.
    pub attempt: u32,
    /// Under which grant: tells attempts apart for ever.
    pub epoch: u32,
    /// How many bytes of the attempt's log come before it. A piece that starts later than the last
    /// one ended follows on something that was not kept.
    pub offset: u64,
    /// When the last of it was stored.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: Timestamp,
    /// The text: some lines, perhaps not whole ones.
    pub text: String,
}

/// A part of a task's logs, oldest attempt first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(title = "LogPage", as = LogPage, example = logs_example))]
pub struct LogPageView {
    /// The pieces.
    pub items: Vec<LogPartView>,
    /// Give it as `after` to go on from here.
    pub next: String,
    /// Whether more may be logged. When it says no, go on until a page is empty: that was all.
    pub live: bool,
}

impl From<LogPart> for LogPartView {
    fn from(part: LogPart) -> Self {
        let LogPart { run, attempt, epoch, offset, at, text } = part;
        Self { run, attempt, epoch, offset, at, text: text.to_string() }
    }
}

#[cfg(feature = "openapi")]
fn logs_example() -> serde_json::Value {
    serde_json::json!({"items": [{
        "run": 1, "attempt": 1, "epoch": 1, "offset": 0, "at": "2030-01-31T08:01:01.000Z",
        "text": "step 1 of 4: read the orders\n"
    }], "next": "AQ…", "live": true})
}
