//! Writes the OpenAPI document to stdout:
//! `cargo run -p duly-api --example openapi > crates/api/openapi.json`

use std::io::Write;

fn main() -> std::io::Result<()> {
    writeln!(std::io::stdout(), "{}", duly_api::document_text())
}
