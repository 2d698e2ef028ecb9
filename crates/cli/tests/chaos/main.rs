//! Short runs of real servers and workers under faults, judged from outside, and workflows whose ends
//! meet. `make soak` searches for the planted bugs in the same way; see docs/chaos.md.

mod cluster;
mod fan_in;
mod fan_in_stores;
mod one_server;

use tokio::sync::Mutex;

const DULY: &str = env!("CARGO_BIN_EXE_duly");

/// One run at a time: each starts a dozen processes.
static TURN: Mutex<()> = Mutex::const_new(());
