//! The server that the other commands would talk to.

use duly_client::{Client, Error};

use super::{Finding, State};
use crate::args::DoctorArgs;

const SERVER: &str = "server";
const DEFAULT: &str = "http://127.0.0.1:8080";

/// What the store says of servers.
pub(super) enum Expected {
    /// One has it open.
    Running { why: String, remedy: String },
    /// One has used it, but none does now.
    Stopped { why: String, remedy: String },
    /// None ever has.
    Never { remedy: String },
    /// The store could not be asked.
    Unknown,
}

pub(super) async fn check(args: &DoctorArgs, expected: Expected) -> anyhow::Result<Vec<Finding>> {
    let url = args.server.as_deref().unwrap_or(DEFAULT);
    let client = Client::new(url, args.token.as_deref())?;
    Ok(match client.version().await {
        Ok(version) => {
            let found = format!("{} {}", client.base_url(), version.version);
            vec![Finding::ok(SERVER, found), readiness(&client).await]
        }
        Err(Error::Unreachable { .. }) => vec![silent(url, args.server.is_some(), expected)],
        Err(error) => {
            let remedy = "pass its address with --server";
            vec![Finding::bad(SERVER, State::Fail, error.to_string(), remedy)]
        }
    })
}

/// What it means that nothing answers. Before the first start nothing runs, which is no fault.
fn silent(url: &str, is_given: bool, expected: Expected) -> Finding {
    let silent = format!("nothing answers at {url}");
    let elsewhere = "start one there, or pass the address of one that runs with --server";
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
            Finding::bad(SERVER, State::Fail, silent, elsewhere)
        }
    }
}

async fn readiness(client: &Client) -> Finding {
    const READY: &str = "readiness";
    match client.ready().await {
        Ok(ready) if ready.is_ready() => Finding::ok(READY, "ready"),
        Ok(ready) => {
            let remedy = "mend the cause; the server heals by itself";
            Finding::bad(READY, State::Fail, ready.reasons.join("; "), remedy)
        }
        Err(error) => Finding::bad(READY, State::Fail, error.to_string(), "see the server's log"),
    }
}
