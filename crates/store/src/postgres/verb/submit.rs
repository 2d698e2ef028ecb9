//! Submit: rows for new tasks, waiting or already granted.

use std::time::Instant;

use duly_core::id::TaskId;
use duly_core::name::Lane;
use duly_core::ports::store::{Claim, Submit, Submitted};
use duly_core::task::NewTask;
use foldhash::{HashMap, HashSet};
use uuid::Uuid;

use super::insert::insert;
use super::keys::Keys;
use super::ties::Ties;
use super::{Scope, Verb};
use crate::audited::{Audited, Subject};
use crate::postgres::error::Result;
use crate::postgres::range::Range;
use crate::postgres::task_state::linked::{self, NewLinked};
use crate::postgres::task_state::state::each;
use crate::postgres::wakes::Wakes;
use crate::postgres::{PostgresStore, partitions, row};

/// How often a batch is tried whose tasks others store at the same time.
const TRIES: u32 = 5;

impl PostgresStore {
    pub(in crate::postgres) async fn store(&self, batch: &Submit) -> Result<Vec<Submitted>> {
        if let Some(offer) = &batch.offer {
            // Perhaps it has used another node so far.
            self.session(offer.session).await?;
        }
        let mut tries = 0;
        // What is to be audited is looked up before it is stored.
        let mut careful = self.author.is_some() || !is_plain(self, batch);
        loop {
            let answer = match careful {
                true => self.run(batch).await,
                false => self.retry_on_collision(|| self.store_at_once(batch)).await,
            };
            tries += 1;
            match answer {
                // Stored before, or by another call at the same time.
                Err(fault) if fault.is_repeated() && tries < TRIES => careful = true,
                Err(fault) if fault.is_missing_day() && tries < TRIES => {
                    let days = partitions::of(batch.tasks.iter().map(|task| task.id));
                    self.server_errors.note(self.make_days(days).await)?;
                }
                answer => return self.server_errors.note(answer),
            }
        }
    }

    /// A batch of nothing but new tasks in known lanes is stored in one round trip.
    async fn store_at_once(&self, batch: &Submit) -> Result<Vec<Submitted>> {
        let client = self.pool.get().await?;
        let tasks: Vec<_> = batch.tasks.iter().collect();
        let mut wakes = Wakes::default();
        let sent = Instant::now();
        let inserted = insert(self, &client, &tasks, batch.offer.as_ref(), &mut wakes).await?;
        self.clock.learn(inserted.now.millis(), sent);
        self.wake(wakes);
        Ok(inserted.answers().collect())
    }
}

/// Whether nothing has to be looked up.
fn is_plain(store: &PostgresStore, batch: &Submit) -> bool {
    let mut seen = HashSet::default();
    batch.tasks.iter().all(|task| {
        task.idempotency.is_none()
            && task.links.is_none()
            && store.lanes.find(&task.lane).is_some()
            && seen.insert(task.id)
    })
}

impl Verb for Submit {
    type Answer = Vec<Submitted>;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<Vec<Submitted>> {
        let patience = "/* submit.patience */ SELECT set_config('lock_timeout', $1, true)";
        scope.query(patience, &[&partitions::SUBMIT_PATIENCE]).await?;
        let stored = stored(scope, &self.tasks, self.offer.as_ref()).await?;
        let unknown: Vec<_> =
            self.tasks.iter().filter(|task| !stored.contains_key(&task.id)).collect();
        let mut plan = Plan::new(scope, &unknown).await?;
        let verdict = |task: &NewTask| stored.get(&task.id).map(|answer| Verdict::Known(*answer));
        let mut verdicts = Vec::with_capacity(self.tasks.len());
        for task in &self.tasks {
            verdicts.push(verdict(task).unwrap_or_else(|| plan.admit(scope, task)));
        }
        let made = scope.store.lanes.make(scope.transaction(), &plan.lanes).await?;
        scope.wakes.make(made);
        let Plan { keys, new, ties, .. } = plan;
        keys.write(scope).await?;
        let inserted = insert_all(scope, &new, &ties, self.offer.as_ref()).await?;
        let answer = |verdict| match verdict {
            Verdict::Known(answer) => answer,
            Verdict::New(number) => inserted[number],
            Verdict::Again(number) => match inserted[number] {
                blocked @ Submitted::Blocked { .. } => blocked,
                _ => Submitted::Stored { at: scope.now },
            },
        };
        Ok(verdicts.into_iter().map(answer).collect())
    }

    fn audited(&self) -> Vec<Subject> {
        Audited::audited(self)
    }
}

/// Stores new tasks; answers in their order. Tasks that are tied to others are never handed off, and neither
/// are tasks that would overtake one of these in its lane.
async fn insert_all(
    scope: &mut Scope<'_>,
    new: &[&NewTask],
    ties: &Ties,
    offer: Option<&Claim>,
) -> Result<Vec<Submitted>> {
    let (mut plain, mut linked, mut due) = (Vec::new(), Vec::new(), HashSet::default());
    for task in new.iter().copied() {
        if task.links.is_some() {
            let is_due = ties.are_met(task) && task.due_at(scope.now) <= scope.now;
            due.extend(is_due.then_some(&task.lane));
            linked.push(task);
        } else if due.contains(&task.lane) {
            linked.push(task);
        } else {
            plain.push(task);
        }
    }
    let mut answers: HashMap<TaskId, Submitted> = HashMap::default();
    if linked.is_empty() || !plain.is_empty() {
        let (store, mut wakes) = (scope.store, std::mem::take(&mut scope.wakes));
        let inserted = insert(store, scope.transaction(), &plain, offer, &mut wakes).await;
        scope.wakes = wakes;
        answers.extend(plain.iter().map(|task| task.id).zip(inserted?.answers()));
    }
    if !linked.is_empty() {
        let blocked = linked::store(scope, &with_lanes(scope, &linked)?, &ties.parents()).await?;
        let at = scope.now;
        answers.extend(linked.iter().map(|task| match blocked.contains(&task.id) {
            true => (task.id, Submitted::Blocked { at }),
            false => (task.id, Submitted::Stored { at }),
        }));
    }
    Ok(new.iter().map(|task| answers[&task.id]).collect())
}

/// New tasks with the numbers of their lanes, which are there.
pub(super) fn with_lanes<'a>(
    scope: &Scope<'_>,
    tasks: &[&'a NewTask],
) -> Result<Vec<NewLinked<'a>>> {
    let with_lane = |task: &&'a NewTask| {
        let lane = scope.wakes.made(&task.lane).or_else(|| scope.store.lanes.find(&task.lane));
        let unknown = || row::corrupt("task", "lane", row::uuid(task.id));
        Ok(NewLinked { task, lane: lane.ok_or_else(unknown)? })
    };
    tasks.iter().map(with_lane).collect()
}

/// What is to become of one task of a batch.
enum Verdict {
    /// It is answered without being stored.
    Known(Submitted),
    /// Its place among those that are stored.
    New(usize),
    /// The place of the one with the same id, which came before.
    Again(usize),
}

/// What to do with tasks that are not stored yet.
struct Plan<'a> {
    keys: Keys,
    /// How many more lanes there may be.
    room: usize,
    /// Lanes to make.
    lanes: Vec<&'a Lane>,
    lanes_named: HashSet<&'a Lane>,
    new: Vec<&'a NewTask>,
    new_ids: HashMap<TaskId, usize>,
    ties: Ties,
}

impl<'a> Plan<'a> {
    async fn new(scope: &Scope<'_>, tasks: &[&NewTask]) -> Result<Self> {
        let known = |task: &&NewTask| scope.store.lanes.find(&task.lane).is_some();
        let room = match tasks.iter().all(known) {
            true => 0,
            false => scope.store.lanes.hold(scope.transaction()).await?,
        };
        Ok(Self {
            ties: Ties::lock(scope, tasks).await?,
            keys: Keys::read(scope, tasks).await?,
            room,
            lanes: Vec::new(),
            lanes_named: HashSet::default(),
            new: Vec::new(),
            new_ids: HashMap::default(),
        })
    }

    fn admit(&mut self, scope: &Scope<'_>, task: &'a NewTask) -> Verdict {
        if let Some(number) = self.new_ids.get(&task.id) {
            // The same id came before, in this very batch.
            return Verdict::Again(*number);
        }
        if let Some(answer) = self.keys.answer(task) {
            return Verdict::Known(answer);
        }
        let is_known =
            scope.store.lanes.find(&task.lane).is_some() || self.lanes_named.contains(&task.lane);
        if !is_known && self.lanes.len() >= self.room {
            return Verdict::Known(Submitted::LaneLimit);
        }
        if let Some(refused) = self.ties.refuses(task) {
            return Verdict::Known(refused);
        }
        if !is_known {
            self.lanes_named.insert(&task.lane);
            self.lanes.push(&task.lane);
        }
        self.ties.take(task);
        self.keys.take(task);
        self.new_ids.insert(task.id, self.new.len());
        self.new.push(task);
        Verdict::New(self.new.len() - 1)
    }
}

/// Which of these tasks are there, each with the answer of then, as far as it still holds. Where one
/// waits is announced again: the call that stored it may have been cut off before it could.
async fn stored(
    scope: &mut Scope<'_>,
    tasks: &[NewTask],
    offer: Option<&Claim>,
) -> Result<HashMap<TaskId, Submitted>> {
    let select = "/* submit.stored */ SELECT id, epoch, granted_at,
            coalesce(status = 2 AND session = $2 AND sequence = $3, false),
            status = 1, lane, rank, run_at, created_at, status = 0
        FROM duly.task WHERE id = ANY($1)";
    let session = offer.map(|offer| row::session_uuid(offer.session));
    let sequence = offer.map(|offer| row::encode_sequence(offer.sequence));
    let ids = each(tasks, |task| row::uuid(task.id));
    let mut stored = HashMap::default();
    for found in scope.query(select, &[&ids, &session, &sequence]).await? {
        let id: Uuid = found.try_get(0)?;
        let granted_at: Option<i64> = found.try_get(2)?;
        let answer = match granted_at {
            Some(at) if found.try_get(3)? => {
                let epoch = row::count("task", "epoch", id, found.try_get(1)?)?;
                Submitted::HandedOff { epoch, granted_at: row::instant(at) }
            }
            _ if found.try_get(9)? => Submitted::Blocked { at: row::instant(found.try_get(8)?) },
            _ => Submitted::Stored { at: row::instant(found.try_get(8)?) },
        };
        if found.try_get(4)? {
            let range = Range { lane: found.try_get(5)?, rank: found.try_get(6)? };
            scope.wakes.add(range, found.try_get(7)?);
        }
        stored.insert(row::task_id(id), answer);
    }
    Ok(stored)
}
