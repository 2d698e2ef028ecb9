//! Finish in a handler's own transaction: what it has done and the outcome of its task are committed
//! together or not at all.

use duly_core::json::{self, BadJson};
use duly_core::lease::Fence;
use duly_core::limits::RESULT_BYTES;
use tokio_postgres::Transaction;
use tokio_postgres::error::SqlState;

use super::error::chain;
use super::row;

/// Why a task cannot be finished in this transaction, which can then only be rolled back.
#[derive(Debug, thiserror::Error)]
pub enum FinishError {
    /// Another worker has the task, or will have it: what was done must not be committed.
    #[error("the lease was taken back")]
    LeaseLost,
    /// An earlier transaction under the same lease was committed, even if its caller got no answer.
    #[error("the task was finished under this lease before")]
    AlreadyFinished,
    /// The result is larger than a result may be.
    #[error("the result has {0} bytes, the limit is {RESULT_BYTES}")]
    ResultTooLarge(usize),
    /// The result is nothing that can be kept.
    #[error("the result is {0}")]
    InvalidResult(BadJson),
    /// The database refused, or did not answer.
    #[error("{}", chain(.0))]
    Postgres(#[from] tokio_postgres::Error),
}

/// Commits a task's success with everything else in this transaction, if its lease still lives then;
/// `result` is JSON text. The transaction must be one of the store's own database, on a connection of
/// the handler's.
///
/// Until it ends, others wait for the task: this is best the last statement before the commit. The
/// handler then returns; what the worker reports is answered as done, and changes nothing.
pub async fn finish_in(
    transaction: &Transaction<'_>,
    fence: &Fence,
    result: Option<&str>,
) -> Result<(), FinishError> {
    let text = result.unwrap_or_default();
    if text.len() > RESULT_BYTES {
        return Err(FinishError::ResultTooLarge(text.len()));
    }
    json::check(text).map_err(FinishError::InvalidResult)?;
    let finish = "/* finish_in */ SELECT duly.finish($1, $2, $3, $4::text::json)";
    let epoch = row::encode_count(fence.epoch);
    let (task, session) = (row::uuid(fence.task), row::session_uuid(fence.session));
    let answer = transaction.execute(finish, &[&task, &epoch, &session, &result]).await;
    answer.map(drop).map_err(refused)
}

fn refused(error: tokio_postgres::Error) -> FinishError {
    let refusal =
        error.as_db_error().filter(|it| *it.code() == SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE);
    match refusal.and_then(|it| it.constraint()) {
        Some("LEASE_LOST") => FinishError::LeaseLost,
        Some("ALREADY_FINISHED") => FinishError::AlreadyFinished,
        _ => FinishError::Postgres(error),
    }
}
