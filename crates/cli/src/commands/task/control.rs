//! `duly task cancel|replay|retry`.

use duly_client::wire::{CancelRequest, ReplayRequest};

use super::run::read_payload;
use super::{connect, print};
use crate::args::{CancelArgs, ReplayArgs, RetryArgs};
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
