//! New rows for tasks, with those granted at once for which a worker beside this node has room.

use deadpool_postgres::GenericClient;
use duly_core::ports::store::{Claim, Submitted};
use duly_core::task::NewTask;
use duly_core::time::Timestamp;
use foldhash::HashSet;

use crate::postgres::PostgresStore;
use crate::postgres::error::{Fault, Result};
use crate::postgres::lease;
use crate::postgres::range::{LaneId, Range, rank};
use crate::postgres::row;
use crate::postgres::task_state::state::each;
use crate::postgres::wakes::Wakes;

/// The epoch of a task's first grant.
const FIRST_EPOCH: u32 = 1;

const INSERT: &str = "/* submit */ SELECT * FROM duly.submit_tasks(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, NULL)";

/// What became of new tasks.
pub(super) struct Inserted {
    pub(super) now: Timestamp,
    /// Which of them were granted, in the order in which they were given.
    handed: Vec<bool>,
}

impl Inserted {
    /// One answer per task, in the order in which they were given.
    pub(super) fn answers(&self) -> impl Iterator<Item = Submitted> {
        let handed_off = Submitted::HandedOff { epoch: FIRST_EPOCH, granted_at: self.now };
        let stored = Submitted::Stored { at: self.now };
        self.handed.iter().map(move |handed| if *handed { handed_off } else { stored })
    }
}

/// A task on its way into the table.
struct New<'a> {
    task: &'a NewTask,
    /// Its place in the batch.
    turn: usize,
    lane: LaneId,
}

/// Stores tasks that are not there yet, in lanes that are. Fails as a whole if one is there.
pub(super) async fn insert(
    store: &PostgresStore,
    client: &impl GenericClient,
    tasks: &[&NewTask],
    offer: Option<&Claim>,
    wakes: &mut Wakes,
) -> Result<Inserted> {
    let mut new = Vec::with_capacity(tasks.len());
    for (turn, task) in tasks.iter().enumerate() {
        let lane = wakes.made(&task.lane).or_else(|| store.lanes.find(&task.lane));
        let unknown = || row::corrupt("task", "lane", row::uuid(task.id));
        new.push(New { task, turn, lane: lane.ok_or_else(unknown)? });
    }
    // All transactions write rows in the order of their ids.
    new.sort_unstable_by_key(|it| it.task.id);
    let (now, handed, told) = call(store, client, &new, offer).await?;
    if told {
        wakes.tell();
    }
    let mut inserted = Inserted { now, handed: vec![false; new.len()] };
    for (it, handed) in new.iter().zip(handed) {
        inserted.handed[it.turn] = handed;
        if !handed {
            let range = Range { lane: it.lane, rank: rank(it.task.priority) };
            wakes.add(range, it.task.due_at(now).millis());
        }
    }
    Ok(inserted)
}

async fn call(
    store: &PostgresStore,
    client: &impl GenericClient,
    new: &[New<'_>],
    offer: Option<&Claim>,
) -> Result<(Timestamp, Vec<bool>, bool)> {
    let now = store.estimate();
    // A node that counted the delay itself would start tasks early when its estimate is behind.
    let counts_here = !store.clock.is_trusted();
    let servable = servable(store, new, offer, now);
    let room = offer.filter(|_| !servable.is_empty()).map_or(0, |offer| offer.max);
    let statement = client.prepare_cached(INSERT).await?;
    let back_offs = each(new, |it| row::encode_back_off(&it.task.back_off));
    let labels = each(new, |it| row::encode_labels(&it.task.labels));
    let inserted = client
        .query_one(
            &statement,
            &[
                &each(new, |it| row::uuid(it.task.id)),
                &each(new, |it| i32::try_from(it.turn).unwrap_or(i32::MAX)),
                &each(new, |it| it.task.run_at.millis()),
                &each(new, |it| it.task.delay.filter(|_| counts_here).map(row::encode_delay)),
                &each(new, |it| it.lane),
                &each(new, |it| rank(it.task.priority)),
                &each(new, |it| row::encode_count(it.task.retries)),
                &each(new, |it| row::encode_duration(it.task.timeout)),
                &back_offs,
                &labels,
                &each(new, |it| &*it.task.payload),
                &offer.map(|offer| row::session_uuid(offer.session)),
                &offer.map(|offer| row::encode_sequence(offer.sequence)),
                &i32::try_from(room).unwrap_or(i32::MAX),
                &servable,
                &store.probed_since(now),
                &lease::default_timeout(),
                &lease::slack(),
            ],
        )
        .await?;
    let handed: Option<Vec<bool>> = inserted.try_get(1)?;
    let handed = handed.unwrap_or_else(|| vec![false; new.len()]);
    let told: Option<bool> = inserted.try_get(2)?;
    let now = row::instant(inserted.try_get(0).map_err(Fault::from)?);
    Ok((now, handed, told.unwrap_or(false)))
}

/// The lanes of new tasks that the offer is for and in which nothing is due, as far as
/// this node knows.
fn servable(
    store: &PostgresStore,
    new: &[New<'_>],
    offer: Option<&Claim>,
    now: i64,
) -> Vec<LaneId> {
    let Some(offer) = offer else { return Vec::new() };
    let Some(session) = store.sessions.get(offer.session) else { return Vec::new() };
    let mut looked_at = HashSet::default();
    let lanes = new.iter().filter(|it| looked_at.insert(it.lane));
    let free = lanes.filter(|it| {
        session.opened.serves(&it.task.lane)
            && offer.accepts(&it.task.lane)
            && !store.pauses.is_paused(&it.task.lane)
            && store.heads.is_drained(it.lane, now)
    });
    free.map(|it| it.lane).collect()
}
