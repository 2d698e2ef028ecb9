//! `duly task run`.

use std::io::Read as _;

use anyhow::Context as _;
use duly_client::wire::SubmitRequest;
use serde_json::value::RawValue;

use super::{connect, print, print_ended, report_timeout, wait};
use crate::args::RunArgs;
use crate::exit::{Ending, Usage};
use crate::output;

pub(super) async fn run(args: RunArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    let (format, patience) = (args.client.output, args.wait);
    let task = client.submit(&request(args)?).await?;
    for warning in &task.warnings {
        output::say(&format!("warning: {}", warning.detail));
    }
    let Some(patience) = patience else {
        print(&task, format)?;
        output::say(&format!("next: duly task get {} --wait", task.task_id));
        return Ok(Ending::Ok);
    };
    let task = wait(&client, task.task_id, patience).await?;
    if task.status.is_terminal() {
        print_ended(&task, Some(format))
    } else {
        Ok(report_timeout(task.task_id, patience))
    }
}

fn request(args: RunArgs) -> anyhow::Result<SubmitRequest> {
    let payload = args.data.as_deref().map(read_payload).transpose()?;
    Ok(SubmitRequest {
        r#type: args.task_type,
        payload,
        queue: args.queue,
        priority: args.priority,
        delay_seconds: args.delay.map(|delay| delay.as_secs_f64()),
        run_at: args.at,
        retries: args.retries,
        backoff: args.backoff,
        timeout_seconds: args.timeout.map(|timeout| timeout.as_secs_f64()),
        labels: args.labels.into_iter().collect(),
        idempotency_key: args.idempotency_key,
        ..SubmitRequest::default()
    })
}

/// JSON from the command line, from a file (`@FILE`) or from standard input (`-`).
pub(crate) fn read_payload(data: &str) -> anyhow::Result<Box<RawValue>> {
    let text = if data == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("cannot read standard input")?;
        text
    } else if let Some(path) = data.strip_prefix('@') {
        std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?
    } else {
        data.to_owned()
    };
    serde_json::from_str(&text).map_err(|error| {
        Usage::new(format!("the payload is not JSON: {error}; quote strings, such as '\"text\"'"))
            .into()
    })
}
