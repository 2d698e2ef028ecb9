//! `duly task get`.

use super::{connect, print_ended, too_long, wait};
use crate::args::{GetArgs, Output};
use crate::exit::Ending;
use crate::output;

pub(super) async fn run(args: &GetArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    if let Some(patience) = args.wait {
        return match wait(&client, args.id, patience).await? {
            Some(task) => print_ended(&task, args.client.output),
            None => Ok(too_long(args.id, patience)),
        };
    }
    let task = client.get_task(args.id, None).await?;
    match args.client.output {
        Output::Json => output::json(&task)?,
        Output::Table => output::data(&output::task(&task))?,
        Output::Id => output::data(&task.task_id.to_string())?,
    }
    Ok(Ending::Ok)
}
