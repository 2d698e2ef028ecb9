//! `duly event …`: what happens, and who is told.

mod sinks;
mod tail;

use crate::args::EventCommand;
use crate::exit::Ending;

pub(crate) fn run(command: EventCommand) -> anyhow::Result<Ending> {
    super::block_on(async {
        match command {
            EventCommand::Tail(args) => tail::run(&args).await,
            EventCommand::Sinks(args) => sinks::list(&args).await,
            EventCommand::Resume(args) => sinks::resume(&args).await,
            EventCommand::Remove(args) => sinks::remove(&args).await,
        }
    })
}
