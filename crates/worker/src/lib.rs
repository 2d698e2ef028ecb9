//! The worker: takes leases from a [`WorkSource`], runs their handlers and reports the outcomes.
//!
//! It does not know whether the work comes from the same process or over the network, and it keeps
//! no durable state: when it dies, its leases are taken back and granted to other workers.
//!
//! [`WorkSource`]: duly_core::ports::work_source::WorkSource

#![warn(missing_docs)]

mod error_chain;
pub mod executor;
pub mod fetch;
#[cfg(fuzzing)]
pub mod fuzzing;
pub mod handler;
pub mod handlers;
pub mod mail;
mod notes;
pub mod outbound;
pub mod registry;
pub mod sql;
mod taken_back;
pub mod then;

pub use executor::{Concurrency, Config, Executor, ExecutorReport};
pub use handler::{Context, Handler, HandlerError, Output, ParentTask};
pub use outbound::Guard;
pub use registry::Registry;
