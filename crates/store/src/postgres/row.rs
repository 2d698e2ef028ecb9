//! Between rows and the domain's types.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use duly_core::back_off::BackOff;
use duly_core::id::{SessionId, TaskId, WorkflowId};
use duly_core::name::{Lane, QueueName, TenantName, TypeName};
use duly_core::progress::{Progress, ReportedProgress};
use duly_core::state::Status;
use duly_core::task::{Failure, Task};
use duly_core::time::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use super::error::{Fault, Result};
use super::range::priority;

/// The columns [`task`] reads, in its order.
pub(super) const TASK_COLUMNS: &str = "task.id, task.status, task.epoch, task.session, task.rank, \
    task.run_at, task.created_at, task.granted_at, task.finished_at, task.run, task.charged, \
    task.retries, task.losses, task.timeout_ms, task.back_off, task.error, task.labels, \
    task.result, task.payload, lane.tenant, lane.queue, lane.type, session.name, progress.at, \
    progress.done, progress.total, progress.message, progress.checkpoint, task.deadline_or_start, \
    task.links, task.workflow";

/// The joins that [`TASK_COLUMNS`] needs.
pub(super) const TASK_TABLES: &str = "duly.task JOIN duly.lane ON lane.id = task.lane \
    LEFT JOIN duly.session ON session.id = task.session \
    LEFT JOIN duly.progress ON progress.task = task.id";

/// Reads a row of [`TASK_COLUMNS`], without what ties the task to others, see [`super::links`].
pub(super) fn task(row: &Row) -> Result<Task> {
    let id: Uuid = row.try_get(0)?;
    let count = |index, column| count("task", column, id, row.try_get(index)?);
    let rank: i16 = row.try_get(4)?;
    let session: Option<Uuid> = row.try_get(3)?;
    let status = decode_status(row.try_get(1)?, id)?;
    let finished_at: Option<i64> = row.try_get(8)?;
    // While it runs, the column holds a deadline, and so may that of a task that ended before starts
    // were kept.
    let started_at: Option<i64> = row.try_get(28)?;
    let started_at = started_at.filter(|it| status.is_terminal() && Some(*it) <= finished_at);
    Ok(Task {
        id: task_id(id),
        lane: lane(row, 19)?,
        status,
        priority: priority(rank).ok_or_else(|| corrupt("task", "rank", id))?,
        run_at: instant(row.try_get(5)?),
        created_at: instant(row.try_get(6)?),
        granted_at: row.try_get::<_, Option<i64>>(7)?.map(instant),
        started_at: started_at.map(instant),
        finished_at: finished_at.map(instant),
        run: count(9, "run")?,
        charged: count(10, "charged")?,
        retries: count(11, "retries")?,
        back_off: decode_back_off(row.try_get(14)?, id)?,
        epoch: count(2, "epoch")?,
        losses: count(12, "losses")?,
        timeout: decode_duration(row.try_get(13)?),
        session: session.map(session_id),
        worker: row.try_get(22)?,
        labels: decode_labels(row.try_get(16)?, id)?,
        payload: row.try_get::<_, &str>(18)?.into(),
        result: row.try_get::<_, Option<&str>>(17)?.map(Arc::from),
        error: row.try_get(15).map(|text| decode_failure("task", text, id))?.transpose()?,
        progress: progress(row, id)?,
        links: None,
    })
}

fn progress(row: &Row, id: Uuid) -> Result<Option<ReportedProgress>> {
    let Some(at) = row.try_get::<_, Option<i64>>(23)? else { return Ok(None) };
    let damaged = |column| corrupt("progress", column, id);
    let total = row.try_get::<_, Option<i64>>(25)?.map(u64::try_from).transpose();
    let progress = Progress {
        done: u64::try_from(row.try_get::<_, i64>(24)?).map_err(|_| damaged("done"))?,
        total: total.map_err(|_| damaged("total"))?,
        message: row.try_get(26)?,
        checkpoint: row.try_get::<_, Option<&str>>(27)?.map(Arc::from),
    };
    Ok(Some(ReportedProgress { progress, at: instant(at) }))
}

/// Reads tenant, queue and type, which stand in this order from a column on.
pub(super) fn lane(row: &Row, first: usize) -> Result<Lane> {
    let text = |index| row.try_get::<_, &str>(first + index);
    let (tenant, queue, task_type) = (text(0)?, text(1)?, text(2)?);
    let damaged = |column| {
        let id = format!("{tenant}/{queue}/{task_type}");
        Fault::Corrupt { table: "lane", column, id }
    };
    Ok(Lane {
        tenant: TenantName::new(tenant).map_err(|_| damaged("tenant"))?,
        queue: QueueName::new(queue).map_err(|_| damaged("queue"))?,
        task_type: TypeName::new(task_type).map_err(|_| damaged("type"))?,
    })
}

pub(super) fn uuid(id: TaskId) -> Uuid {
    Uuid::from_bytes(*id.as_bytes())
}

pub(super) fn task_id(id: Uuid) -> TaskId {
    TaskId::from_bytes(id.into_bytes())
}

pub(super) fn session_uuid(id: SessionId) -> Uuid {
    Uuid::from_bytes(*id.as_bytes())
}

pub(super) fn session_id(id: Uuid) -> SessionId {
    SessionId::from_bytes(id.into_bytes())
}

pub(super) fn workflow_uuid(id: WorkflowId) -> Uuid {
    Uuid::from_bytes(*id.as_bytes())
}

pub(super) fn workflow_id(id: Uuid) -> WorkflowId {
    WorkflowId::from_bytes(id.into_bytes())
}

pub(super) fn instant(millis: i64) -> Timestamp {
    Timestamp::clamped(millis)
}

pub(super) const fn encode_status(status: Status) -> i16 {
    match status {
        Status::Blocked => 0,
        Status::Pending => 1,
        Status::Running => 2,
        Status::Success => 3,
        Status::Failed => 4,
        Status::Cancelled => 5,
    }
}

pub(super) fn decode_status(code: i16, id: Uuid) -> Result<Status> {
    let found = Status::ALL.into_iter().find(|status| encode_status(*status) == code);
    found.ok_or_else(|| corrupt("task", "status", id))
}

pub(super) fn encode_failure(failure: &Failure) -> String {
    serde_json::to_string(failure).expect("two strings are JSON")
}

/// Nothing where there is no text.
pub(super) fn decode_failure(
    table: &'static str,
    text: Option<&str>,
    id: Uuid,
) -> Option<Result<Failure>> {
    let decode = |text| serde_json::from_str(text).map_err(|_| corrupt(table, "error", id));
    text.map(decode)
}

/// What stands for the failure of a try that succeeded.
pub(super) const NO_FAILURE: &str = "null";

/// The policy; nothing for the usual one, which most tasks have.
pub(super) fn encode_back_off(policy: &BackOff) -> Option<String> {
    let unusual = *policy != BackOff::default();
    unusual.then(|| serde_json::to_string(policy).expect("a policy is JSON"))
}

pub(super) fn decode_back_off(text: Option<&str>, id: Uuid) -> Result<BackOff> {
    let Some(text) = text else { return Ok(BackOff::default()) };
    serde_json::from_str(text).map_err(|_| corrupt("task", "back_off", id))
}

pub(super) fn encode_labels(labels: &BTreeMap<String, String>) -> Option<String> {
    (!labels.is_empty()).then(|| serde_json::to_string(labels).expect("strings are JSON"))
}

pub(super) fn decode_labels(text: Option<&str>, id: Uuid) -> Result<BTreeMap<String, String>> {
    let Some(text) = text else { return Ok(BTreeMap::new()) };
    serde_json::from_str(text).map_err(|_| corrupt("task", "labels", id))
}

pub(super) fn encode_delay(delay: Duration) -> i64 {
    i64::try_from(delay.as_millis()).expect("bounded by the limits")
}

/// How long a handler ran. Three weeks stand for whatever is longer.
pub(super) fn encode_ran(ran: Duration) -> i32 {
    i32::try_from(ran.as_millis()).unwrap_or(i32::MAX)
}

pub(super) fn encode_duration(duration: Option<Duration>) -> Option<i32> {
    duration.map(|duration| i32::try_from(duration.as_millis()).expect("bounded by the limits"))
}

pub(super) fn decode_duration(millis: Option<i32>) -> Option<Duration> {
    millis.map(|millis| Duration::from_millis(millis.unsigned_abs().into()))
}

/// A number of the domain as the server keeps it; it knows none without a sign.
pub(super) fn encode_count(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// A number that is never below zero.
pub(super) fn count(
    table: &'static str,
    column: &'static str,
    id: Uuid,
    value: i32,
) -> Result<u32> {
    u32::try_from(value).map_err(|_| corrupt(table, column, id))
}

/// A claim's number as the server keeps it.
pub(super) fn encode_sequence(sequence: u64) -> i64 {
    i64::try_from(sequence).unwrap_or(i64::MAX)
}

pub(super) fn corrupt(table: &'static str, column: &'static str, id: Uuid) -> Fault {
    Fault::Corrupt { table, column, id: id.to_string() }
}
