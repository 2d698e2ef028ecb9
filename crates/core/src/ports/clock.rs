//! The time of day.

use crate::time::Timestamp;

/// Tells the time. Stores that have no server of their own judge due times by it; tests move it.
pub trait Clock: Send + Sync {
    /// Now; never earlier than what an earlier call said.
    fn now(&self) -> Timestamp;
}
