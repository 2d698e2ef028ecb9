//! The server that the other commands would talk to.

use anyhow::Context as _;
use duly_client::Client;

use super::{Finding, State};
use crate::args::ClientArgs;

pub(super) fn check(args: &ClientArgs) -> anyhow::Result<Vec<Finding>> {
    let client = Client::new(&args.server, args.token.as_deref())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    Ok(runtime.context("cannot start the runtime")?.block_on(ask(&client)))
}

async fn ask(client: &Client) -> Vec<Finding> {
    const SERVER: &str = "server";
    const READY: &str = "readiness";
    let version = match client.version().await {
        Ok(version) => version,
        // Before the first start nothing runs, which is no fault.
        Err(error @ duly_client::Error::Unreachable { .. }) => {
            return vec![Finding::bad(
                SERVER,
                State::Warn,
                error.to_string(),
                "start one: duly dev",
            )];
        }
        Err(error) => {
            let remedy = "pass its address with --server";
            return vec![Finding::bad(SERVER, State::Fail, error.to_string(), remedy)];
        }
    };
    let mut findings =
        vec![Finding::ok(SERVER, format!("{} {}", client.base_url(), version.version))];
    findings.push(match client.ready().await {
        Ok(ready) if ready.is_ready() => Finding::ok(READY, "ready"),
        Ok(ready) => Finding::bad(
            READY,
            State::Fail,
            ready.reasons.join("; "),
            "mend the cause; the server heals by itself",
        ),
        Err(error) => Finding::bad(READY, State::Fail, error.to_string(), "see the server's log"),
    });
    findings
}
