//! Logs, on standard error.

mod one_line;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::args::LogLevel;
use crate::output::color;

/// Starts logging at the level of `-v`, or else at this level. `RUST_LOG` refines it by module.
pub(crate) fn start(verbose: u8, default: LogLevel) {
    let level = match (verbose, default) {
        (0, LogLevel::Error) => LevelFilter::ERROR,
        (0, LogLevel::Warn) => LevelFilter::WARN,
        (0, LogLevel::Info) | (1, _) => LevelFilter::INFO,
        (0, LogLevel::Trace) => LevelFilter::TRACE,
        (_, _) => LevelFilter::DEBUG,
    };
    let filter = EnvFilter::builder().with_default_directive(level.into()).from_env_lossy();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .fmt_fields(self::one_line::OneLine)
        .with_ansi(color::is_wanted(&std::io::stderr()))
        // A closed standard error must not end the program.
        .log_internal_errors(false)
        .with_writer(std::io::stderr)
        .init();
}
