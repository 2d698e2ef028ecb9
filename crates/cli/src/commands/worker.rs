//! `duly worker …`: run, list and drain workers.

mod drain;
mod list;
mod run;

use anyhow::Context as _;

use crate::args::WorkerCommand;
use crate::exit::Ending;

pub(crate) fn run(command: WorkerCommand) -> anyhow::Result<Ending> {
    match command {
        WorkerCommand::Run(args) => {
            let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
            runtime.block_on(run::run(&args))
        }
        WorkerCommand::List(args) => super::block_on(list::run(&args)),
        WorkerCommand::Drain(args) => super::block_on(drain::run(&args)),
    }
}
