//! Exit codes, the same for every command.

use std::process::ExitCode;

use duly_client::Error as ClientError;
use duly_store::postgres::OpenError;

use crate::output;

/// How a command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It succeeded.
    Ok,
    /// A check failed, or the user declined.
    Unsuccessful,
    /// The awaited task failed or was cancelled.
    TaskFailed,
    /// The wait ended before the task did.
    WaitedTooLong,
    /// It failed with this code, and the error was printed.
    Failed(u8),
}

impl Ending {
    /// The exit code.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Unsuccessful => 1,
            Self::TaskFailed => 6,
            Self::WaitedTooLong => 7,
            Self::Failed(code) => code,
        }
    }
}

/// The command was used wrongly; the text says how to use it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(String);

impl Usage {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// Prints an error, if there is one, and turns the outcome into an exit code.
pub(crate) fn report(outcome: anyhow::Result<Ending>) -> ExitCode {
    let ending = outcome.unwrap_or_else(|error| {
        output::error(&format!("{error:#}"));
        Ending::Failed(code_of_error(&error))
    });
    ExitCode::from(ending.code())
}

/// The exit code of an error.
pub(crate) fn code_of_error(error: &anyhow::Error) -> u8 {
    if is_usage_error(error) { 2 } else { error.downcast_ref().map_or(1, code_of) }
}

fn is_usage_error(error: &anyhow::Error) -> bool {
    error.is::<Usage>() || matches!(error.downcast_ref(), Some(OpenError::Address(_)))
}

fn code_of(error: &ClientError) -> u8 {
    match error {
        ClientError::Problem { problem, .. } => match problem.status {
            401 | 403 => 4,
            404 => 3,
            409 | 412 => 5,
            _ => 1,
        },
        ClientError::BadAddress { .. } | ClientError::BadToken | ClientError::BadAuthorities => 2,
        ClientError::Unreachable { .. } | ClientError::Unexpected { .. } => 1,
    }
}
