//! What only PostgreSQL does: many nodes share it, and it has days.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod clock;
mod gate;
mod grant;
mod nodes;
mod outbox;
mod plans;
mod races;
mod retention;
mod rights;
mod row_security;
mod schedules;
mod schema;
mod start;
mod suspension;
mod workflows;
mod world;
