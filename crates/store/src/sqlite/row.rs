//! Between rows and the domain's types.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use duly_core::back_off::BackOff;
use duly_core::id::{SessionId, TaskId};
use duly_core::lease::Lease;
use duly_core::name::Lane;
use duly_core::progress::{Progress, ReportedProgress};
use duly_core::state::Status;
use duly_core::task::{Failure, Task};
use duly_core::time::Timestamp;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _, Row};

use super::error::{Fault, Result};
use super::index::heads::Range;
use super::index::lanes::lane_from;
use super::links;

/// Payloads up to this size stand in the task's row: a row of SQLite's index tree keeps about
/// 1,000 bytes on its page, and the other columns need up to half of that.
pub(super) const INLINE_PAYLOAD_BYTES: usize = 512;

/// The columns [`task`] reads, in its order.
pub(super) const TASK_COLUMNS: &str = "task.id, status, epoch, task.session, task.lane, rank, run_at, \
    created_at, granted_at, finished_at, run, charged, retries, losses, timeout_ms, error, labels, \
    result, coalesce(payload, body), lane.tenant, lane.queue, lane.type, session.name, back_off, \
    progress.at, done, total, message, checkpoint, started_at, links, task.workflow";

/// The one of [`TASK_COLUMNS`] that may be large.
pub(super) const PAYLOAD_COLUMN: &str = "coalesce(payload, body)";

/// The joins that [`TASK_COLUMNS`] needs.
pub(super) const TASK_TABLES: &str = "task JOIN lane ON lane.id = task.lane \
    LEFT JOIN payload ON task.payload IS NULL AND payload.task = task.id \
    LEFT JOIN session ON session.id = task.session \
    LEFT JOIN progress ON progress.task = task.id";

/// Reads a row of [`TASK_COLUMNS`].
pub(super) fn task(row: &Row<'_>) -> Result<Task> {
    let id: [u8; 16] = row.get(0)?;
    let lane_id = row.get(4)?;
    let damaged = |column| corrupt(column, &id);
    let instant = |millis: i64| Timestamp::clamped(millis);
    let labels = match row.get_ref(16)?.as_str_or_null().unwrap_or(None) {
        None => BTreeMap::new(),
        Some(text) => serde_json::from_str(text).map_err(|_| damaged("labels"))?,
    };
    let error = match row.get_ref(15)?.as_str_or_null().unwrap_or(None) {
        None => None,
        Some(text) => Some(serde_json::from_str(text).map_err(|_| damaged("error"))?),
    };
    let payload: Option<String> = row.get(18)?;
    Ok(Task {
        id: TaskId::from_bytes(id),
        lane: lane_from(lane_id, row.get_ref(19)?, row.get_ref(20)?, row.get_ref(21)?)?,
        status: decode_status(row.get(1)?, &id)?,
        priority: Range { lane: lane_id, rank: row.get(5)? }
            .priority()
            .ok_or_else(|| damaged("rank"))?,
        run_at: instant(row.get(6)?),
        created_at: instant(row.get(7)?),
        granted_at: row.get::<_, Option<i64>>(8)?.map(instant),
        started_at: row.get::<_, Option<i64>>(29)?.map(instant),
        finished_at: row.get::<_, Option<i64>>(9)?.map(instant),
        run: row.get(10)?,
        charged: row.get(11)?,
        retries: row.get(12)?,
        back_off: decode_back_off(row.get_ref(23)?, &id)?,
        epoch: row.get(2)?,
        losses: row.get(13)?,
        timeout: decode_duration(row.get(14)?),
        session: row.get::<_, Option<[u8; 16]>>(3)?.map(SessionId::from_bytes),
        worker: row.get(22)?,
        labels,
        payload: payload.ok_or_else(|| damaged("payload"))?.into(),
        result: row.get::<_, Option<String>>(17)?.map(Arc::from),
        error,
        progress: progress(row)?,
        links: links::from_row(row.get(30)?, row.get(31)?),
    })
}

fn progress(row: &Row<'_>) -> Result<Option<ReportedProgress>> {
    let Some(at) = row.get::<_, Option<i64>>(24)? else { return Ok(None) };
    let progress = Progress {
        done: row.get(25)?,
        total: row.get(26)?,
        message: row.get(27)?,
        checkpoint: row.get::<_, Option<String>>(28)?.map(Arc::from),
    };
    Ok(Some(ReportedProgress { progress, at: Timestamp::clamped(at) }))
}

/// Reads a grant: epoch, run, charged, retries, timeout_ms, payload, run_at, links. A payload that
/// is in another table is still missing; see [`with_payload`].
pub(super) fn lease(
    row: &Row<'_>,
    task: TaskId,
    lane: &Lane,
    granted_at: Timestamp,
) -> rusqlite::Result<Lease> {
    let payload = row.get_ref(5)?.as_str_or_null()?;
    let links = row.get(7)?;
    Ok(Lease {
        task,
        epoch: row.get(0)?,
        run: row.get(1)?,
        attempt: row.get::<_, u32>(2)? + 1,
        retries: row.get(3)?,
        lane: lane.clone(),
        timeout: decode_duration(row.get(4)?),
        granted_at,
        run_at: Timestamp::clamped(row.get(6)?),
        payload: payload.unwrap_or_default().into(),
        has_parents: links::have_parents(links),
        has_children: links::children(links) > 0,
        renders: links::render(links),
        parents: None,
    })
}

/// Fetches the payload of a lease whose row did not hold it.
pub(super) fn with_payload(connection: &Connection, mut lease: Lease) -> Result<Lease> {
    // No JSON text is empty, so an empty one means that the row held none.
    if lease.payload.is_empty() {
        let mut statement =
            connection.prepare_cached("/* payload */ SELECT body FROM payload WHERE task = ?")?;
        let body: Option<String> =
            statement.query_row([lease.task.as_bytes()], |row| row.get(0)).optional()?;
        lease.payload = body.ok_or_else(|| corrupt("payload", lease.task.as_bytes()))?.into();
    }
    Ok(lease)
}

pub(super) const fn encode_status(status: Status) -> i64 {
    match status {
        Status::Blocked => 0,
        Status::Pending => 1,
        Status::Running => 2,
        Status::Success => 3,
        Status::Failed => 4,
        Status::Cancelled => 5,
    }
}

pub(super) fn decode_status(code: i64, id: &[u8; 16]) -> Result<Status> {
    let found = Status::ALL.into_iter().find(|status| encode_status(*status) == code);
    found.ok_or_else(|| corrupt("status", id))
}

pub(super) fn encode_failure(failure: &Failure) -> String {
    serde_json::to_string(failure).expect("two strings are JSON")
}

pub(super) fn decode_failure(
    value: ValueRef<'_>,
    table: &'static str,
    id: &[u8; 16],
) -> Result<Failure> {
    let damaged = || {
        let id = TaskId::from_bytes(*id).to_string();
        Fault::Corrupt { table, column: "error", id }
    };
    let text = value.as_str().map_err(|_| damaged())?;
    serde_json::from_str(text).map_err(|_| damaged())
}

/// Reads why a try failed; nothing of one that succeeded.
pub(super) fn decode_attempt(value: ValueRef<'_>, id: &[u8; 16]) -> Result<Option<Failure>> {
    match value.as_str() {
        Ok(NO_FAILURE) => Ok(None),
        _ => decode_failure(value, "attempt", id).map(Some),
    }
}

/// What stands for the failure of a try that succeeded.
pub(super) const NO_FAILURE: &str = "null";

pub(super) fn encode_millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// The policy; nothing for the usual one, which most tasks have.
pub(super) fn encode_back_off(policy: &BackOff) -> Option<String> {
    let unusual = *policy != BackOff::default();
    unusual.then(|| serde_json::to_string(policy).expect("a policy is JSON"))
}

pub(super) fn decode_back_off(value: ValueRef<'_>, id: &[u8; 16]) -> Result<BackOff> {
    match value.as_str_or_null().unwrap_or(None) {
        None => Ok(BackOff::default()),
        Some(text) => serde_json::from_str(text).map_err(|_| corrupt("back_off", id)),
    }
}

pub(super) fn encode_labels(labels: &BTreeMap<String, String>) -> Option<String> {
    (!labels.is_empty()).then(|| serde_json::to_string(labels).expect("strings are JSON"))
}

pub(super) fn encode_duration(duration: Option<Duration>) -> Option<i64> {
    duration.map(|duration| i64::try_from(duration.as_millis()).expect("bounded by the limits"))
}

pub(super) fn decode_duration(millis: Option<i64>) -> Option<Duration> {
    millis.map(|millis| Duration::from_millis(millis.unsigned_abs()))
}

fn corrupt(column: &'static str, id: &[u8; 16]) -> Fault {
    Fault::Corrupt { table: "task", column, id: TaskId::from_bytes(*id).to_string() }
}
