//! Requests through the whole router and, where the socket matters, through a real one.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests, which clippy cannot see here")]

mod access;
mod attempts;
mod audit;
mod auth;
mod bad_input;
mod batch;
mod broken;
mod bulk;
mod control;
mod dead_letters;
mod docs;
mod edge;
mod events;
mod health;
mod hostile;
mod keys;
mod leases;
mod limits;
mod list;
mod nodes;
mod openapi;
mod parameters;
mod prefixes;
mod queues;
mod redact;
mod reports;
mod schedules;
mod server;
mod sessions;
mod settings;
mod streams;
mod support;
mod tasks;
mod tenant_records;
mod tenants;
mod tls;
mod workers;
mod workflows;
