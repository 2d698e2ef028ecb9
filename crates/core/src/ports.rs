//! What the domain needs from outside, as traits.

pub mod clock;
pub mod event_sink;
pub mod random;
pub mod store;
pub mod work_source;
