//! `duly worker list`.

use duly_client::wire::{WorkerHome, WorkerLife, WorkerView};

use crate::args::{Output, WorkerListArgs};
use crate::commands::connect;
use crate::exit::Ending;
use crate::output::{self, Paint};

pub(super) async fn run(args: &WorkerListArgs) -> anyhow::Result<Ending> {
    let workers = connect(&args.client)?.workers().await?;
    match args.client.output {
        Output::Json => output::json(&workers)?,
        Output::Table if workers.items.is_empty() => {
            output::say("no worker is connected; next: duly worker run");
        }
        Output::Table => output::data(&table_of(&workers.items))?,
        Output::Id => {
            for worker in &workers.items {
                output::data(&worker.worker_id.to_string())?;
            }
        }
    }
    Ok(Ending::Ok)
}

/// Workers, one per line.
pub(super) fn table_of(workers: &[WorkerView]) -> String {
    let header = ["id", "name", "home", "state", "leases", "queues", "types", "last heartbeat"];
    let mut table = output::table(&header)
        .shorten(&["name", "queues", "types"], 12)
        .leave_out(&["last heartbeat", "queues", "types", "home"])
        .paint("state", Paint::HEALTH);
    for worker in workers {
        table.add_row([
            worker.worker_id.to_string(),
            worker.name.clone(),
            match worker.home {
                WorkerHome::Node => "node",
                WorkerHome::Remote => "remote",
            }
            .to_owned(),
            match worker.state {
                WorkerLife::Active => "active",
                WorkerLife::Draining => "draining",
            }
            .to_owned(),
            worker.leases.to_string(),
            queues(&worker.queues),
            worker.types.join(","),
            format!("{:.1} s ago", worker.beat_age_seconds),
        ]);
    }
    output::render(&table)
}

fn queues(queues: &[String]) -> String {
    if queues.is_empty() { "all".to_owned() } else { queues.join(",") }
}
