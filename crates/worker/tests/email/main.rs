//! The email handler against a real mail server, aiosmtpd. Python's own library reads the mails.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod arrivals;
mod payloads;
mod refusals;
mod support;
