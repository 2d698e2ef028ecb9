//! The executor against a source in memory, in paused time: nothing here waits for a real clock.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod attempts;
mod concurrency;
mod flow;
mod reports;
mod samples;
mod shutdown;
mod source;
