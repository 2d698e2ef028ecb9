//! The wire types that Duly's server and its clients exchange, and with the feature `http` a client
//! and the work source of remote workers. Does not depend on stores or the engine.

#![warn(missing_docs)]

pub mod wire;

#[cfg(feature = "http")]
mod audit;
#[cfg(feature = "http")]
mod backup;
#[cfg(feature = "http")]
mod bulk;
#[cfg(feature = "http")]
mod dead_letters;
#[cfg(feature = "http")]
pub mod error;
#[cfg(feature = "http")]
mod events;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "http")]
mod keys;
#[cfg(feature = "http")]
mod logs;
#[cfg(feature = "http")]
mod nodes;
#[cfg(feature = "http")]
mod queues;
#[cfg(feature = "http")]
mod schedules;
#[cfg(feature = "http")]
mod settings;
#[cfg(feature = "http")]
pub mod source;
#[cfg(feature = "http")]
mod tenants;
#[cfg(feature = "http")]
mod workers;
#[cfg(feature = "http")]
mod workflows;

#[cfg(feature = "http")]
pub use audit::AuditQuery;
#[cfg(feature = "http")]
pub use backup::Backup;
#[cfg(feature = "http")]
pub use error::Error;
#[cfg(feature = "http")]
pub use events::{EventStream, StreamItem, StreamQuery};
#[cfg(feature = "http")]
pub use http::{Client, ClientOptions};
#[cfg(feature = "http")]
pub use logs::LogQuery;
#[cfg(feature = "http")]
pub use schedules::{Precondition, ScheduleQuery};
#[cfg(feature = "http")]
pub use source::RemoteSource;
#[cfg(feature = "http")]
pub use workflows::WorkflowQuery;
