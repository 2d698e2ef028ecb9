//! `duly dlq …`: tasks that failed, for people who look after them.

mod list;
mod order;

use crate::args::DlqCommand;
use crate::exit::Ending;

pub(crate) fn run(command: DlqCommand) -> anyhow::Result<Ending> {
    super::block_on(async {
        match command {
            DlqCommand::List(args) => list::list(&args).await,
            DlqCommand::Groups(args) => list::groups(&args).await,
            DlqCommand::Replay(args) => order::replay(&args).await,
            DlqCommand::Purge(args) => order::purge(&args).await,
        }
    })
}
