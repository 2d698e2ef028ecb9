//! `duly worker drain`.

use duly_client::wire::WorkerView;

use super::list::table_of;
use crate::args::{Output, WorkerDrainArgs};
use crate::commands::connect;
use crate::exit::Ending;
use crate::output;

pub(super) async fn run(args: &WorkerDrainArgs) -> anyhow::Result<Ending> {
    let worker = connect(&args.client)?.drain_worker(args.id, !args.resume).await?;
    match args.client.output {
        Output::Json => output::json(&worker)?,
        Output::Table => {
            output::data(&table_of(std::slice::from_ref(&worker)))?;
            output::say(&describe_effect(&worker, args.resume));
        }
        Output::Id => output::data(&worker.worker_id.to_string())?,
    }
    Ok(Ending::Ok)
}

/// What the worker does from now on, and what to do next.
fn describe_effect(worker: &WorkerView, resumed: bool) -> String {
    let id = worker.worker_id;
    if resumed {
        return "it takes new tasks again".to_owned();
    }
    let rest = match worker.leases {
        0 => "holds none, so it can be stopped".to_owned(),
        leases => {
            let tasks = output::count(leases, "task");
            format!("finishes {tasks}; duly worker list shows how many are left")
        }
    };
    format!("it takes no new tasks and {rest}\nnext: duly worker drain {id} --resume undoes it")
}
