//! `duly dlq …`: the dead-letter queue.

mod action;
mod list;

use crate::args::DlqCommand;
use crate::exit::Ending;

pub(crate) fn run(command: DlqCommand) -> anyhow::Result<Ending> {
    super::block_on(async {
        match command {
            DlqCommand::List(args) => list::list(&args).await,
            DlqCommand::Groups(args) => list::groups(&args).await,
            DlqCommand::Replay(args) => action::replay(&args).await,
            DlqCommand::Purge(args) => action::purge(&args).await,
        }
    })
}
