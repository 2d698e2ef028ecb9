//! Streams of server-sent events: what a caller follows, until it goes or may not follow any more.
//!
//! A stream is pulled: nothing is read for a peer that takes nothing, and nothing is kept for it but the
//! piece that it is to take next.

mod body;
mod ending;
mod frame;
mod places;
mod sources;
mod topics;

pub(crate) use self::body::EventStream;
pub(crate) use self::ending::Ending;
pub(crate) use self::places::StreamPlaces;
pub(crate) use self::sources::{EventSource, Sources};
pub(crate) use self::topics::{Topic, read_topics};
