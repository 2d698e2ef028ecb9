//! The shell handler with real programs, in real time: what they print, how they end, and that no
//! process of them is left.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod fifo;
mod kills;
mod runs;
#[path = "../executor/source.rs"]
#[expect(dead_code, reason = "the tests of the executor need more of it")]
mod source;

use duly_worker::handlers::Shell;
use duly_worker::{Context, Handler, HandlerError};
use serde_json::{Value, json};

use crate::source::lease;

/// A handler whose programs inherit the environment of the tests.
fn shell() -> Shell {
    Shell::new(std::env::vars_os())
}

/// A payload for a short script; `$0` is its only argument.
fn script(text: &str, argument: &str) -> Value {
    json!({"argv": ["sh", "-c", text, argument]})
}

fn context(payload: &Value) -> Context {
    Context::new(lease(1, "shell", &payload.to_string()))
}

/// Runs one attempt; returns its result and its log.
async fn run(payload: Value) -> (Result<Value, HandlerError>, String) {
    let context = context(&payload);
    let ran = shell().run(context.clone()).await;
    let result = ran.map(|output| serde_json::from_str(&output.into_text().unwrap()).unwrap());
    (result, context.logged().unwrap_or_default().to_string())
}

fn code(error: &HandlerError) -> (&'static str, &str, &str) {
    match error {
        HandlerError::Retry(failure) => ("retry", &failure.code, &failure.message),
        HandlerError::Fail(failure) => ("fail", &failure.code, &failure.message),
        other @ (HandlerError::RetryAfter(..) | HandlerError::Release) => panic!("{other}"),
    }
}
