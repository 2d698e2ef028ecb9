//! Writes the reference of the built-in task types to stdout:
//! `cargo run -p duly-worker --example handlers > docs/handlers.md`

use std::io::Write;

fn main() -> std::io::Result<()> {
    write!(std::io::stdout(), "{}", duly_worker::handlers::reference::page())
}
