//! Long searches and measurements: planted bugs under chaos, wide fan-ins, scaling, held snapshots.
//! `make test` compiles them; `make soak` runs them.
//!
//! Every planted bug also has a deterministic test that runs with `make test`; docs/chaos.md lists
//! them.

#[path = "../chaos/fan_in_stores.rs"]
mod fan_in_stores;
#[path = "../cluster/harness.rs"]
mod harness;

mod fan_in;
mod held;
mod many_tasks;
mod planted;
mod scale;
mod spread;

use tokio::sync::Mutex;

const DULY: &str = env!("CARGO_BIN_EXE_duly");

/// One test at a time: each needs the whole machine.
static TURN: Mutex<()> = Mutex::const_new(());
