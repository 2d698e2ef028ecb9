//! The part of a task's row that changes, as it is read under a lock and written back.

use duly_core::back_off::BackOff;
use duly_core::state::{Event, Status, transition};
use duly_core::task::Failure;
use foldhash::HashMap;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::postgres::error::Result;
use crate::postgres::range::{LaneId, Range};
use crate::postgres::verb::Scope;
use crate::postgres::{lease, row};

/// One task, locked by this transaction.
#[derive(Clone, Debug)]
pub(in crate::postgres) struct TaskState {
    pub(in crate::postgres) id: Uuid,
    pub(in crate::postgres) epoch: i32,
    pub(in crate::postgres) session: Option<Uuid>,
    pub(in crate::postgres) sequence: Option<i64>,
    pub(in crate::postgres) status: Status,
    pub(in crate::postgres) lane: LaneId,
    pub(in crate::postgres) rank: i16,
    pub(in crate::postgres) run_at: i64,
    pub(in crate::postgres) granted_at: Option<i64>,
    pub(in crate::postgres) finished_at: Option<i64>,
    pub(in crate::postgres) run: i32,
    pub(in crate::postgres) charged: u32,
    pub(in crate::postgres) retries: u32,
    pub(in crate::postgres) losses: u32,
    pub(in crate::postgres) timeout_ms: Option<i32>,
    /// When the lease is overdue, if that was moved.
    extended_to: Option<i64>,
    /// When the handler started that has just ended, if that is known.
    pub(in crate::postgres) started_at: Option<i64>,
    pub(in crate::postgres) error: Option<String>,
    /// Of a success. A task that is written in another state has none.
    pub(in crate::postgres) result: Option<String>,
    back_off: Option<String>,
    /// What ties it to other tasks; see the migration for its bits.
    pub(in crate::postgres) links: Option<i32>,
    pub(in crate::postgres) workflow: Option<Uuid>,
    /// What has happened to it since it was read.
    pub(super) event: Option<Event>,
    /// As it was read: the condition under which it is written.
    was: (i32, Option<Uuid>, Status),
}

const COLUMNS: &str = "task.id, task.epoch, task.session, task.sequence, task.status, task.lane, \
    task.rank, task.run_at, task.granted_at, task.finished_at, task.run, task.charged, \
    task.retries, task.losses, task.timeout_ms, task.deadline_or_start, task.error, task.back_off, \
    task.links, task.workflow";

impl TaskState {
    /// Locks tasks, in the order of their ids.
    pub(in crate::postgres) async fn lock(
        scope: &Scope<'_>,
        ids: &[Uuid],
    ) -> Result<HashMap<Uuid, Self>> {
        let select = format!(
            "/* task.lock */ SELECT {COLUMNS} FROM duly.task WHERE id = ANY($1)
             ORDER BY id FOR NO KEY UPDATE"
        );
        let rows = scope.query(&select, &[&ids]).await?;
        rows.iter().map(|row| Self::read(row).map(|state| (state.id, state))).collect()
    }

    fn read(row: &Row) -> Result<Self> {
        let id: Uuid = row.try_get(0)?;
        let count = |index, column| row::count("task", column, id, row.try_get(index)?);
        let (epoch, session) = (row.try_get(1)?, row.try_get(2)?);
        let status = row::decode_status(row.try_get(4)?, id)?;
        Ok(Self {
            id,
            epoch,
            session,
            sequence: row.try_get(3)?,
            status,
            lane: row.try_get(5)?,
            rank: row.try_get(6)?,
            run_at: row.try_get(7)?,
            granted_at: row.try_get(8)?,
            finished_at: row.try_get(9)?,
            run: row.try_get(10)?,
            charged: count(11, "charged")?,
            retries: count(12, "retries")?,
            losses: count(13, "losses")?,
            timeout_ms: row.try_get(14)?,
            extended_to: row.try_get(15)?,
            started_at: None,
            error: row.try_get(16)?,
            result: None,
            back_off: row.try_get(17)?,
            links: row.try_get(18)?,
            workflow: row.try_get(19)?,
            event: None,
            was: (epoch, session, status),
        })
    }

    pub(in crate::postgres) fn range(&self) -> Range {
        Range { lane: self.lane, rank: self.rank }
    }

    /// When the handler of the last attempt started, for a task whose run has ended.
    pub(in crate::postgres) fn start(&self) -> Option<i64> {
        // A task that ended before starts were kept may still hold its deadline there.
        self.extended_to.filter(|start| Some(*start) <= self.finished_at)
    }

    /// When the lease is overdue.
    pub(in crate::postgres) fn deadline(&self) -> i64 {
        let limit = self.timeout_ms.unwrap_or_else(lease::default_timeout);
        let usual =
            self.granted_at.unwrap_or_default() + i64::from(limit) + i64::from(lease::slack());
        self.extended_to.unwrap_or(usual)
    }

    /// Whether this lease lives.
    pub(in crate::postgres) fn is_held(&self, session: Uuid, epoch: i32) -> bool {
        self.status == Status::Running && self.epoch == epoch && self.session == Some(session)
    }

    /// Whether the handler has ended this lease in its own transaction, and its worker has not
    /// reported the outcome yet.
    pub(in crate::postgres) fn is_unacknowledged(&self, session: Uuid, epoch: i32) -> bool {
        let same = self.epoch == epoch && self.session == Some(session);
        same && self.sequence.is_some_and(|sequence| sequence < 0)
    }

    pub(in crate::postgres) fn policy(&self) -> Result<BackOff> {
        row::decode_back_off(self.back_off.as_deref(), self.id)
    }

    /// The status before the changes of this transaction.
    pub(super) fn status_before(&self) -> Status {
        self.was.2
    }

    /// Applies an event; the caller has checked that it can.
    pub(in crate::postgres) fn transition(&mut self, event: Event, now: i64) {
        self.status = transition(self.status, event).expect("checked under the lock");
        self.event = Some(event);
        if self.status.is_terminal() {
            self.finished_at = Some(now);
        }
    }

    pub(in crate::postgres) fn set_error(&mut self, error: &Failure) {
        self.error = Some(row::encode_failure(error));
    }
}

/// Writes tasks back, each on the condition that it is as it was read.
pub(super) async fn write_rows(scope: &Scope<'_>, states: &[TaskState]) -> Result<()> {
    if states.is_empty() {
        return Ok(());
    }
    // A value is found by its position among the ids, which are sorted: a join would be planned again
    // for every size of every day, and sometimes as a scan.
    let update = "/* task.write */ UPDATE duly.task t
        SET epoch = ($5::integer[])[width_bucket(t.id, $1)], session = ($6::uuid[])[width_bucket(t.id, $1)],
            status = ($7::smallint[])[width_bucket(t.id, $1)], rank = ($8::smallint[])[width_bucket(t.id, $1)],
            run_at = ($9::bigint[])[width_bucket(t.id, $1)], granted_at = ($10::bigint[])[width_bucket(t.id, $1)],
            finished_at = ($11::bigint[])[width_bucket(t.id, $1)], run = ($12::integer[])[width_bucket(t.id, $1)],
            charged = ($13::integer[])[width_bucket(t.id, $1)], losses = ($14::integer[])[width_bucket(t.id, $1)],
            error = ($15::text[])[width_bucket(t.id, $1)], result = ($16::text[])[width_bucket(t.id, $1)],
            deadline_or_start = ($17::bigint[])[width_bucket(t.id, $1)]
        WHERE t.id = ANY($1::uuid[])
          AND t.epoch = ($2::integer[])[width_bucket(t.id, $1)]
          AND t.session IS NOT DISTINCT FROM ($3::uuid[])[width_bucket(t.id, $1)]
          AND t.status = ($4::smallint[])[width_bucket(t.id, $1)]";
    let written = scope
        .execute(
            update,
            &[
                &each(states, |it| it.id),
                &each(states, |it| it.was.0),
                &each(states, |it| it.was.1),
                &each(states, |it| row::encode_status(it.was.2)),
                &each(states, |it| it.epoch),
                &each(states, |it| it.session),
                &each(states, |it| row::encode_status(it.status)),
                &each(states, |it| it.rank),
                &each(states, |it| it.run_at),
                &each(states, |it| it.granted_at),
                &each(states, |it| it.finished_at),
                &each(states, |it| it.run),
                &each(states, |it| row::encode_count(it.charged)),
                &each(states, |it| row::encode_count(it.losses)),
                &each(states, |it| it.error.as_deref()),
                &each(states, |it| it.result.as_deref()),
                &each(states, |it| it.started_at.filter(|_| it.status.is_terminal())),
            ],
        )
        .await?;
    assert_eq!(written, states.len() as u64, "locked rows stay as they were read");
    Ok(())
}

/// One column of many rows.
pub(in crate::postgres) fn each<'a, T, V>(rows: &'a [T], value: impl Fn(&'a T) -> V) -> Vec<V> {
    rows.iter().map(value).collect()
}
