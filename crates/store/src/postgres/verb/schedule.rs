//! Schedules: create, replace, pause, resume and delete them. One change at a time, so that versions are
//! committed in order; readers and the decisions of slots do not wait for that.

use duly_core::limits::SCHEDULES;
use duly_core::name::{ScheduleName, TenantName};
use duly_core::ports::store::{
    DeleteSchedule, PutSchedule, ScheduleChange, SlotOutcome, SwitchSchedule,
};
use duly_core::schedule::{Schedule, SlotRun};
use duly_core::state::Status;
use duly_core::time::Timestamp;
use foldhash::HashSet;
use uuid::Uuid;

use super::cancel::cancel;
use super::{Scope, Verb};
use crate::audited::{Audited, Subject};
use crate::postgres::error::Result;
use crate::postgres::row;
use crate::postgres::schedules::{NAMED, decode, decode_outcome, encode_status, select, uuid};
use crate::postgres::task_state::changes::Changes;
use crate::postgres::task_state::deleted::{delete_tasks, with_open_children};
use crate::postgres::task_state::state::TaskState;
use crate::schedule_rules::{self as rules, Change, Withdrawn, position_after};

impl Verb for PutSchedule {
    type Answer = ScheduleChange;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<ScheduleChange> {
        let before = hold(scope, &self.tenant, &self.name).await?;
        make(scope, before.clone(), rules::put(before, self.clone(), scope.now)).await
    }

    fn audited(&self) -> Vec<Subject> {
        Audited::audited(self)
    }
}

impl Verb for SwitchSchedule {
    type Answer = ScheduleChange;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<ScheduleChange> {
        let before = hold(scope, &self.tenant, &self.name).await?;
        make(scope, before.clone(), rules::switch(before, self, scope.now)).await
    }

    fn audited(&self) -> Vec<Subject> {
        Audited::audited(self)
    }
}

impl Verb for DeleteSchedule {
    type Answer = ScheduleChange;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<ScheduleChange> {
        let before = hold(scope, &self.tenant, &self.name).await?;
        make(scope, before.clone(), rules::delete(before, self)).await
    }

    fn audited(&self) -> Vec<Subject> {
        Audited::audited(self)
    }
}

/// A tenant's schedule. No slot of it is decided from now on, and no schedule is changed.
async fn hold(
    scope: &Scope<'_>,
    tenant: &TenantName,
    name: &ScheduleName,
) -> Result<Option<Schedule>> {
    let lock = "/* schedule.lock */ LOCK TABLE duly.schedule IN SHARE ROW EXCLUSIVE MODE";
    scope.execute(lock, &[]).await?;
    let hold = format!("{} FOR UPDATE OF p", select("hold", NAMED));
    let found = scope.query(&hold, &[&tenant.as_str(), &name.as_str()]).await?;
    found.first().map(decode).transpose()
}

async fn make(
    scope: &mut Scope<'_>,
    before: Option<Schedule>,
    change: Change,
) -> Result<ScheduleChange> {
    match (change, before) {
        (Change::Answer(answer), _) => Ok(answer),
        (Change::Create(schedule), _) => create(scope, schedule).await,
        (Change::Update { mut after, withdraws }, before) => {
            if let (true, Some(before)) = (withdraws, before) {
                let withdrawn = withdraw(scope, uuid(after.id)).await?;
                after.position = position_after(&before, &after, withdrawn, scope.now);
            }
            after.version = next_version(scope, 0).await?;
            update(scope, &after).await?;
            Ok(ScheduleChange::Done { schedule: Box::new(after), created: false })
        }
        (Change::Delete(schedule), _) => {
            let id = uuid(schedule.id);
            withdraw(scope, id).await?;
            for statement in [
                "/* schedule.delete_slots */ DELETE FROM duly.slot WHERE schedule = $1",
                "/* schedule.delete_position */ DELETE FROM duly.schedule_position WHERE schedule = $1",
                "/* schedule.delete */ DELETE FROM duly.schedule WHERE id = $1",
            ] {
                scope.execute(statement, &[&id]).await?;
            }
            next_version(scope, -1).await?;
            Ok(ScheduleChange::Done { schedule: Box::new(schedule), created: false })
        }
    }
}

async fn create(scope: &Scope<'_>, mut schedule: Schedule) -> Result<ScheduleChange> {
    let count = "/* schedule.count */ SELECT schedules FROM duly.schedule_version";
    let rows = scope.query(count, &[]).await?;
    let count: i32 = rows.first().map(|row| row.try_get(0)).transpose()?.unwrap_or_default();
    if count.unsigned_abs() >= SCHEDULES {
        return Ok(ScheduleChange::TooMany);
    }
    schedule.version = next_version(scope, 1).await?;
    let insert =
        "/* schedule.insert */ INSERT INTO duly.schedule (id, tenant, name, status, generation,
            version, managed, created_at, updated_at, labels, note, rule, template)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";
    scope
        .execute(
            insert,
            &[
                &uuid(schedule.id),
                &schedule.tenant.as_str(),
                &schedule.name.as_str(),
                &encode_status(schedule.status),
                &row::encode_count(schedule.generation),
                &schedule.version.cast_signed(),
                &schedule.managed,
                &schedule.created_at.millis(),
                &schedule.updated_at.millis(),
                &row::encode_labels(&schedule.labels),
                &schedule.note,
                &&*schedule.definition.rule,
                &&*schedule.definition.template,
            ],
        )
        .await?;
    let insert = "/* schedule.begin */ INSERT INTO duly.schedule_position (schedule, position)
        VALUES ($1, $2)";
    scope.execute(insert, &[&uuid(schedule.id), &schedule.position.millis()]).await?;
    Ok(ScheduleChange::Done { schedule: Box::new(schedule), created: true })
}

async fn update(scope: &Scope<'_>, after: &Schedule) -> Result<()> {
    let update = "/* schedule.update */ UPDATE duly.schedule SET status = $2, generation = $3,
            version = $4, updated_at = $5, labels = $6, note = $7, rule = $8, template = $9
        WHERE id = $1";
    scope
        .execute(
            update,
            &[
                &uuid(after.id),
                &encode_status(after.status),
                &row::encode_count(after.generation),
                &after.version.cast_signed(),
                &after.updated_at.millis(),
                &row::encode_labels(&after.labels),
                &after.note,
                &&*after.definition.rule,
                &&*after.definition.template,
            ],
        )
        .await?;
    let update = "/* schedule.place */ UPDATE duly.schedule_position SET position = $2
        WHERE schedule = $1";
    scope.execute(update, &[&uuid(after.id), &after.position.millis()]).await?;
    Ok(())
}

/// Deletes what slots have started that was never granted.
async fn withdraw(scope: &mut Scope<'_>, schedule: Uuid) -> Result<Withdrawn> {
    let runs = runs(scope, schedule).await?;
    let tasks: Vec<_> = runs.iter().filter_map(|(_, task)| *task).collect();
    let mut states = match tasks.is_empty() {
        true => Default::default(),
        false => TaskState::lock(scope, &tasks).await?,
    };
    let is_new = |status| matches!(status, Status::Pending | Status::Blocked);
    states.retain(|_, state| state.epoch == 0 && is_new(state.status));
    let (mut withdrawn, mut slots) = (Withdrawn::default(), Vec::new());
    for (slot, task) in &runs {
        if task.is_some_and(|task| states.contains_key(&task)) {
            withdrawn.first = withdrawn.first.into_iter().chain([*slot]).min();
            slots.push(slot.millis());
        } else {
            withdrawn.granted = withdrawn.granted.max(Some(*slot));
        }
    }
    if slots.is_empty() {
        return Ok(withdrawn);
    }
    let (now, mut changes) = (scope.now.millis(), Changes::default());
    let mut gone: Vec<_> = states.keys().copied().collect();
    gone.sort_unstable();
    for id in &gone {
        let state = states.get_mut(id).expect("its own key");
        cancel(state, &rules::withdrawn(), now, &mut changes);
    }
    changes.write(scope).await?;
    delete_unneeded(scope, gone).await?;
    let delete = "/* slot.withdraw */ DELETE FROM duly.slot WHERE schedule = $1 AND slot = ANY($2)";
    scope.execute(delete, &[&schedule, &slots]).await?;
    Ok(withdrawn)
}

/// The slots of a schedule that have started something, and what, if it is a task.
async fn runs(scope: &Scope<'_>, schedule: Uuid) -> Result<Vec<(Timestamp, Option<Uuid>)>> {
    let select =
        "/* slot.runs */ SELECT slot, kind, run, reason FROM duly.slot WHERE schedule = $1";
    let mut runs = Vec::new();
    for found in scope.query(select, &[&schedule]).await? {
        let slot = row::instant(found.try_get(0)?);
        match decode_outcome(&found, 1, schedule)? {
            SlotOutcome::Ran(SlotRun::Task(task)) => runs.push((slot, Some(row::uuid(task)))),
            SlotOutcome::Ran(SlotRun::Workflow(_)) => runs.push((slot, None)),
            SlotOutcome::Skipped(_) => {}
        }
    }
    Ok(runs)
}

/// Deletes tasks that were just cancelled. One that a client's task waits for stays.
async fn delete_unneeded(scope: &mut Scope<'_>, tasks: Vec<Uuid>) -> Result<()> {
    let needed: HashSet<Uuid> = with_open_children(scope, tasks.clone()).await?;
    let doomed: Vec<_> = tasks.into_iter().filter(|task| !needed.contains(task)).collect();
    delete_tasks(scope, &doomed).await?;
    Ok(())
}

/// The version of a change after which there are so many more schedules.
async fn next_version(scope: &Scope<'_>, more: i32) -> Result<u64> {
    let raise = "/* schedule.next_version */ INSERT INTO duly.schedule_version AS v
            (id, version, schedules)
        VALUES (1, 1, $1) ON CONFLICT (id) DO UPDATE
        SET version = v.version + 1, schedules = v.schedules + $1 RETURNING version";
    let rows = scope.query(raise, &[&more]).await?;
    let version: i64 = rows.first().expect("the row is made or changed").try_get(0)?;
    Ok(version.unsigned_abs())
}
