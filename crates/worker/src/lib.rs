//! The worker: takes leases from a [`WorkSource`], runs their handlers and reports the outcomes.
//!
//! It does not know where the work comes from, in process or over the network, and it keeps no
//! state that matters: when it dies, its leases are taken back and given to others.
//!
//! [`WorkSource`]: duly_core::ports::work_source::WorkSource

#![warn(missing_docs)]

mod cancels;
pub mod executor;
pub mod handler;
pub mod handlers;
mod notes;
pub mod outbound;
pub mod registry;

pub use executor::{Concurrency, Config, Executor, Report};
pub use handler::{Context, Handler, HandlerError, Output};
pub use outbound::Guard;
pub use registry::Registry;
