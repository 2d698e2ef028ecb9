//! The dead-letter queue, which has a row exactly while a task is FAILED.

use duly_core::error_group::ErrorGroup;
use duly_core::task::Failure;
use uuid::Uuid;

use super::state::{TaskState, each};
use crate::postgres::error::Result;
use crate::postgres::verb::Scope;

#[derive(Clone, Copy, Debug)]
pub(super) struct DeadLetter {
    task: Uuid,
    failed_at: i64,
    lane: i32,
    group: i64,
}

impl DeadLetter {
    pub(super) fn of(state: &TaskState, failure: &Failure) -> Self {
        Self {
            task: state.id,
            failed_at: state.finished_at.unwrap_or_default(),
            lane: state.lane,
            group: ErrorGroup::of(failure).to_bits(),
        }
    }
}

pub(super) async fn insert(scope: &Scope<'_>, letters: &[DeadLetter]) -> Result<()> {
    if letters.is_empty() {
        return Ok(());
    }
    let insert = "/* dlq.add */ INSERT INTO duly.dlq (task, failed_at, lane, error_group)
        SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::integer[], $4::bigint[])";
    let (tasks, times) = (each(letters, |it| it.task), each(letters, |it| it.failed_at));
    let (lanes, groups) = (each(letters, |it| it.lane), each(letters, |it| it.group));
    scope.execute(insert, &[&tasks, &times, &lanes, &groups]).await?;
    Ok(())
}

pub(super) async fn delete(scope: &Scope<'_>, tasks: &[Uuid]) -> Result<()> {
    if !tasks.is_empty() {
        let delete = "/* dlq.remove */ DELETE FROM duly.dlq WHERE task = ANY($1)";
        scope.execute(delete, &[&tasks]).await?;
    }
    Ok(())
}
