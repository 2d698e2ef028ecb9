//! Applications on the nodes' PostgreSQL: tasks that are submitted in their own transactions, and
//! handlers that finish in theirs.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod finish;
mod keys;
mod late;
mod refusals;
mod rights;
mod same_row;
mod search_path;
mod submit;
mod tenants;
mod world;
