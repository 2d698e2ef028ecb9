//! Slots: decide those of many schedules in one transaction. Schedules are locked by their ids, before any
//! task. What the slots start is collected and stored together.

use duly_core::event::EventKind;
use duly_core::limits::SLOT_LOG;
use duly_core::name::{Lane, ScheduleName, TenantName};
use duly_core::ports::store::{
    Decide, Decided, RunStatus, SlotOrder, SlotOutcome, SubmittedWorkflow,
};
use duly_core::schedule::{Overlap, ScheduleStatus, SkipReason, SlotRun};
use duly_core::state::Status;
use duly_core::task::NewTask;
use duly_core::time::Timestamp;
use duly_core::workflow::{NewWorkflow, WorkflowStatus};
use foldhash::{HashMap, HashSet};
use uuid::Uuid;

use super::cascade::{CancelledTasks, cancel_all};
use super::{Scope, Verb, then};
use crate::audited::{Audited, Subject};
use crate::postgres::error::Result;
use crate::postgres::schedules::{
    decode_outcome, decode_run, decode_status, encode_run, task_of, uuid, workflow_of,
};
use crate::postgres::task_state::state::{TaskState, each};
use crate::postgres::{PostgresStore, partitions, row, workflows};
use crate::schedule_rules::{Start, replaced, start, waiting_for};

/// How often slots are tried whose days are made at the same time.
const TRIES: u32 = 5;

impl PostgresStore {
    pub(in crate::postgres) async fn decide(&self, decisions: &[Decide]) -> Result<Vec<Decided>> {
        let slots = DecideSlots { decisions };
        let mut tries = 0;
        loop {
            let answer = self.run(&slots).await;
            tries += 1;
            match answer {
                Err(fault) if fault.is_missing_day() && tries < TRIES => {
                    let days = partitions::of(slots.tasks().map(|task| task.id));
                    self.server_errors.note(self.make_days(days).await)?;
                }
                answer => return answer,
            }
        }
    }
}

struct DecideSlots<'a> {
    decisions: &'a [Decide],
}

impl DecideSlots<'_> {
    fn orders(&self) -> impl Iterator<Item = &SlotOrder> {
        self.decisions.iter().flat_map(|decide| &decide.slots).map(|(_, order)| order)
    }

    fn tasks(&self) -> impl Iterator<Item = &NewTask> {
        self.orders().flat_map(|order| match order {
            SlotOrder::Task(task) => std::slice::from_ref(&**task),
            SlotOrder::Workflow(new) => &new.tasks,
            SlotOrder::Skip(_) => &[],
        })
    }
}

impl Verb for DecideSlots<'_> {
    type Answer = Vec<Decided>;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<Vec<Decided>> {
        let mut deciding = Deciding::begin(scope, self).await?;
        let mut answers = Vec::with_capacity(self.decisions.len());
        for decide in self.decisions {
            answers.push(deciding.decide(scope, decide).await?);
        }
        deciding.write(scope).await?;
        Ok(answers)
    }

    fn audited(&self) -> Vec<Subject> {
        Audited::audited(self.decisions)
    }
}

/// Where a schedule is.
struct Place {
    generation: u32,
    status: ScheduleStatus,
    position: Timestamp,
    last: Option<SlotRun>,
    has_moved: bool,
}

/// What is known and what is to be written.
struct Deciding {
    places: HashMap<Uuid, Place>,
    records: HashMap<(Uuid, Timestamp), SlotOutcome>,
    /// Of what was started before, and of what this call starts.
    statuses: HashMap<SlotRun, RunStatus>,
    /// How many lanes can still be made; `None` as long as none is to be.
    room: Option<usize>,
    new_lanes: HashSet<Lane>,
    tasks: Vec<NewTask>,
    new_records: Vec<(Uuid, Timestamp, SlotOutcome)>,
}

impl Deciding {
    async fn begin(scope: &Scope<'_>, slots: &DecideSlots<'_>) -> Result<Self> {
        let mut ids: Vec<_> = slots.decisions.iter().map(|decide| uuid(decide.schedule)).collect();
        ids.sort_unstable();
        let places = lock_places(scope, &ids).await?;
        let records = records(scope, slots).await?;
        let needs_last = |it: &&Decide| it.overlap != Overlap::Allow;
        let lasts = slots.decisions.iter().filter(needs_last);
        let lasts = lasts.filter_map(|it| places.get(&uuid(it.schedule))?.last);
        let statuses = statuses(scope, &lasts.collect::<Vec<_>>()).await?;
        Ok(Self {
            places,
            records,
            statuses,
            room: None,
            new_lanes: HashSet::default(),
            tasks: Vec::new(),
            new_records: Vec::new(),
        })
    }

    async fn decide(&mut self, scope: &mut Scope<'_>, decide: &Decide) -> Result<Decided> {
        let id = uuid(decide.schedule);
        let Some(place) = self.places.get(&id) else { return Ok(Decided::Stale) };
        if place.generation != decide.generation {
            return Ok(Decided::Stale);
        }
        if let Some((from, to)) = decide.moves
            && (place.status != ScheduleStatus::Active || place.position != from)
        {
            return Ok(self.repeated(decide, place.position == to));
        }
        let (mut slots, mut cancelled) = (Vec::with_capacity(decide.slots.len()), Vec::new());
        for (slot, order) in &decide.slots {
            let known = self.records.get(&(id, *slot)).copied();
            let outcome = match known {
                Some(outcome) => outcome,
                None => {
                    let outcome = self.decide_slot(scope, decide, order, &mut cancelled).await?;
                    self.records.insert((id, *slot), outcome);
                    self.new_records.push((id, *slot, outcome));
                    outcome
                }
            };
            slots.push(outcome);
        }
        let place = self.places.get_mut(&id).expect("found above");
        place.position = decide.moves.map_or(place.position, |(_, to)| to);
        place.has_moved = true;
        Ok(Decided::Done { slots, cancelled })
    }

    /// The answer of an earlier call with the same slots, if that call has moved the position.
    fn repeated(&self, decide: &Decide, has_moved: bool) -> Decided {
        let id = uuid(decide.schedule);
        let known = decide.slots.iter().map(|(slot, _)| self.records.get(&(id, *slot)).copied());
        match known.collect::<Option<Vec<_>>>().filter(|_| has_moved) {
            Some(slots) => Decided::Done { slots, cancelled: Vec::new() },
            None => Decided::Stale,
        }
    }

    async fn decide_slot(
        &mut self,
        scope: &mut Scope<'_>,
        decide: &Decide,
        order: &SlotOrder,
        cancelled: &mut CancelledTasks,
    ) -> Result<SlotOutcome> {
        let id = uuid(decide.schedule);
        if let SlotOrder::Skip(reason) = order {
            return Ok(SlotOutcome::Skipped(*reason));
        }
        if !self.has_room_for(scope, order).await? {
            return Ok(SlotOutcome::Skipped(SkipReason::Refused));
        }
        let last = self.places[&id].last;
        let last = last.and_then(|run| Some((run, *self.statuses.get(&run)?)));
        let start = start(decide.overlap, last, order);
        match start {
            Start::Skip(reason) => return Ok(SlotOutcome::Skipped(reason)),
            Start::InsteadOf(run) => cancelled.extend(self.replace(scope, run).await?),
            Start::AtOnce | Start::After(_) => {}
        }
        let (run, status) = match (order, start) {
            (SlotOrder::Task(task), Start::After(parent)) => {
                self.tasks.push(waiting_for(task, parent));
                (SlotRun::Task(task.id), RunStatus::Task(Status::Blocked))
            }
            (SlotOrder::Task(task), _) => {
                self.tasks.push((**task).clone());
                (SlotRun::Task(task.id), RunStatus::Task(Status::Pending))
            }
            (SlotOrder::Workflow(new), _) => {
                if !store_workflow(scope, new).await? {
                    return Ok(SlotOutcome::Skipped(SkipReason::Refused));
                }
                (SlotRun::Workflow(new.id), RunStatus::Workflow(WorkflowStatus::Running))
            }
            (SlotOrder::Skip(reason), _) => return Ok(SlotOutcome::Skipped(*reason)),
        };
        self.statuses.insert(run, status);
        self.places.get_mut(&id).expect("found above").last = Some(run);
        Ok(SlotOutcome::Ran(run))
    }

    /// Whether the lanes of what is to be started are there or can be made.
    async fn has_room_for(&mut self, scope: &Scope<'_>, order: &SlotOrder) -> Result<bool> {
        let tasks = match order {
            SlotOrder::Task(task) => std::slice::from_ref(&**task),
            SlotOrder::Workflow(new) => &new.tasks,
            SlotOrder::Skip(_) => &[],
        };
        let is_new = |lane: &&Lane| {
            scope.store.lanes.find(lane).is_none() && !self.new_lanes.contains(*lane)
        };
        let new: HashSet<Lane> =
            tasks.iter().map(|task| &task.lane).filter(is_new).cloned().collect();
        if new.is_empty() {
            return Ok(true);
        }
        if self.room.is_none() {
            self.room = Some(scope.store.lanes.hold(scope.transaction()).await?);
        }
        let unknown = new.into_iter().filter(|lane| scope.store.lanes.find(lane).is_none());
        let unknown: HashSet<Lane> = unknown.collect();
        let fits = self.room.is_some_and(|room| self.new_lanes.len() + unknown.len() <= room);
        if fits {
            self.new_lanes.extend(unknown);
        }
        Ok(fits)
    }

    /// Cancels a run for a later one.
    async fn replace(&mut self, scope: &mut Scope<'_>, run: SlotRun) -> Result<CancelledTasks> {
        if let Some(workflow) = workflow_of(&run) {
            let update = "/* slot.cancel_workflow */ UPDATE duly.workflow
                SET cancelled = coalesce(cancelled, $2), sweep = true WHERE id = $1 AND status = 0";
            scope.execute(update, &[&workflow, &replaced().message]).await?;
            scope.wakes.anywhere(scope.now);
            return Ok(Vec::new());
        }
        // It may be one of those that this call starts.
        self.store_tasks(scope).await?;
        let tasks: Vec<_> = task_of(&run).into_iter().collect();
        let open = TaskState::lock(scope, &tasks).await?.into_values();
        let open = open.filter(|state| !state.status.is_terminal());
        let cancelled = cancel_all(scope, open.map(|state| (state, replaced())).collect()).await?;
        self.statuses.insert(run, RunStatus::Task(Status::Cancelled));
        Ok(cancelled)
    }

    async fn store_tasks(&mut self, scope: &mut Scope<'_>) -> Result<()> {
        let tasks = std::mem::take(&mut self.tasks);
        then::store(scope, &tasks.iter().collect::<Vec<_>>()).await
    }

    async fn write(&mut self, scope: &mut Scope<'_>) -> Result<()> {
        self.store_tasks(scope).await?;
        self.write_records(scope).await?;
        let mut moved: Vec<_> = self.places.iter().filter(|(_, place)| place.has_moved).collect();
        if moved.is_empty() {
            return Ok(());
        }
        moved.sort_unstable_by_key(|(id, _)| **id);
        let ids = each(&moved, |(id, _)| **id);
        let update = "/* slot.move */ UPDATE duly.schedule_position p
            SET position = ($2::bigint[])[width_bucket(p.schedule, $1)],
                last_kind = ($3::smallint[])[width_bucket(p.schedule, $1)],
                last = ($4::uuid[])[width_bucket(p.schedule, $1)]
            WHERE p.schedule = ANY($1::uuid[])";
        let positions = each(&moved, |(_, place)| place.position.millis());
        let kinds = each(&moved, |(_, place)| place.last.map(|run| encode_run(run).0));
        let lasts = each(&moved, |(_, place)| place.last.map(|run| encode_run(run).1));
        scope.execute(update, &[&ids, &positions, &kinds, &lasts]).await?;
        let forget = "/* slot.forget_old */ DELETE FROM duly.slot s
            USING (SELECT u.id, (SELECT o.slot FROM duly.slot o WHERE o.schedule = u.id
                                 ORDER BY o.slot DESC OFFSET $2 LIMIT 1) AS newest
                   FROM unnest($1::uuid[]) u(id)) old
            WHERE s.schedule = old.id AND s.slot <= old.newest";
        let log = i64::try_from(SLOT_LOG).expect("a small number");
        scope.execute(forget, &[&ids, &log]).await?;
        Ok(())
    }

    /// Tells of the slots that are decided, if a sink wants that.
    async fn tell(&self, scope: &mut Scope<'_>) -> Result<()> {
        let wants = |kind| scope.told.wants(kind);
        if !wants(EventKind::ScheduleFired) && !wants(EventKind::ScheduleSkipped) {
            return Ok(());
        }
        let select = "/* slot.names */ SELECT id, tenant, name FROM duly.schedule
            WHERE id = ANY($1)";
        let ids = each(&self.new_records, |it| it.0);
        let mut names = HashMap::default();
        for found in scope.query(select, &[&ids]).await? {
            let (id, tenant, name): (Uuid, &str, &str) =
                (found.try_get(0)?, found.try_get(1)?, found.try_get(2)?);
            // The slots must not fail because a name is damaged.
            if let (Ok(tenant), Ok(name)) = (TenantName::new(tenant), ScheduleName::new(name)) {
                names.insert(id, (tenant, name));
            }
        }
        for (id, slot, outcome) in &self.new_records {
            if let Some((tenant, name)) = names.get(id) {
                scope.told.emit(&outcome.event((tenant, name), *slot, scope.now));
            }
        }
        Ok(())
    }

    async fn write_records(&self, scope: &mut Scope<'_>) -> Result<()> {
        if self.new_records.is_empty() {
            return Ok(());
        }
        self.tell(scope).await?;
        let of = |outcome: &SlotOutcome| match outcome {
            SlotOutcome::Ran(run) => {
                let (kind, run) = encode_run(*run);
                (kind, Some(run), None)
            }
            SlotOutcome::Skipped(reason) => (0, None, Some(reason.as_str())),
        };
        let records = &self.new_records;
        let insert = "/* slot.record */ INSERT INTO duly.slot (schedule, slot, kind, run, reason)
            SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::smallint[], $4::uuid[], $5::text[])";
        scope
            .execute(
                insert,
                &[
                    &each(records, |it| it.0),
                    &each(records, |it| it.1.millis()),
                    &each(records, |it| of(&it.2).0),
                    &each(records, |it| of(&it.2).1),
                    &each(records, |it| of(&it.2).2),
                ],
            )
            .await?;
        Ok(())
    }
}

/// Locks schedules by their ids, which come sorted. What may change with an edit is read after that, by
/// a statement of its own: the one that locks would show what it saw before it waited.
async fn lock_places(scope: &Scope<'_>, ids: &[Uuid]) -> Result<HashMap<Uuid, Place>> {
    let lock = "/* slot.lock */ SELECT FROM duly.schedule_position WHERE schedule = ANY($1)
        ORDER BY schedule FOR NO KEY UPDATE";
    scope.execute(lock, &[&ids]).await?;
    let select =
        "/* slot.places */ SELECT s.id, s.generation, s.status, p.position, p.last_kind, p.last
        FROM duly.schedule s JOIN duly.schedule_position p ON p.schedule = s.id
        WHERE s.id = ANY($1)";
    let mut places = HashMap::default();
    for found in scope.query(select, &[&ids]).await? {
        let place = Place {
            generation: found.try_get::<_, i32>(1)?.unsigned_abs(),
            status: decode_status(found.try_get(2)?),
            position: row::instant(found.try_get(3)?),
            last: decode_run(found.try_get(4)?, found.try_get(5)?),
            has_moved: false,
        };
        places.insert(found.try_get(0)?, place);
    }
    Ok(places)
}

/// The records that are there of the slots.
async fn records(
    scope: &Scope<'_>,
    slots: &DecideSlots<'_>,
) -> Result<HashMap<(Uuid, Timestamp), SlotOutcome>> {
    let named = slots.decisions.iter().flat_map(|decide| {
        decide.slots.iter().map(|(slot, _)| (uuid(decide.schedule), slot.millis()))
    });
    let (schedules, instants): (Vec<_>, Vec<_>) = named.unzip();
    let select = "/* slot.recorded */ SELECT s.schedule, s.slot, s.kind, s.run, s.reason
        FROM unnest($1::uuid[], $2::bigint[]) n(schedule, slot)
        JOIN duly.slot s ON s.schedule = n.schedule AND s.slot = n.slot";
    let mut records = HashMap::default();
    for found in scope.query(select, &[&schedules, &instants]).await? {
        let schedule: Uuid = found.try_get(0)?;
        let outcome = decode_outcome(&found, 2, schedule)?;
        records.insert((schedule, row::instant(found.try_get(1)?)), outcome);
    }
    Ok(records)
}

/// The states of tasks, which are locked so that none ends before this transaction does, and of workflows.
async fn statuses(scope: &Scope<'_>, runs: &[SlotRun]) -> Result<HashMap<SlotRun, RunStatus>> {
    let mut statuses = HashMap::default();
    let mut tasks: Vec<_> = runs.iter().filter_map(task_of).collect();
    if !tasks.is_empty() {
        tasks.sort_unstable();
        for (id, state) in TaskState::lock(scope, &tasks).await? {
            statuses.insert(SlotRun::Task(row::task_id(id)), RunStatus::Task(state.status));
        }
    }
    let workflows: Vec<_> = runs.iter().filter_map(workflow_of).collect();
    if !workflows.is_empty() {
        let select =
            "/* slot.last_workflows */ SELECT id, status FROM duly.workflow WHERE id = ANY($1)";
        for found in scope.query(select, &[&workflows]).await? {
            let id: Uuid = found.try_get(0)?;
            let status = workflows::decode_status(found.try_get(1)?, id)?;
            let run = SlotRun::Workflow(row::workflow_id(id));
            statuses.insert(run, RunStatus::Workflow(status));
        }
    }
    Ok(statuses)
}

/// Stores a workflow. Whether there was room for its lanes.
async fn store_workflow(scope: &mut Scope<'_>, new: &NewWorkflow) -> Result<bool> {
    Ok(matches!(new.apply(scope).await?, SubmittedWorkflow::Stored { .. }))
}
