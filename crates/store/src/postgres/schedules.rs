//! Schedules on PostgreSQL: queries, and the port.

use async_trait::async_trait;
use duly_core::id::ScheduleId;
use duly_core::limits::SCAN_ROWS;
use duly_core::name::{ScheduleName, TenantName};
use duly_core::ports::store::{
    Decide, Decided, DeleteSchedule, ListSchedules, PutSchedule, Result, RunStatus, ScheduleChange,
    ScheduleList, Schedules, SlotOutcome, SlotRecord, SwitchSchedule,
};
use duly_core::schedule::{Definition, Schedule, ScheduleStatus, SkipReason, SlotRun};
use foldhash::HashMap;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::error::{self, Fault};
use super::snapshot::Snapshot;
use super::{PostgresStore, days, row, workflows};
use crate::schedule_rules::check_size;

#[async_trait]
impl Schedules for PostgresStore {
    async fn put_schedule(&self, put: PutSchedule) -> Result<ScheduleChange> {
        Ok(self.run(&put).await?)
    }

    async fn switch_schedule(&self, switch: SwitchSchedule) -> Result<ScheduleChange> {
        Ok(self.run(&switch).await?)
    }

    async fn delete_schedule(&self, delete: DeleteSchedule) -> Result<ScheduleChange> {
        Ok(self.run(&delete).await?)
    }

    async fn schedule(&self, tenant: &TenantName, name: &ScheduleName) -> Result<Option<Schedule>> {
        let select = select("get", NAMED);
        let mut client = self.pool.get().await?;
        let snapshot = self.pool.snapshot(&mut client, tenant).await?;
        let found = snapshot.query_opt(&select, &[&tenant.as_str(), &name.as_str()]).await?;
        Ok(found.as_ref().map(decode).transpose()?)
    }

    async fn schedules(&self, page: ListSchedules) -> Result<ScheduleList> {
        let mut client = self.pool.get().await?;
        let snapshot = self.pool.snapshot(&mut client, &page.tenant).await?;
        Ok(list(&snapshot, &page).await?)
    }

    async fn schedules_changed(&self, above: u64, limit: u32) -> Result<Vec<Schedule>> {
        let above = i64::try_from(above).unwrap_or(i64::MAX);
        let select = select("changed", "s.version > $1 ORDER BY s.version LIMIT $2");
        self.decode_all(&select, &[&above, &i64::from(limit.min(TEMPLATES))]).await
    }

    async fn schedule_versions(
        &self,
        after: Option<ScheduleId>,
        limit: u32,
    ) -> Result<Vec<(ScheduleId, u64)>> {
        let after = after.map_or(Uuid::nil(), uuid);
        let select = "/* schedule.versions */ SELECT id, version FROM duly.schedule WHERE id > $1
            ORDER BY id LIMIT $2";
        let mut versions = Vec::new();
        for found in self.pool.query(select, &[&after, &i64::from(limit)]).await? {
            let version: i64 = found.try_get(1).map_err(Fault::from)?;
            let id = schedule_id(found.try_get(0).map_err(Fault::from)?);
            versions.push((id, version.unsigned_abs()));
        }
        Ok(versions)
    }

    async fn schedules_by_id(&self, ids: Vec<ScheduleId>) -> Result<Vec<Schedule>> {
        let ids: Vec<_> = ids.into_iter().map(uuid).collect();
        self.decode_all(&select("by_id", "s.id = ANY($1)"), &[&ids]).await
    }

    async fn decide_slots(&self, decisions: Vec<Decide>) -> Result<Vec<Decided>> {
        check_size(&decisions)?;
        Ok(self.decide(&decisions).await?)
    }

    async fn slot_records(
        &self,
        tenant: &TenantName,
        name: &ScheduleName,
    ) -> Result<Option<Vec<SlotRecord>>> {
        let mut client = self.pool.get().await?;
        let snapshot = self.pool.snapshot(&mut client, tenant).await?;
        Ok(records(&snapshot, tenant, name).await?)
    }
}

impl PostgresStore {
    /// Schedules, of which a damaged one does not hide the others.
    async fn decode_all(
        &self,
        select: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Schedule>> {
        let mut schedules = Vec::new();
        for found in self.pool.query(select, parameters).await? {
            match decode(&found) {
                Ok(schedule) => schedules.push(schedule),
                Err(fault @ Fault::Corrupt { .. }) => {
                    tracing::error!(%fault, "a schedule cannot be read");
                }
                Err(fault) => return Err(fault.into()),
            }
        }
        Ok(schedules)
    }
}

/// The condition for a tenant's schedule of a name.
pub(super) const NAMED: &str = "s.tenant = $1 AND s.name = $2";

/// A query for schedules, for [`decode`].
pub(super) fn select(name: &str, condition: &str) -> String {
    format!(
        "/* schedule.{name} */ SELECT s.id, s.tenant, s.name, s.status, s.generation, s.version,
                s.managed, s.created_at, s.updated_at, s.labels, s.note, s.rule, s.template,
                p.position
         FROM duly.schedule s JOIN duly.schedule_position p ON p.schedule = s.id WHERE {condition}"
    )
}

pub(super) fn decode(found: &Row) -> error::Result<Schedule> {
    let id: Uuid = found.try_get(0)?;
    let damaged = |column| row::corrupt("schedule", column, id);
    let text = |column| Ok::<_, Fault>(found.try_get::<_, &str>(column)?.into());
    Ok(Schedule {
        id: schedule_id(id),
        tenant: TenantName::new(found.try_get(1)?).map_err(|_| damaged("tenant"))?,
        name: ScheduleName::new(found.try_get(2)?).map_err(|_| damaged("name"))?,
        definition: Definition { rule: text(11)?, template: text(12)? },
        labels: row::decode_labels(found.try_get(9)?, id).map_err(|_| damaged("labels"))?,
        status: decode_status(found.try_get(3)?),
        note: found.try_get(10)?,
        managed: found.try_get(6)?,
        generation: found.try_get::<_, i32>(4)?.unsigned_abs(),
        version: found.try_get::<_, i64>(5)?.unsigned_abs(),
        position: row::instant(found.try_get(13)?),
        created_at: row::instant(found.try_get(7)?),
        updated_at: row::instant(found.try_get(8)?),
    })
}

/// Schedules that come with their templates in one answer, which may be large.
const TEMPLATES: u32 = 200;
/// Rows that are asked for at once.
const PORTION: u32 = 1_000;

async fn list(snapshot: &Snapshot<'_>, page: &ListSchedules) -> error::Result<ScheduleList> {
    let ListSchedules { tenant, status, labels, after, limit } = page;
    let select = select("list", "s.tenant = $1 AND s.name > $2 ORDER BY s.name LIMIT $3");
    let mut found = ScheduleList::default();
    let mut last = after.clone();
    let mut looked = 0;
    while looked < SCAN_ROWS {
        let from = last.as_ref().map_or("", ScheduleName::as_str);
        let portion = i64::from(PORTION);
        let rows = snapshot.query(&select, &[&tenant.as_str(), &from, &portion]).await?;
        let is_last = rows.len() < PORTION as usize;
        for row in rows {
            let schedule = decode(&row)?;
            let name = schedule.name.clone();
            let fits = status.is_none_or(|status| status == schedule.status)
                && labels.iter().all(|(key, value)| schedule.labels.get(key) == Some(value));
            if fits && found.schedules.len() == *limit as usize {
                found.next_after = last;
                return Ok(found);
            }
            if fits {
                found.schedules.push(schedule);
            }
            last = Some(name);
            looked += 1;
        }
        if is_last {
            return Ok(found);
        }
    }
    found.next_after = last;
    Ok(found)
}

async fn records(
    snapshot: &Snapshot<'_>,
    tenant: &TenantName,
    name: &ScheduleName,
) -> error::Result<Option<Vec<SlotRecord>>> {
    let find = "/* slot.schedule */ SELECT id FROM duly.schedule WHERE tenant = $1 AND name = $2";
    let Some(found) = snapshot.query_opt(find, &[&tenant.as_str(), &name.as_str()]).await? else {
        return Ok(None);
    };
    let schedule: Uuid = found.try_get(0)?;
    let select = "/* slot.list */ SELECT slot, kind, run, reason FROM duly.slot WHERE schedule = $1
        ORDER BY slot DESC";
    let mut records = Vec::new();
    for found in snapshot.query(select, &[&schedule]).await? {
        let outcome = decode_outcome(&found, 1, schedule)?;
        let slot = row::instant(found.try_get(0)?);
        records.push(SlotRecord { slot, outcome, status: None });
    }
    let runs = records.iter().filter_map(|record| match record.outcome {
        SlotOutcome::Ran(run) => Some(run),
        SlotOutcome::Skipped(_) => None,
    });
    let statuses = statuses(snapshot, &runs.collect::<Vec<_>>()).await?;
    for record in &mut records {
        if let SlotOutcome::Ran(run) = record.outcome {
            record.status = statuses.get(&run).copied();
        }
    }
    Ok(Some(records))
}

async fn statuses(
    snapshot: &Snapshot<'_>,
    runs: &[SlotRun],
) -> error::Result<HashMap<SlotRun, RunStatus>> {
    let mut statuses = HashMap::default();
    let select = "/* slot.tasks */ SELECT id, status FROM duly.task WHERE id = ANY($1)";
    for part in days::apart(runs.iter().filter_map(task_of)) {
        for found in snapshot.query(select, &[&part]).await? {
            let id: Uuid = found.try_get(0)?;
            let status = row::decode_status(found.try_get(1)?, id)?;
            statuses.insert(SlotRun::Task(row::task_id(id)), RunStatus::Task(status));
        }
    }
    let ids: Vec<_> = runs.iter().filter_map(workflow_of).collect();
    if !ids.is_empty() {
        let select = "/* slot.workflows */ SELECT id, status FROM duly.workflow WHERE id = ANY($1)";
        for found in snapshot.query(select, &[&ids]).await? {
            let id: Uuid = found.try_get(0)?;
            let status = workflows::decode_status(found.try_get(1)?, id)?;
            let run = SlotRun::Workflow(row::workflow_id(id));
            statuses.insert(run, RunStatus::Workflow(status));
        }
    }
    Ok(statuses)
}

/// The task that was started, if it is one.
pub(super) fn task_of(run: &SlotRun) -> Option<Uuid> {
    match run {
        SlotRun::Task(task) => Some(row::uuid(*task)),
        SlotRun::Workflow(_) => None,
    }
}

/// The workflow that was started, if it is one.
pub(super) fn workflow_of(run: &SlotRun) -> Option<Uuid> {
    match run {
        SlotRun::Task(_) => None,
        SlotRun::Workflow(workflow) => Some(row::workflow_uuid(*workflow)),
    }
}

/// From the columns `kind`, `run` and `reason`, of which `kind` is this one.
pub(super) fn decode_outcome(
    found: &Row,
    kind: usize,
    schedule: Uuid,
) -> error::Result<SlotOutcome> {
    let run = decode_run(Some(found.try_get(kind)?), found.try_get(kind + 1)?);
    if let Some(run) = run {
        return Ok(SlotOutcome::Ran(run));
    }
    let reason: Option<&str> = found.try_get(kind + 2)?;
    let known = SkipReason::ALL.into_iter().find(|it| Some(it.as_str()) == reason);
    known.map(SlotOutcome::Skipped).ok_or_else(|| row::corrupt("slot", "reason", schedule))
}

/// What was started, from its kind and its id.
pub(super) fn decode_run(kind: Option<i16>, run: Option<Uuid>) -> Option<SlotRun> {
    match (kind?, run?) {
        (1, task) => Some(SlotRun::Task(row::task_id(task))),
        (2, workflow) => Some(SlotRun::Workflow(row::workflow_id(workflow))),
        _ => None,
    }
}

/// The kind and the id of what was started.
pub(super) fn encode_run(run: SlotRun) -> (i16, Uuid) {
    match run {
        SlotRun::Task(task) => (1, row::uuid(task)),
        SlotRun::Workflow(workflow) => (2, row::workflow_uuid(workflow)),
    }
}

pub(super) const fn encode_status(status: ScheduleStatus) -> i16 {
    match status {
        ScheduleStatus::Active => 0,
        ScheduleStatus::Paused => 1,
    }
}

/// A status that is not known does not fire.
pub(super) const fn decode_status(code: i16) -> ScheduleStatus {
    match code {
        0 => ScheduleStatus::Active,
        _ => ScheduleStatus::Paused,
    }
}

pub(super) fn uuid(id: ScheduleId) -> Uuid {
    Uuid::from_bytes(*id.as_bytes())
}

fn schedule_id(id: Uuid) -> ScheduleId {
    ScheduleId::from_bytes(*id.as_bytes())
}
