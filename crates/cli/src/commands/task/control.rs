//! `duly task cancel|edit|replay|retry`.

use duly_client::wire::{CancelRequest, EditRequest, ReplayRequest};

use super::run::read_payload;
use super::{connect, print};
use crate::args::{CancelArgs, EditArgs, ReplayArgs, RetryArgs};
use crate::exit::Ending;
use crate::output;

pub(super) async fn cancel(args: CancelArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    let order = CancelRequest { reason: args.reason };
    let task = client.cancel_task(args.id, &order).await?;
    print(&task, args.client.output)?;
    output::say(&format!("next: duly task replay {} runs it again", task.task_id));
    Ok(Ending::Ok)
}

pub(super) async fn edit(args: EditArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    let change = EditRequest {
        payload: args.data.as_deref().map(read_payload).transpose()?,
        priority: args.priority,
        delay_seconds: args.delay.map(|delay| delay.as_secs_f64()),
        run_at: args.at,
        retries: args.retries,
        timeout_seconds: args.timeout.map(|timeout| timeout.as_secs_f64()),
        labels: args.labels.into_iter().collect(),
    };
    let task = client.edit_task(args.id, &change).await?;
    print(&task, args.client.output)?;
    output::say(&format!("next: duly task get {} --wait", task.task_id));
    Ok(Ending::Ok)
}

pub(super) async fn replay(args: ReplayArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    let payload = args.data.as_deref().map(read_payload).transpose()?;
    let task = client.replay_task(args.id, &ReplayRequest { payload }).await?;
    print(&task, args.client.output)?;
    output::say(&format!("next: duly task get {} --wait", task.task_id));
    Ok(Ending::Ok)
}

pub(super) async fn retry(args: &RetryArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    let task = client.retry_task(args.id).await?;
    print(&task, args.client.output)?;
    output::say(&format!("next: duly task get {} --wait", task.task_id));
    Ok(Ending::Ok)
}
