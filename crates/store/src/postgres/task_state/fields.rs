//! Writes of tasks that are no transition: the status stays, and no hook is concerned. The caller holds
//! the locks of the rows.

use duly_core::ports::store::EditTask;
use uuid::Uuid;

use super::state::each;
use crate::postgres::error::Result;
use crate::postgres::row;
use crate::postgres::verb::Scope;

/// A lease whose deadline was moved.
pub(in crate::postgres) struct MovedDeadline {
    pub(in crate::postgres) task: Uuid,
    pub(in crate::postgres) epoch: i32,
    pub(in crate::postgres) deadline: i64,
}

/// Moves the deadlines of leases of a session. They come in the order of their tasks.
pub(in crate::postgres) async fn move_deadlines(
    scope: &Scope<'_>,
    session: Uuid,
    moved: &[MovedDeadline],
) -> Result<()> {
    let update = "/* extend */ UPDATE duly.task t
        SET deadline_or_start = ($4::bigint[])[width_bucket(t.id, $2)]
        WHERE t.id = ANY($2::uuid[]) AND t.epoch = ($3::integer[])[width_bucket(t.id, $2)]
          AND t.session = $1 AND t.status = 2";
    let (tasks, epochs) = (each(moved, |it| it.task), each(moved, |it| it.epoch));
    scope.execute(update, &[&session, &tasks, &epochs, &each(moved, |it| it.deadline)]).await?;
    Ok(())
}

/// Changes the fields of a PENDING or BLOCKED task that do not affect where it waits.
pub(in crate::postgres) async fn edit(scope: &Scope<'_>, order: &EditTask) -> Result<()> {
    let change = &order.change;
    let update = "/* edit */ UPDATE duly.task SET retries = coalesce($2, retries),
            timeout_ms = coalesce($3, timeout_ms), payload = coalesce($4, payload),
            labels = CASE WHEN $5 THEN $6 ELSE labels END
        WHERE id = $1 AND status IN (0, 1)";
    let labels = change.labels.as_ref().and_then(row::encode_labels);
    scope
        .execute(
            update,
            &[
                &row::uuid(order.task),
                &change.retries.map(row::encode_count),
                &row::encode_duration(change.timeout),
                &change.payload.as_deref(),
                &change.labels.is_some(),
                &labels,
            ],
        )
        .await?;
    Ok(())
}

/// Gives PENDING tasks another payload.
pub(in crate::postgres) async fn set_payload(
    scope: &Scope<'_>,
    tasks: &[Uuid],
    payload: &str,
) -> Result<()> {
    let update = "/* replay.payload */ UPDATE duly.task SET payload = $2
        WHERE id = ANY($1) AND status = 1";
    scope.execute(update, &[&tasks, &payload]).await?;
    Ok(())
}
