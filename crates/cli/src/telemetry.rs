//! Logs, on standard error.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::args::LogLevel;
use crate::output::color;

/// Starts logging: what `-v` asks for, or else this much. `RUST_LOG` refines it by module.
pub(crate) fn start(verbose: u8, otherwise: LogLevel) {
    let level = match (verbose, otherwise) {
        (0, LogLevel::Error) => LevelFilter::ERROR,
        (0, LogLevel::Warn) => LevelFilter::WARN,
        (0, LogLevel::Info) | (1, _) => LevelFilter::INFO,
        (0, LogLevel::Trace) => LevelFilter::TRACE,
        (_, _) => LevelFilter::DEBUG,
    };
    let filter = EnvFilter::builder().with_default_directive(level.into()).from_env_lossy();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(color::is_wanted(&std::io::stderr()))
        // A log that nobody reads any more must not end the program.
        .log_internal_errors(false)
        .with_writer(std::io::stderr)
        .init();
}
