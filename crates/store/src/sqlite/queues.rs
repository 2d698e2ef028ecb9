//! Queries on queues. Every number is counted up to a bound, range by range of an index, so that
//! none costs more with a larger backlog.

use async_trait::async_trait;
use duly_core::id::{SessionId, TaskId};
use duly_core::limits::{AGEING_PER_LEVEL, COUNT_ROWS};
use duly_core::name::{QueueName, TenantName};
use duly_core::ports::store::{
    self, Counted, ListQueues, Pause, PauseQueue, Place, QueueList, QueueState, Queues,
};
use duly_core::state::Status;
use duly_core::task::claim_order;
use duly_core::time::Timestamp;
use foldhash::HashMap;
use rusqlite::{Connection, OptionalExtension as _, ToSql, params};

use super::error::{Fault, Result};
use super::index::grants::unpack;
use super::index::heads::Range;
use super::index::lanes::LaneId;
use super::verb::pause::ResumeQueue;
use super::{SqliteStore, reader};

#[async_trait]
impl Queues for SqliteStore {
    async fn queues(&self, page: ListQueues) -> store::Result<QueueList> {
        let now = self.clock.now();
        self.readers.query(move |connection| list(connection, &page, now)).await
    }

    async fn queue(
        &self,
        tenant: &TenantName,
        queue: &QueueName,
    ) -> store::Result<Option<QueueState>> {
        let (tenant, queue, now) = (tenant.clone(), queue.clone(), self.clock.now());
        self.readers
            .query(move |connection| {
                let lanes = lanes(connection, &tenant, &queue)?;
                if lanes.is_empty() {
                    return Ok(None);
                }
                let running = running(connection)?;
                let view = View { connection, running: &running, count_to: COUNT_ROWS, now };
                view.queue(&tenant, queue, &lanes).map(Some)
            })
            .await
    }

    async fn pause_queue(&self, order: PauseQueue) -> store::Result<bool> {
        self.ask(order).await
    }

    async fn resume_queue(&self, tenant: &TenantName, queue: &QueueName) -> store::Result<bool> {
        self.ask(ResumeQueue { tenant: tenant.clone(), queue: queue.clone() }).await
    }

    async fn place(&self, tenant: &TenantName, id: TaskId) -> store::Result<Option<Place>> {
        let (tenant, now) = (tenant.clone(), self.clock.now());
        self.readers.query(move |connection| place(connection, &tenant, id, now)).await
    }
}

fn list(connection: &Connection, page: &ListQueues, now: Timestamp) -> Result<QueueList> {
    let ListQueues { tenant, after, limit, count_to } = page;
    let mut names = names(connection, tenant, after.as_ref(), limit.saturating_add(1))?;
    let more = names.len() > *limit as usize;
    names.truncate(*limit as usize);
    let running = running(connection)?;
    let view = View { connection, running: &running, count_to: *count_to, now };
    let mut queues = Vec::with_capacity(names.len());
    for name in names {
        let lanes = lanes(connection, tenant, &name)?;
        queues.push(view.queue(tenant, name, &lanes)?);
    }
    let next_after = queues.last().filter(|_| more).map(|last| last.queue.clone());
    Ok(QueueList { queues, next_after })
}

/// The names of a tenant's queues.
fn names(
    connection: &Connection,
    tenant: &TenantName,
    after: Option<&QueueName>,
    limit: u32,
) -> Result<Vec<QueueName>> {
    let mut statement = connection.prepare_cached(
        "/* queue.names */ SELECT DISTINCT queue FROM lane WHERE tenant = ? AND queue > ?
         ORDER BY queue LIMIT ?",
    )?;
    let after = after.map_or("", QueueName::as_str);
    let mut rows = statement.query(params![tenant.as_str(), after, limit])?;
    let mut names = Vec::new();
    while let Some(row) = rows.next()? {
        let name: String = row.get(0)?;
        let damaged = |_| Fault::Corrupt { table: "lane", column: "queue", id: name.clone() };
        names.push(QueueName::new(&name).map_err(damaged)?);
    }
    Ok(names)
}

fn lanes(connection: &Connection, tenant: &TenantName, queue: &QueueName) -> Result<Vec<LaneId>> {
    let mut statement = connection
        .prepare_cached("/* queue.lanes */ SELECT id FROM lane WHERE tenant = ? AND queue = ?")?;
    let lanes = statement.query_map([tenant.as_str(), queue.as_str()], |row| row.get(0))?;
    Ok(lanes.collect::<rusqlite::Result<_>>()?)
}

/// How many leases live in each lane.
#[derive(Default)]
struct Running {
    by_lane: HashMap<LaneId, usize>,
    /// Whether there are more, since so many were looked at.
    more: bool,
}

fn running(connection: &Connection) -> Result<Running> {
    let mut batches =
        connection.prepare_cached("/* queue.grants */ SELECT session, leases FROM grant_log")?;
    let mut lane = connection.prepare_cached(
        "/* queue.running */ SELECT lane FROM task
         WHERE id = ? AND epoch = ? AND session = ? AND status = 2",
    )?;
    let (mut running, mut looked) = (Running::default(), 0);
    let mut rows = batches.query([])?;
    while let Some(row) = rows.next()? {
        let session: [u8; 16] = row.get(0)?;
        let leases = row.get_ref(1)?.as_blob().unwrap_or_default();
        for lease in unpack(SessionId::from_bytes(session), leases)? {
            if looked == COUNT_ROWS {
                return Ok(Running { more: true, ..running });
            }
            looked += 1;
            let key = params![lease.task.as_bytes(), lease.epoch, session];
            let found: Option<LaneId> = lane.query_row(key, |row| row.get(0)).optional()?;
            if let Some(lane) = found {
                *running.by_lane.entry(lane).or_default() += 1;
            }
        }
    }
    Ok(running)
}

/// What queues are seen by.
struct View<'a> {
    connection: &'a Connection,
    running: &'a Running,
    count_to: u32,
    now: Timestamp,
}

impl View<'_> {
    fn queue(&self, tenant: &TenantName, queue: QueueName, lanes: &[LaneId]) -> Result<QueueState> {
        let connection = self.connection;
        let (mut waiting, mut due, mut dead) =
            (Count::to(self.count_to), Count::to(self.count_to), Count::to(self.count_to));
        let mut oldest_due: Option<i64> = None;
        for lane in lanes {
            waiting.add(connection, "due WHERE lane = ?", params![lane])?;
            dead.add(connection, "dlq INDEXED BY dlq_group WHERE lane = ?", params![lane])?;
            for (range, head) in ranges(connection, *lane)? {
                if head <= self.now.millis() {
                    oldest_due = Some(oldest_due.map_or(head, |oldest| oldest.min(head)));
                    let until = params![range.lane, range.rank, self.now.millis()];
                    due.add(connection, "due WHERE lane = ? AND rank = ? AND run_at <= ?", until)?;
                }
            }
        }
        let running = lanes.iter().filter_map(|lane| self.running.by_lane.get(lane)).sum();
        let running = Counted::up_to(self.count_to, running);
        Ok(QueueState {
            paused: paused(connection, tenant, &queue)?,
            queue,
            waiting: waiting.counted(),
            due: due.counted(),
            running: Counted { more: running.more || self.running.more, ..running },
            dead: dead.counted(),
            oldest_due: oldest_due.map(Timestamp::clamped),
        })
    }
}

/// Counts rows of several ranges until it is enough.
struct Count {
    bound: u32,
    found: u32,
}

impl Count {
    fn to(bound: u32) -> Self {
        Self { bound, found: 0 }
    }

    /// Adds the rows of a table in a range, one more than the bound at the most.
    fn add(&mut self, connection: &Connection, rows: &str, range: &[&dyn ToSql]) -> Result<()> {
        let left = self.bound.saturating_add(1) - self.found;
        if left == 0 {
            return Ok(());
        }
        let text = format!("/* queue.count */ SELECT count(*) FROM (SELECT 1 FROM {rows} LIMIT ?)");
        let mut values = range.to_vec();
        values.push(&left);
        let found: u32 = connection.prepare_cached(&text)?.query_row(&*values, |row| row.get(0))?;
        self.found += found;
        Ok(())
    }

    fn counted(&self) -> Counted {
        Counted::up_to(self.bound, self.found as usize)
    }
}

/// The ranges of a lane and their first run times; skips from one to the next.
fn ranges(connection: &Connection, lane: LaneId) -> Result<Vec<(Range, i64)>> {
    let mut next = connection.prepare_cached(
        "/* queue.ranges */ SELECT rank, run_at FROM due WHERE lane = ? AND rank > ?
         ORDER BY rank, run_at LIMIT 1",
    )?;
    let (mut ranges, mut last) = (Vec::new(), -1_i64);
    loop {
        let found = next
            .query_row(params![lane, last], |row| Ok((row.get::<_, u8>(0)?, row.get(1)?)))
            .optional()?;
        let Some((rank, run_at)) = found else { return Ok(ranges) };
        ranges.push((Range { lane, rank }, run_at));
        last = rank.into();
    }
}

fn paused(
    connection: &Connection,
    tenant: &TenantName,
    queue: &QueueName,
) -> Result<Option<Pause>> {
    let mut statement = connection.prepare_cached(
        "/* queue.paused */ SELECT since, note FROM pause WHERE tenant = ? AND queue = ?",
    )?;
    let pause = statement.query_row([tenant.as_str(), queue.as_str()], |row| {
        Ok(Pause { since: Timestamp::clamped(row.get(0)?), note: row.get(1)? })
    });
    Ok(pause.optional()?)
}

fn place(
    connection: &Connection,
    tenant: &TenantName,
    id: TaskId,
    now: Timestamp,
) -> Result<Option<Place>> {
    let Some(task) = reader::get(connection, tenant, id)? else { return Ok(None) };
    if task.status != Status::Pending {
        return Ok(None);
    }
    let own = claim_order(task.run_at, task.priority);
    let ageing = i64::try_from(AGEING_PER_LEVEL.as_millis()).unwrap_or(i64::MAX);
    let mut ahead = Count::to(COUNT_ROWS);
    for lane in lanes(connection, tenant, &task.lane.queue)? {
        for (range, _) in ranges(connection, lane)? {
            let Some(priority) = range.priority() else { continue };
            // A task of this level stands at the same place if it has this run time.
            let alike = own.saturating_add(i64::from(priority.level()) * ageing);
            let before = params![range.lane, range.rank, now.millis(), alike, id.as_bytes()];
            let rows =
                "due WHERE lane = ? AND rank = ? AND run_at <= ? AND (run_at, task) < (?, ?)";
            ahead.add(connection, rows, before)?;
        }
    }
    let paused = paused(connection, tenant, &task.lane.queue)?;
    Ok(Some(Place { paused, ahead: ahead.counted() }))
}
