//! Queries on queues. Every number is counted up to a bound, range by range of an index, and of so
//! many lanes, so that none costs more with a larger backlog or with more types.

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

use self::running::running;
use self::state::View;
use super::error::{Fault, Result};
use super::snapshot::Snapshot;
use super::verb::pause::ResumeQueue;
use super::{PostgresStore, row};

#[async_trait]
impl Queues for PostgresStore {
    async fn queues(&self, page: ListQueues) -> store::Result<QueueList> {
        let mut client = self.pool.get().await?;
        let snapshot = self.pool.snapshot(&mut client, &page.tenant).await?;
        Ok(list(&snapshot, &page).await?)
    }

    async fn queue(
        &self,
        tenant: &TenantName,
        queue: &QueueName,
    ) -> store::Result<Option<QueueState>> {
        let mut client = self.pool.get().await?;
        let snapshot = self.pool.snapshot(&mut client, tenant).await?;
        if snapshot.query_opt(KNOWN, &[&tenant.as_str(), &queue.as_str()]).await?.is_none() {
            return Ok(None);
        }
        let running = running(&snapshot, tenant).await?;
        let view = View { snapshot: &snapshot, running: &running, count_to: COUNT_ROWS };
        Ok(view.queues(tenant, vec![queue.clone()]).await?.pop())
    }

    async fn pause_queue(&self, order: PauseQueue) -> store::Result<bool> {
        let known = self.run(&order).await?;
        self.paused_changed(&order.tenant, &order.queue, known);
        Ok(known)
    }

    async fn resume_queue(&self, tenant: &TenantName, queue: &QueueName) -> store::Result<bool> {
        let known = self.run(&ResumeQueue { tenant, queue }).await?;
        self.paused_changed(tenant, queue, false);
        Ok(known)
    }

    async fn place(&self, tenant: &TenantName, id: TaskId) -> store::Result<Option<QueuePosition>> {
        let mut client = self.pool.get().await?;
        let snapshot = self.pool.snapshot(&mut client, tenant).await?;
        Ok(place::place(&snapshot, tenant, id).await?)
    }
}

/// Whether a task was ever submitted to a queue, or it is paused.
pub(super) const KNOWN: &str = "/* queue.known */ SELECT
    WHERE EXISTS (SELECT FROM duly.lane WHERE tenant = $1 AND queue = $2)
       OR EXISTS (SELECT FROM duly.pause WHERE tenant = $1 AND queue = $2)";

async fn list(snapshot: &Snapshot<'_>, page: &ListQueues) -> Result<QueueList> {
    let ListQueues { tenant, after, limit, count_to } = page;
    let (names, next_after) = names(snapshot, tenant, after.as_ref(), *limit).await?;
    if names.is_empty() {
        return Ok(QueueList { queues: Vec::new(), next_after });
    }
    let running = running(snapshot, tenant).await?;
    let view = View { snapshot, running: &running, count_to: *count_to };
    Ok(QueueList { queues: view.queues(tenant, names).await?, next_after })
}

/// The queues of a page, and behind which one to go on: one look per queue, however many types it
/// has, and its types are counted no further than a page goes.
const NAMES: &str = "/* queue.names */ WITH RECURSIVE name AS (
        (SELECT queue, 1 AS place, 0::bigint AS types FROM (
            (SELECT queue FROM duly.lane WHERE tenant = $1 AND queue > $2 ORDER BY queue LIMIT 1)
            UNION ALL
            (SELECT queue FROM duly.pause WHERE tenant = $1 AND queue > $2 ORDER BY queue LIMIT 1)
         ) first ORDER BY queue LIMIT 1)
        UNION ALL
        SELECT next.queue, name.place + 1, name.types + own.types
        FROM name,
             LATERAL (SELECT count(*) AS types FROM (SELECT FROM duly.lane
                 WHERE lane.tenant = $1 AND lane.queue = name.queue LIMIT $4) few) own,
             LATERAL (SELECT queue FROM (
                 (SELECT lane.queue FROM duly.lane
                  WHERE lane.tenant = $1 AND lane.queue > name.queue ORDER BY lane.queue LIMIT 1)
                 UNION ALL
                 (SELECT pause.queue FROM duly.pause
                  WHERE pause.tenant = $1 AND pause.queue > name.queue
                  ORDER BY pause.queue LIMIT 1)
                 ) behind ORDER BY queue LIMIT 1) next
        WHERE name.place <= $3 AND name.types < $4)
    SELECT queue, place > $3 OR types >= $4 FROM name ORDER BY place";

async fn names(
    snapshot: &Snapshot<'_>,
    tenant: &TenantName,
    after: Option<&QueueName>,
    limit: u32,
) -> Result<(Vec<QueueName>, Option<QueueName>)> {
    let after = after.map_or("", QueueName::as_str);
    // As the server takes bounds.
    let limit = i32::try_from(limit).unwrap_or(i32::MAX);
    let types = i64::try_from(QUEUE_LANES).unwrap_or(i64::MAX);
    let rows = snapshot.query(NAMES, &[&tenant.as_str(), &after, &limit, &types]).await?;
    let mut names: Vec<QueueName> = Vec::new();
    for row in rows {
        let name: &str = row.try_get(0)?;
        // The first queue that the page has no room for.
        if row.try_get(1)? {
            let last = names.last().cloned();
            return Ok((names, last));
        }
        let damaged = |_| Fault::Corrupt { table: "lane", column: "queue", id: name.to_owned() };
        names.push(QueueName::new(name).map_err(damaged)?);
    }
    Ok((names, None))
}

/// Which of these queues are paused, and why.
async fn pauses(
    snapshot: &Snapshot<'_>,
    tenant: &TenantName,
    queues: &[&str],
) -> Result<Vec<(String, Pause)>> {
    let select = "/* queue.pauses */ SELECT queue, since, note FROM duly.pause
        WHERE tenant = $1 AND queue = ANY($2)";
    let rows = snapshot.query(select, &[&tenant.as_str(), &queues]).await?;
    let pause = |row: &tokio_postgres::Row| {
        let pause = Pause { since: row::instant(row.try_get(1)?), note: row.try_get(2)? };
        Ok((row.try_get(0)?, pause))
    };
    rows.iter().map(pause).collect()
}
