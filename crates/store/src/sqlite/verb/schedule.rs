//! Schedules: create, replace, pause, resume and delete them.

use duly_core::id::ScheduleId;
use duly_core::limits::SCHEDULES;
use duly_core::ports::store::{
    DeleteSchedule, PutSchedule, ScheduleChange, SlotOutcome, SwitchSchedule,
};
use duly_core::schedule::{Schedule, SlotRun};
use duly_core::state::{Event, Status, transition};
use rusqlite::{OptionalExtension as _, params};

use super::control::find_any;
use super::{Scope, Verb};
use crate::audited::{Audited, Subject};
use crate::schedule_rules::{self as rules, Change, Withdrawn, position_after};
use crate::sqlite::error::Result;
use crate::sqlite::row;
use crate::sqlite::schedules::{encode_status, find, outcomes};
use crate::sqlite::task_state::deleted::deleted;
use crate::sqlite::task_state::ended::cancelled;

impl Verb for PutSchedule {
    type Answer = ScheduleChange;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<ScheduleChange> {
        let before = find(scope.connection, &self.tenant, &self.name)?;
        make(scope, before.clone(), rules::put(before, self.clone(), scope.now))
    }

    fn audited(&self) -> Vec<Subject> {
        Audited::audited(self)
    }
}

impl Verb for SwitchSchedule {
    type Answer = ScheduleChange;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<ScheduleChange> {
        let before = find(scope.connection, &self.tenant, &self.name)?;
        make(scope, before.clone(), rules::switch(before, self, scope.now))
    }

    fn audited(&self) -> Vec<Subject> {
        Audited::audited(self)
    }
}

impl Verb for DeleteSchedule {
    type Answer = ScheduleChange;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<ScheduleChange> {
        let before = find(scope.connection, &self.tenant, &self.name)?;
        make(scope, before.clone(), rules::delete(before, self))
    }

    fn audited(&self) -> Vec<Subject> {
        Audited::audited(self)
    }
}

fn make(scope: &mut Scope<'_>, before: Option<Schedule>, change: Change) -> Result<ScheduleChange> {
    match (change, before) {
        (Change::Answer(answer), _) => Ok(answer),
        (Change::Create(schedule), _) => create(scope, schedule),
        (Change::Update { mut after, withdraws }, before) => {
            if let (true, Some(before)) = (withdraws, before) {
                let withdrawn = withdraw(scope, after.id)?;
                after.position = position_after(&before, &after, withdrawn, scope.now);
            }
            after.version = next_version(scope, 0)?;
            update(scope, &after)?;
            Ok(ScheduleChange::Done { schedule: Box::new(after), created: false })
        }
        (Change::Delete(schedule), _) => {
            withdraw(scope, schedule.id)?;
            remove(scope, schedule.id)?;
            next_version(scope, -1)?;
            Ok(ScheduleChange::Done { schedule: Box::new(schedule), created: false })
        }
    }
}

fn create(scope: &Scope<'_>, mut schedule: Schedule) -> Result<ScheduleChange> {
    if count(scope)? >= SCHEDULES {
        return Ok(ScheduleChange::TooMany);
    }
    schedule.version = next_version(scope, 1)?;
    scope
        .connection
        .prepare_cached(
            "/* schedule.insert */ INSERT INTO schedule (id, tenant, name, status, generation, version,
                    managed, created_at, updated_at, labels, note, rule, template)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![
            schedule.id.as_bytes(),
            schedule.tenant.as_str(),
            schedule.name.as_str(),
            encode_status(schedule.status),
            schedule.generation,
            schedule.version,
            schedule.managed,
            schedule.created_at.millis(),
            schedule.updated_at.millis(),
            row::encode_labels(&schedule.labels),
            schedule.note,
            &*schedule.definition.rule,
            &*schedule.definition.template,
        ])?;
    scope
        .connection
        .prepare_cached(
            "/* schedule.begin */ INSERT INTO schedule_position (schedule, position) VALUES (?, ?)",
        )?
        .execute(params![schedule.id.as_bytes(), schedule.position.millis()])?;
    Ok(ScheduleChange::Done { schedule: Box::new(schedule), created: true })
}

fn update(scope: &Scope<'_>, after: &Schedule) -> Result<()> {
    scope
        .connection
        .prepare_cached(
            "/* schedule.update */ UPDATE schedule SET status = ?2, generation = ?3, version = ?4,
                    updated_at = ?5, labels = ?6, note = ?7, rule = ?8, template = ?9 WHERE id = ?1",
        )?
        .execute(params![
            after.id.as_bytes(),
            encode_status(after.status),
            after.generation,
            after.version,
            after.updated_at.millis(),
            row::encode_labels(&after.labels),
            after.note,
            &*after.definition.rule,
            &*after.definition.template,
        ])?;
    scope
        .connection
        .prepare_cached(
            "/* schedule.place */ UPDATE schedule_position SET position = ?2 WHERE schedule = ?1",
        )?
        .execute(params![after.id.as_bytes(), after.position.millis()])?;
    Ok(())
}

fn remove(scope: &Scope<'_>, id: ScheduleId) -> Result<()> {
    for statement in [
        "/* schedule.delete */ DELETE FROM schedule WHERE id = ?",
        "/* schedule.delete_position */ DELETE FROM schedule_position WHERE schedule = ?",
        "/* schedule.delete_slots */ DELETE FROM slot WHERE schedule = ?",
    ] {
        scope.connection.prepare_cached(statement)?.execute([id.as_bytes()])?;
    }
    Ok(())
}

/// Deletes what slots have started that was never granted, the newest first: one may wait for another.
fn withdraw(scope: &mut Scope<'_>, schedule: ScheduleId) -> Result<Withdrawn> {
    let mut withdrawn = Withdrawn::default();
    for (slot, outcome) in outcomes(scope.connection, schedule)? {
        let SlotOutcome::Ran(run) = outcome else { continue };
        let waits = match run {
            SlotRun::Workflow(_) => None,
            SlotRun::Task(task) => find_any(scope, task)?.filter(|found| {
                found.epoch == 0 && matches!(found.status, Status::Pending | Status::Blocked)
            }),
        };
        let Some(found) = waits else {
            withdrawn.granted = withdrawn.granted.max(Some(slot));
            continue;
        };
        withdrawn.first = Some(slot);
        let status = transition(found.status, Event::Cancel).expect("it has not ended");
        cancelled(scope, &found, status, &row::encode_failure(&rules::withdrawn()))?;
        // One that a client's task waits for stays, as cancelled.
        deleted(scope, found.task, status, None)?;
        scope
            .connection
            .prepare_cached("/* slot.withdraw */ DELETE FROM slot WHERE schedule = ? AND slot = ?")?
            .execute(params![schedule.as_bytes(), slot.millis()])?;
    }
    Ok(withdrawn)
}

fn count(scope: &Scope<'_>) -> Result<u32> {
    let mut statement = scope
        .connection
        .prepare_cached("/* schedule.count */ SELECT schedules FROM schedule_version")?;
    Ok(statement.query_row([], |row| row.get(0)).optional()?.unwrap_or(0))
}

/// The version of a change after which there are so many more schedules.
fn next_version(scope: &Scope<'_>, more: i64) -> Result<u64> {
    let mut statement = scope.connection.prepare_cached(
        "/* schedule.next_version */ INSERT INTO schedule_version (id, version, schedules)
         VALUES (1, 1, ?1)
         ON CONFLICT (id) DO UPDATE SET version = version + 1, schedules = schedules + ?1
         RETURNING version",
    )?;
    Ok(statement.query_row([more], |row| row.get(0))?)
}
