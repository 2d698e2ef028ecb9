//! Requests through the whole router and, where the socket matters, through a real one.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests, which clippy cannot see here")]

mod bad_input;
mod batch;
mod broken;
mod control;
mod docs;
mod edge;
mod health;
mod list;
mod openapi;
mod server;
mod support;
mod tasks;
mod tenants;
