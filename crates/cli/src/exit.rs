//! Exit codes, the same for every command.

use std::process::ExitCode;

use duly_client::Error as ClientError;
use duly_store::postgres::OpenError;

use crate::output;

/// How a command that did not fail can still end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// All is well.
    Ok,
    /// A check found something.
    Unwell,
    /// The task that was waited for failed or was cancelled.
    TaskFailed,
    /// The wait was over before the task was.
    WaitedTooLong,
}

/// What was asked for makes no sense; the text says what would.
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
    let code = match outcome {
        Ok(Ending::Ok) => 0,
        Ok(Ending::Unwell) => 1,
        Ok(Ending::TaskFailed) => 6,
        Ok(Ending::WaitedTooLong) => 7,
        Err(error) => {
            output::say(&format!("error: {error:#}"));
            if is_misunderstood(&error) { 2 } else { error.downcast_ref().map_or(1, code_of) }
        }
    };
    ExitCode::from(code)
}

fn is_misunderstood(error: &anyhow::Error) -> bool {
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
        ClientError::BadAddress { .. } | ClientError::BadToken => 2,
        ClientError::Unreachable { .. } | ClientError::Unexpected { .. } => 1,
    }
}
