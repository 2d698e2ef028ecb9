//! One real server on one file: killed, restarted, out of disk space, backed up, and with workers
//! in other processes.

mod backup;
mod bulk;
mod durability;
mod faults;
mod keys;
mod matrix;
#[cfg(feature = "planted-bugs")]
mod missed_slots;
mod remote;
mod security;

const DULY: &str = env!("CARGO_BIN_EXE_duly");
