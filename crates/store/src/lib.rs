//! The stores. All of them implement `duly_core::ports::store::Store` and pass one suite, in
//! [`mod@conformance`]; which one is used is decided by the binary alone.

#[cfg(any(feature = "memory", feature = "sqlite", feature = "postgres"))]
mod audited;
pub mod clock;
mod hints;
pub mod layer;
pub mod limit;

#[cfg(feature = "conformance")]
pub mod conformance;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod key_text;
#[cfg(feature = "memory")]
pub mod memory;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod other_event;
#[cfg(feature = "planted-bugs")]
pub mod planted;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod schedule_rules;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod tenant_rules;
