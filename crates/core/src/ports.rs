//! What the domain needs from outside, as traits.

pub mod clock;
pub mod random;
pub mod store;
pub mod work_source;
