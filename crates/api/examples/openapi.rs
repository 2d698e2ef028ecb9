//! Writes the OpenAPI document to stdout:
//! `cargo run -p duly-api --example openapi > crates/api/openapi.json`

use std::io::Write;

fn main() -> std::io::Result<()> {
    let document = duly_api::document().to_pretty_json().expect("the document is JSON");
    writeln!(std::io::stdout(), "{document}")
}
