//! Checks the server that the other commands call.

use duly_client::{Client, Error};

use super::{Finding, State};
use crate::args::DoctorArgs;

const SERVER: &str = "server";
const DEFAULT: &str = "http://127.0.0.1:8080";

/// Which server to expect, from the store.
pub(super) enum Expected {
    /// A server has the store open.
    Running { why: String, remedy: String },
    /// A server has used the store, but none has it open now.
    Stopped { why: String, remedy: String },
    /// No server has ever used the store.
    Never { remedy: String },
    /// The store could not be read.
    Unknown,
}

pub(super) async fn check(args: &DoctorArgs, expected: Expected) -> anyhow::Result<Vec<Finding>> {
    let url = args.server.as_deref().unwrap_or(DEFAULT);
    let client = args.caller.connect(url)?;
    Ok(match client.version().await {
        Ok(version) => {
            let found = format!("{} {}", client.base_url(), version.version);
            vec![Finding::ok(SERVER, found), readiness(&client).await]
        }
        Err(Error::Unreachable { .. }) => vec![unreachable(url, args.server.is_some(), expected)],
        Err(error) => {
            let remedy = "pass its address with --server";
            vec![Finding::bad(SERVER, State::Fail, error.to_string(), remedy)]
        }
    })
}

/// Judges a server that does not answer. Before the first start this is not a failure.
fn unreachable(url: &str, is_given: bool, expected: Expected) -> Finding {
    let silent = format!("nothing answers at {url}");
    let other = "start a server there, or pass the address of a running one with --server";
    match expected {
        Expected::Running { why, remedy } => {
            Finding::bad(SERVER, State::Fail, format!("{silent}, but {why}"), remedy)
        }
        Expected::Stopped { why, remedy } => {
            Finding::bad(SERVER, State::Fail, format!("{silent}, and {why}"), remedy)
        }
        Expected::Never { remedy } if !is_given => {
            Finding::bad(SERVER, State::Absent, silent, remedy)
        }
        Expected::Never { .. } | Expected::Unknown => {
            Finding::bad(SERVER, State::Fail, silent, other)
        }
    }
}

async fn readiness(client: &Client) -> Finding {
    const READY: &str = "readiness";
    match client.ready().await {
        Ok(ready) if ready.is_ready() => Finding::ok(READY, "ready"),
        Ok(ready) => {
            let remedy = "fix the cause; the server then recovers by itself";
            Finding::bad(READY, State::Fail, ready.reasons.join("; "), remedy)
        }
        Err(error) => Finding::bad(READY, State::Fail, error.to_string(), "see the server's log"),
    }
}
