//! What travels between Duly's server and its callers: the wire types, which the server uses too,
//! and an HTTP client behind the feature `http`. Knows nothing of stores or the engine.

#![warn(missing_docs)]

pub mod wire;

#[cfg(feature = "http")]
pub mod error;
#[cfg(feature = "http")]
pub mod http;

#[cfg(feature = "http")]
pub use error::Error;
#[cfg(feature = "http")]
pub use http::Client;
