//! The sql handler on SQLite files and on a real PostgreSQL.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod postgres;
mod sqlite;
mod support;
