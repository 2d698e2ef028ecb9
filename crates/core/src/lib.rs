//! The domain of Duly: what a task is, how its state moves, what the limits are, and the ports
//! through which the rest of the system reaches time, randomness, storage and work.
//!
//! Nothing here does I/O, reads a clock or draws a random number, so every rule can be tested by
//! calling a function.

#![warn(missing_docs)]
#![warn(clippy::wildcard_enum_match_arm)]

pub mod access;
pub mod audit;
pub mod back_off;
pub mod bulk;
pub mod duration;
pub mod error_group;
pub mod event;
pub mod filter;
pub mod http_header;
pub mod id;
pub mod json;
pub mod key;
pub mod lease;
pub mod limits;
pub mod log;
pub mod mail;
pub mod name;
pub mod node;
pub mod ports;
pub mod progress;
pub mod redact;
pub mod schedule;
pub mod settings;
pub mod state;
pub mod submit;
pub mod task;
pub mod template;
pub mod tenant;
pub mod time;
pub mod trace;
pub mod workflow;
