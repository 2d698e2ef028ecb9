//! What travels between Duly's server and its callers: the wire types, which the server uses too,
//! and behind the feature `http` a client and a source of work for workers elsewhere. Knows
//! nothing of stores or the engine.

#![warn(missing_docs)]

pub mod wire;

#[cfg(feature = "http")]
mod backup;
#[cfg(feature = "http")]
mod bulk;
#[cfg(feature = "http")]
mod dead_letters;
#[cfg(feature = "http")]
pub mod error;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "http")]
mod logs;
#[cfg(feature = "http")]
mod nodes;
#[cfg(feature = "http")]
mod queues;
#[cfg(feature = "http")]
mod settings;
#[cfg(feature = "http")]
pub mod source;
#[cfg(feature = "http")]
mod workers;

#[cfg(feature = "http")]
pub use backup::Backup;
#[cfg(feature = "http")]
pub use error::Error;
#[cfg(feature = "http")]
pub use http::Client;
#[cfg(feature = "http")]
pub use logs::LogQuery;
#[cfg(feature = "http")]
pub use source::RemoteSource;
