//! Slots: decide them, each once.

use duly_core::event::EventKind;
use duly_core::id::ScheduleId;
use duly_core::limits::SLOT_LOG;
use duly_core::name::{Lane, ScheduleName, TenantName};
use duly_core::ports::store::{Decide, Decided, SlotOrder, SlotOutcome};
use duly_core::schedule::{ScheduleStatus, SkipReason, SlotRun};
use duly_core::task::NewTask;
use duly_core::time::Timestamp;
use foldhash::HashSet;
use rusqlite::{OptionalExtension as _, params};

use super::cascade::{CancelledTask, cancel_open};
use super::workflow::{cancel_workflow, store_workflow, stored_at};
use super::{Scope, Verb};
use crate::audited::{Audited, Subject};
use crate::schedule_rules::{Start, replaced, start, waiting_for};
use crate::sqlite::error::Result;
use crate::sqlite::schedules::{decode_run, decode_status, encode_run, read_outcome, run_status};
use crate::sqlite::task_state::stored::{Stored, stored_linked};

/// Slots of several schedules.
pub(in crate::sqlite) struct DecideSlots(pub(in crate::sqlite) Vec<Decide>);

impl Verb for DecideSlots {
    type Answer = Vec<Decided>;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<Vec<Decided>> {
        self.0.iter().map(|decide| one(scope, decide)).collect()
    }

    fn audited(&self) -> Vec<Subject> {
        Audited::audited(self.0.as_slice())
    }
}

/// Where a schedule is.
struct Place {
    generation: u32,
    status: ScheduleStatus,
    position: Timestamp,
    last: Option<SlotRun>,
}

fn one(scope: &mut Scope<'_>, decide: &Decide) -> Result<Decided> {
    let Some(mut place) = place(scope, decide.schedule)? else { return Ok(Decided::Stale) };
    if place.generation != decide.generation {
        return Ok(Decided::Stale);
    }
    if let Some((from, to)) = decide.moves
        && (place.status != ScheduleStatus::Active || place.position != from)
    {
        return repeated(scope, decide, place.position == to);
    }
    let (mut slots, mut cancelled) = (Vec::with_capacity(decide.slots.len()), Vec::new());
    for (slot, order) in &decide.slots {
        let outcome = match recorded(scope, decide.schedule, *slot)? {
            Some(outcome) => outcome,
            None => {
                let outcome = decide_slot(scope, decide, &mut place, order, &mut cancelled)?;
                record(scope, decide.schedule, *slot, outcome)?;
                tell(scope, decide.schedule, *slot, outcome)?;
                outcome
            }
        };
        slots.push(outcome);
    }
    place.position = decide.moves.map_or(place.position, |(_, to)| to);
    move_to(scope, decide.schedule, &place)?;
    forget_old(scope, decide.schedule)?;
    Ok(Decided::Done { slots, cancelled })
}

fn place(scope: &Scope<'_>, schedule: ScheduleId) -> Result<Option<Place>> {
    let mut statement = scope.connection.prepare_cached(
        "/* slot.place */ SELECT s.generation, s.status, p.position, p.last_kind, p.last
         FROM schedule s JOIN schedule_position p ON p.schedule = s.id WHERE s.id = ?",
    )?;
    let place = statement.query_row([schedule.as_bytes()], |row| {
        Ok(Place {
            generation: row.get(0)?,
            status: decode_status(row.get(1)?),
            position: Timestamp::clamped(row.get(2)?),
            last: decode_run(row.get(3)?, row.get(4)?),
        })
    });
    Ok(place.optional()?)
}

/// The answer of an earlier call with the same slots, if that call has moved the position.
fn repeated(scope: &Scope<'_>, decide: &Decide, has_moved: bool) -> Result<Decided> {
    if !has_moved {
        return Ok(Decided::Stale);
    }
    let mut slots = Vec::with_capacity(decide.slots.len());
    for (slot, _) in &decide.slots {
        match recorded(scope, decide.schedule, *slot)? {
            Some(outcome) => slots.push(outcome),
            None => return Ok(Decided::Stale),
        }
    }
    Ok(Decided::Done { slots, cancelled: Vec::new() })
}

fn decide_slot(
    scope: &mut Scope<'_>,
    decide: &Decide,
    place: &mut Place,
    order: &SlotOrder,
    cancelled: &mut Vec<CancelledTask>,
) -> Result<SlotOutcome> {
    if let SlotOrder::Skip(reason) = order {
        return Ok(SlotOutcome::Skipped(*reason));
    }
    if !has_room_for(scope, order) {
        return Ok(SlotOutcome::Skipped(SkipReason::Refused));
    }
    let last = match place.last {
        Some(run) => run_status(scope.connection, run)?.map(|status| (run, status)),
        None => None,
    };
    let start = start(decide.overlap, last, order);
    match start {
        Start::Skip(reason) => return Ok(SlotOutcome::Skipped(reason)),
        Start::InsteadOf(run) => cancelled.extend(replace(scope, run)?),
        Start::AtOnce | Start::After(_) => {}
    }
    #[cfg(feature = "planted-bugs")]
    let order = &crate::sqlite::planted::same_id(scope, decide.schedule, order);
    let run = match (order, start) {
        (SlotOrder::Task(task), Start::After(parent)) => {
            store_task(scope, &waiting_for(task, parent))?
        }
        (SlotOrder::Task(task), _) => store_task(scope, task)?,
        (SlotOrder::Workflow(new), _) => {
            if stored_at(scope, new.id)?.is_none() {
                store_workflow(scope, new)?;
            }
            SlotRun::Workflow(new.id)
        }
        (SlotOrder::Skip(reason), _) => return Ok(SlotOutcome::Skipped(*reason)),
    };
    place.last = Some(run);
    Ok(SlotOutcome::Ran(run))
}

fn has_room_for(scope: &Scope<'_>, order: &SlotOrder) -> bool {
    let lanes: HashSet<&Lane> = match order {
        SlotOrder::Task(task) => std::iter::once(&task.lane).collect(),
        SlotOrder::Workflow(new) => new.tasks.iter().map(|task| &task.lane).collect(),
        SlotOrder::Skip(_) => return true,
    };
    let unknown = lanes.into_iter().filter(|lane| !scope.index.has_lane(lane)).count();
    scope.index.has_room_for_lanes(unknown)
}

fn store_task(scope: &mut Scope<'_>, task: &NewTask) -> Result<SlotRun> {
    let lane = scope.index.lane(scope.connection, &task.lane)?.expect("there is room");
    if task.links.is_some() {
        stored_linked(scope, task, lane)?;
    } else {
        Stored::prepare(scope.connection)?.apply(scope, task, lane, None)?;
    }
    Ok(SlotRun::Task(task.id))
}

/// Cancels a run for a later one.
fn replace(scope: &mut Scope<'_>, run: SlotRun) -> Result<Vec<CancelledTask>> {
    let task = match run {
        SlotRun::Task(task) => task,
        SlotRun::Workflow(id) => {
            cancel_workflow(scope, id, &replaced().message)?;
            return Ok(Vec::new());
        }
    };
    Ok(cancel_open(scope, task, &replaced())?.into_iter().collect())
}

fn recorded(
    scope: &Scope<'_>,
    schedule: ScheduleId,
    slot: Timestamp,
) -> Result<Option<SlotOutcome>> {
    let mut statement = scope.connection.prepare_cached(
        "/* slot.recorded */ SELECT kind, run, reason FROM slot WHERE schedule = ? AND slot = ?",
    )?;
    let mut rows = statement.query(params![schedule.as_bytes(), slot.millis()])?;
    rows.next()?.map(|row| read_outcome(row, schedule)).transpose()
}

fn record(
    scope: &Scope<'_>,
    schedule: ScheduleId,
    slot: Timestamp,
    outcome: SlotOutcome,
) -> Result<()> {
    let (kind, run, reason) = match outcome {
        SlotOutcome::Ran(run) => {
            let (kind, run) = encode_run(run);
            (kind, Some(run), None)
        }
        SlotOutcome::Skipped(reason) => (0, None, Some(reason.as_str())),
    };
    scope
        .connection
        .prepare_cached(
            "/* slot.record */ INSERT INTO slot (schedule, slot, kind, run, reason)
             VALUES (?, ?, ?, ?, ?)",
        )?
        .execute(params![schedule.as_bytes(), slot.millis(), kind, run, reason])?;
    Ok(())
}

fn move_to(scope: &Scope<'_>, schedule: ScheduleId, place: &Place) -> Result<()> {
    let last = place.last.map(encode_run);
    scope
        .connection
        .prepare_cached(
            "/* slot.move */ UPDATE schedule_position SET position = ?2, last_kind = ?3, last = ?4
             WHERE schedule = ?1",
        )?
        .execute(params![
            schedule.as_bytes(),
            place.position.millis(),
            last.map(|(kind, _)| kind),
            last.map(|(_, run)| run)
        ])?;
    Ok(())
}

fn tell(
    scope: &Scope<'_>,
    schedule: ScheduleId,
    slot: Timestamp,
    outcome: SlotOutcome,
) -> Result<()> {
    let sinks = &scope.index.sinks;
    if !(sinks.want(EventKind::ScheduleFired) || sinks.want(EventKind::ScheduleSkipped)) {
        return Ok(());
    }
    let select = "/* slot.schedule */ SELECT tenant, name FROM schedule WHERE id = ?";
    let mut statement = scope.connection.prepare_cached(select)?;
    let (tenant, name): (String, String) =
        statement.query_row([schedule.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if let (Ok(tenant), Ok(name)) = (TenantName::new(&tenant), ScheduleName::new(&name)) {
        scope.emit(&outcome.event((&tenant, &name), slot, scope.now));
    }
    Ok(())
}

fn forget_old(scope: &Scope<'_>, schedule: ScheduleId) -> Result<()> {
    scope
        .connection
        .prepare_cached(
            "/* slot.forget_old */ DELETE FROM slot WHERE schedule = ?1 AND slot <= (
                 SELECT slot FROM slot WHERE schedule = ?1 ORDER BY slot DESC LIMIT 1 OFFSET ?2)",
        )?
        .execute(params![schedule.as_bytes(), SLOT_LOG])?;
    Ok(())
}
