//! One file per command.

pub(crate) mod audit;
pub(crate) mod backup;
pub(crate) mod bench;
pub(crate) mod bulk;
pub(crate) mod completions;
pub(crate) mod dev;
pub(crate) mod dlq;
pub(crate) mod doctor;
mod document;
pub(crate) mod event;
pub(crate) mod handler;
pub(crate) mod key;
pub(crate) mod migrate;
pub(crate) mod node;
pub(crate) mod notify;
mod preview;
pub(crate) mod queue;
pub(crate) mod restore;
pub(crate) mod schedule;
pub(crate) mod serve;
mod serving;
pub(crate) mod settings;
pub(crate) mod task;
pub(crate) mod tenant;
pub(crate) mod token;
mod watch;
pub(crate) mod worker;
pub(crate) mod workflow;

use anyhow::Context as _;
use duly_client::Client;

use crate::args::ClientArgs;

/// Runs client calls on this thread.
fn block_on<T>(calls: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start the runtime")?.block_on(calls)
}

fn connect(args: &ClientArgs) -> anyhow::Result<Client> {
    args.server.connect()
}
