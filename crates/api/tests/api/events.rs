//! Streams of events, and the sinks that receive them.

mod document;
mod ending;
mod full;
mod limits;
pub(crate) mod reader;
mod sinks;
mod topics;
