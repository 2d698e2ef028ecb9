//! Schedules: queries, and the port.

use async_trait::async_trait;
use duly_core::id::{ScheduleId, TaskId, WorkflowId};
use duly_core::limits::SCAN_ROWS;
use duly_core::name::{ScheduleName, TenantName};
use duly_core::ports::store::{
    self, Decide, Decided, DeleteSchedule, ListSchedules, PutSchedule, RunStatus, ScheduleChange,
    ScheduleList, Schedules, SlotOutcome, SlotRecord, SwitchSchedule,
};
use duly_core::schedule::{Definition, Schedule, ScheduleStatus, SkipReason, SlotRun};
use duly_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::error::{Fault, Result};
use super::verb::slots::DecideSlots;
use super::{SqliteStore, links, row};
use crate::schedule_rules::check_size;

#[async_trait]
impl Schedules for SqliteStore {
    async fn put_schedule(&self, put: PutSchedule) -> store::Result<ScheduleChange> {
        self.ask(put).await
    }

    async fn switch_schedule(&self, switch: SwitchSchedule) -> store::Result<ScheduleChange> {
        self.ask(switch).await
    }

    async fn delete_schedule(&self, delete: DeleteSchedule) -> store::Result<ScheduleChange> {
        self.ask(delete).await
    }

    async fn schedule(
        &self,
        tenant: &TenantName,
        name: &ScheduleName,
    ) -> store::Result<Option<Schedule>> {
        let (tenant, name) = (tenant.clone(), name.clone());
        self.readers.query(move |connection| find(connection, &tenant, &name)).await
    }

    async fn schedules(&self, page: ListSchedules) -> store::Result<ScheduleList> {
        self.readers.query(move |connection| list(connection, &page)).await
    }

    async fn schedules_changed(&self, above: u64, limit: u32) -> store::Result<Vec<Schedule>> {
        let condition = "s.version > ? ORDER BY s.version LIMIT ?";
        let query = move |connection: &Connection| {
            let mut statement = connection.prepare_cached(&select("changed", condition))?;
            let mut rows = statement.query(params![above, limit])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                found.push(read(row)?);
            }
            Ok(found)
        };
        self.readers.query(query).await
    }

    async fn schedule_versions(
        &self,
        after: Option<ScheduleId>,
        limit: u32,
    ) -> store::Result<Vec<(ScheduleId, u64)>> {
        let after = after.map_or([0; 16], |after| *after.as_bytes());
        let query = move |connection: &Connection| {
            let mut statement = connection.prepare_cached(
                "/* schedule.versions */ SELECT id, version FROM schedule WHERE id > ?
                 ORDER BY id LIMIT ?",
            )?;
            let rows = statement.query_map(params![after, limit], |row| {
                Ok((ScheduleId::from_bytes(row.get(0)?), row.get(1)?))
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        };
        self.readers.query(query).await
    }

    async fn schedules_by_id(&self, ids: Vec<ScheduleId>) -> store::Result<Vec<Schedule>> {
        let query = move |connection: &Connection| {
            let mut statement = connection.prepare_cached(&select("by_id", "s.id = ?"))?;
            let mut found = Vec::with_capacity(ids.len());
            for id in &ids {
                let mut rows = statement.query([id.as_bytes()])?;
                found.extend(rows.next()?.map(read).transpose()?);
            }
            Ok(found)
        };
        self.readers.query(query).await
    }

    async fn decide_slots(&self, decisions: Vec<Decide>) -> store::Result<Vec<Decided>> {
        check_size(&decisions)?;
        self.ask(DecideSlots(decisions)).await
    }

    async fn slot_records(
        &self,
        tenant: &TenantName,
        name: &ScheduleName,
    ) -> store::Result<Option<Vec<SlotRecord>>> {
        let (tenant, name) = (tenant.clone(), name.clone());
        self.readers.query(move |connection| records(connection, &tenant, &name)).await
    }
}

/// A query for schedules.
fn select(name: &str, condition: &str) -> String {
    format!(
        "/* schedule.{name} */ SELECT s.id, s.tenant, s.name, s.status, s.generation, s.version,
                s.managed, s.created_at, s.updated_at, s.labels, s.note, s.rule, s.template,
                p.position
         FROM schedule s JOIN schedule_position p ON p.schedule = s.id WHERE {condition}"
    )
}

fn read(found: &Row<'_>) -> Result<Schedule> {
    let id = ScheduleId::from_bytes(found.get(0)?);
    let damaged = |column| Fault::Corrupt { table: "schedule", column, id: id.to_string() };
    let (tenant, name): (String, String) = (found.get(1)?, found.get(2)?);
    let labels = match found.get::<_, Option<String>>(9)? {
        None => Default::default(),
        Some(text) => serde_json::from_str(&text).map_err(|_| damaged("labels"))?,
    };
    let text = |column| Ok::<_, rusqlite::Error>(found.get::<_, String>(column)?.into());
    Ok(Schedule {
        id,
        tenant: TenantName::new(&tenant).map_err(|_| damaged("tenant"))?,
        name: ScheduleName::new(&name).map_err(|_| damaged("name"))?,
        definition: Definition { rule: text(11)?, template: text(12)? },
        labels,
        status: decode_status(found.get(3)?),
        note: found.get(10)?,
        managed: found.get(6)?,
        generation: found.get(4)?,
        version: found.get(5)?,
        position: Timestamp::clamped(found.get(13)?),
        created_at: Timestamp::clamped(found.get(7)?),
        updated_at: Timestamp::clamped(found.get(8)?),
    })
}

/// A tenant's schedule.
pub(super) fn find(
    connection: &Connection,
    tenant: &TenantName,
    name: &ScheduleName,
) -> Result<Option<Schedule>> {
    let text = select("get", "s.tenant = ? AND s.name = ?");
    let mut statement = connection.prepare_cached(&text)?;
    let mut rows = statement.query(params![tenant.as_str(), name.as_str()])?;
    rows.next()?.map(read).transpose()
}

fn list(connection: &Connection, page: &ListSchedules) -> Result<ScheduleList> {
    let ListSchedules { tenant, status, labels, after, limit } = page;
    let after = after.as_ref().map_or("", ScheduleName::as_str);
    let text = select("list", "s.tenant = ? AND s.name > ? ORDER BY s.name");
    let mut statement = connection.prepare_cached(&text)?;
    let mut rows = statement.query(params![tenant.as_str(), after])?;
    let mut found = ScheduleList::default();
    let (mut looked, mut last) = (0, None);
    while let Some(row) = rows.next()? {
        let schedule = read(row)?;
        let name = schedule.name.clone();
        let fits = status.is_none_or(|status| status == schedule.status)
            && labels.iter().all(|(key, value)| schedule.labels.get(key) == Some(value));
        if looked == SCAN_ROWS || (fits && found.schedules.len() == *limit as usize) {
            found.next_after = last;
            return Ok(found);
        }
        looked += 1;
        if fits {
            found.schedules.push(schedule);
        }
        last = Some(name);
    }
    Ok(found)
}

fn records(
    connection: &Connection,
    tenant: &TenantName,
    name: &ScheduleName,
) -> Result<Option<Vec<SlotRecord>>> {
    // Several statements that read one moment.
    let connection = &*connection.unchecked_transaction()?;
    let Some(schedule) = find(connection, tenant, name)? else { return Ok(None) };
    let mut records = Vec::new();
    for (slot, outcome) in outcomes(connection, schedule.id)? {
        let status = match outcome {
            SlotOutcome::Ran(run) => run_status(connection, run)?,
            SlotOutcome::Skipped(_) => None,
        };
        records.push(SlotRecord { slot, outcome, status });
    }
    Ok(Some(records))
}

/// What became of the slots of a schedule, newest first.
pub(super) fn outcomes(
    connection: &Connection,
    schedule: ScheduleId,
) -> Result<Vec<(Timestamp, SlotOutcome)>> {
    let mut statement = connection.prepare_cached(
        "/* slot.list */ SELECT kind, run, reason, slot FROM slot WHERE schedule = ? ORDER BY slot DESC",
    )?;
    let mut rows = statement.query([schedule.as_bytes()])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push((Timestamp::clamped(row.get(3)?), read_outcome(row, schedule)?));
    }
    Ok(found)
}

/// From the columns `kind`, `run` and `reason`.
pub(super) fn read_outcome(row: &Row<'_>, schedule: ScheduleId) -> Result<SlotOutcome> {
    let damaged = || Fault::Corrupt { table: "slot", column: "kind", id: schedule.to_string() };
    if let Some(run) = decode_run(row.get(0)?, row.get(1)?) {
        return Ok(SlotOutcome::Ran(run));
    }
    let reason: Option<String> = row.get(2)?;
    let known = SkipReason::ALL.into_iter().find(|it| Some(it.as_str()) == reason.as_deref());
    known.map(SlotOutcome::Skipped).ok_or_else(damaged)
}

/// What was started, from its kind and its id.
pub(super) fn decode_run(kind: Option<i64>, run: Option<[u8; 16]>) -> Option<SlotRun> {
    match (kind?, run?) {
        (1, task) => Some(SlotRun::Task(TaskId::from_bytes(task))),
        (2, workflow) => Some(SlotRun::Workflow(WorkflowId::from_bytes(workflow))),
        _ => None,
    }
}

/// The kind and the id of what was started.
pub(super) fn encode_run(run: SlotRun) -> (i64, [u8; 16]) {
    match run {
        SlotRun::Task(task) => (1, *task.as_bytes()),
        SlotRun::Workflow(workflow) => (2, *workflow.as_bytes()),
    }
}

pub(super) const fn encode_status(status: ScheduleStatus) -> i64 {
    match status {
        ScheduleStatus::Active => 0,
        ScheduleStatus::Paused => 1,
    }
}

/// A status that is not known does not fire.
pub(super) const fn decode_status(code: i64) -> ScheduleStatus {
    match code {
        0 => ScheduleStatus::Active,
        _ => ScheduleStatus::Paused,
    }
}

/// How far a run has come, if it is still there.
pub(super) fn run_status(connection: &Connection, run: SlotRun) -> Result<Option<RunStatus>> {
    match run {
        SlotRun::Task(id) => {
            let mut statement = connection
                .prepare_cached("/* slot.task */ SELECT status FROM task WHERE id = ?")?;
            let status = statement.query_row([id.as_bytes()], |row| row.get(0)).optional()?;
            let status = status.map(|code| row::decode_status(code, id.as_bytes())).transpose()?;
            Ok(status.map(RunStatus::Task))
        }
        SlotRun::Workflow(id) => {
            let mut statement = connection
                .prepare_cached("/* slot.workflow */ SELECT status FROM workflow WHERE id = ?")?;
            let status = statement.query_row([id.as_bytes()], |row| row.get(0)).optional()?;
            let status = status.map(|code| links::decode_workflow_status(code, id)).transpose()?;
            Ok(status.map(RunStatus::Workflow))
        }
    }
}
