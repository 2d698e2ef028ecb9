//! Queries on queues. Every number is counted up to a bound, range by range of an index, and of so
//! many lanes, so that none costs more with a larger backlog or with more types.

mod count;
mod place;
mod running;
mod state;

use async_trait::async_trait;
use duly_core::id::TaskId;
use duly_core::limits::{COUNT_ROWS, QUEUE_LANES};
use duly_core::name::{QueueName, TenantName};
use duly_core::ports::store::{
    self, ListQueues, Pause, PauseQueue, QueueList, QueuePosition, QueueState, Queues,
};
use duly_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};

use self::running::running;
use self::state::View;
use super::SqliteStore;
use super::error::{Fault, Result};
use super::index::lanes::LaneId;
use super::verb::pause::ResumeQueue;

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
                let lanes = Lanes::of(connection, &tenant, &queue)?;
                if lanes.ids.is_empty() && paused(connection, &tenant, &queue)?.is_none() {
                    return Ok(None);
                }
                let running = running(connection, &tenant)?;
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

    async fn place(&self, tenant: &TenantName, id: TaskId) -> store::Result<Option<QueuePosition>> {
        let (tenant, now) = (tenant.clone(), self.clock.now());
        self.readers.query(move |connection| place::place(connection, &tenant, id, now)).await
    }
}

fn list(connection: &Connection, page: &ListQueues, now: Timestamp) -> Result<QueueList> {
    let ListQueues { tenant, after, limit, count_to } = page;
    let running = running(connection, tenant)?;
    let view = View { connection, running: &running, count_to: *count_to, now };
    let (mut queues, mut looked_at) = (Vec::new(), 0);
    let mut next = name_behind(connection, tenant, after.as_ref())?;
    while queues.len() < *limit as usize && looked_at < QUEUE_LANES {
        let Some(name) = next else { break };
        next = name_behind(connection, tenant, Some(&name))?;
        let lanes = Lanes::of(connection, tenant, &name)?;
        looked_at += lanes.ids.len();
        queues.push(view.queue(tenant, name, &lanes)?);
    }
    let next_after = next.and(queues.last()).map(|last| last.queue.clone());
    Ok(QueueList { queues, next_after })
}

/// The next of a tenant's queues by name: one look, however many types the one before has.
fn name_behind(
    connection: &Connection,
    tenant: &TenantName,
    after: Option<&QueueName>,
) -> Result<Option<QueueName>> {
    let mut statement = connection.prepare_cached(
        "/* queue.next */ SELECT min(queue) FROM (
             SELECT * FROM (SELECT queue FROM lane WHERE tenant = ?1 AND queue > ?2
                 ORDER BY queue LIMIT 1)
             UNION ALL
             SELECT * FROM (SELECT queue FROM pause WHERE tenant = ?1 AND queue > ?2
                 ORDER BY queue LIMIT 1))",
    )?;
    let after = after.map_or("", QueueName::as_str);
    let name = statement.query_row([tenant.as_str(), after], |row| row.get(0))?;
    let name: Option<String> = name;
    let Some(name) = name else { return Ok(None) };
    let damaged = |_| Fault::Corrupt { table: "lane", column: "queue", id: name.clone() };
    QueueName::new(&name).map(Some).map_err(damaged)
}

/// The first lanes of a queue, by type.
struct Lanes {
    ids: Vec<LaneId>,
    /// Whether there are more.
    more: bool,
}

impl Lanes {
    fn of(connection: &Connection, tenant: &TenantName, queue: &QueueName) -> Result<Self> {
        let mut statement = connection.prepare_cached(
            "/* queue.lanes */ SELECT id FROM lane WHERE tenant = ? AND queue = ?
             ORDER BY type LIMIT ?",
        )?;
        let key = params![tenant.as_str(), queue.as_str(), QUEUE_LANES + 1];
        let ids = statement.query_map(key, |row| row.get(0))?;
        let mut ids: Vec<LaneId> = ids.collect::<rusqlite::Result<_>>()?;
        let more = ids.len() > QUEUE_LANES;
        ids.truncate(QUEUE_LANES);
        Ok(Self { ids, more })
    }
}

pub(super) fn paused(
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
