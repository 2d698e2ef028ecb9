//! `duly task cancel|edit|replay|retry|delete`.

use duly_client::wire::{CancelRequest, EditRequest, ReplayRequest};

use super::each::call_each;
use super::run::read_payload;
use super::{connect, print};
use crate::args::{CancelArgs, DeleteArgs, EditArgs, Output, ReplayArgs, RetryArgs, TaskRef};
use crate::exit::Ending;
use crate::output;

pub(super) async fn cancel(args: CancelArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    let request = CancelRequest { reason: args.reason };
    let done = call_each(&args.ids, async |id| client.cancel_task(id, &request).await).await?;
    done.print(args.client.output)?;
    done.print_next(|task| format!("duly task replay {} runs it again", task.task_id));
    Ok(done.ending)
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
    let task = client.edit_task(&args.id, &change).await?;
    print(&task, args.client.output)?;
    output::say(&format!("next: duly task get {} --wait", task.task_id));
    Ok(Ending::Ok)
}

pub(super) async fn replay(args: ReplayArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    let request = ReplayRequest {
        payload: args.data.as_deref().map(read_payload).transpose()?,
        downstream: args.downstream,
    };
    let done = call_each(&args.ids, async |id| client.replay_task(id, &request).await).await?;
    done.print(args.client.output)?;
    done.print_next(|task| format!("duly task get {} --wait", task.task_id));
    Ok(done.ending)
}

pub(super) async fn retry(args: &RetryArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    let done = call_each(&args.ids, async |id| client.retry_task(id).await).await?;
    done.print(args.client.output)?;
    done.print_next(|task| format!("duly task get {} --wait", task.task_id));
    Ok(done.ending)
}

pub(super) async fn delete(args: &DeleteArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    let call = async |id: &TaskRef| client.delete_task(id).await.map(|()| id.to_string());
    let done = call_each(&args.ids, call).await?;
    match args.client.output {
        Output::Json => output::json(&done.tasks)?,
        Output::Table => {
            let count = output::count(done.tasks.len() as u64, "task");
            output::data(&format!("deleted {count}"))?;
        }
        Output::Id => done.tasks.iter().try_for_each(|id| output::data(id))?,
    }
    Ok(done.ending)
}
