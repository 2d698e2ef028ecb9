//! Logs, on standard error.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::args::Args;

/// Starts logging: warnings, and more with `-v`. `RUST_LOG` refines it by module.
pub(crate) fn start(args: &Args) {
    let level = match args.verbose {
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        _ => LevelFilter::DEBUG,
    };
    let filter = EnvFilter::builder().with_default_directive(level.into()).from_env_lossy();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        // A log that nobody reads any more must not end the program.
        .log_internal_errors(false)
        .with_writer(std::io::stderr)
        .init();
}
