//! The http handler against servers of a few lines on the loopback interface.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod hostile;
mod names;
mod requests;
mod support;
