//! `duly worker …`: workers beside the server's own.

mod run;

use anyhow::Context as _;

use crate::args::WorkerCommand;
use crate::exit::Ending;

pub(crate) fn run(command: WorkerCommand) -> anyhow::Result<Ending> {
    let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
    runtime.block_on(async {
        match command {
            WorkerCommand::Run(args) => run::run(&args).await,
        }
    })
}
