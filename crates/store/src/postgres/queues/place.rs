//! Where a task stands in its queue.

use duly_core::id::TaskId;
use duly_core::limits::{AGEING_PER_LEVEL, COUNT_ROWS, QUEUE_LANES};
use duly_core::name::TenantName;
use duly_core::ports::store::{Counted, QueuePosition};
use duly_core::task::claim_order;
use tokio_postgres::types::ToSql;

use super::pauses;
use crate::postgres::error::Result;
use crate::postgres::range::{RANKS, priority};
use crate::postgres::row;
use crate::postgres::snapshot::Snapshot;

const WAITING: &str = "/* queue.waiting */ SELECT task.lane, task.rank, task.run_at, lane.queue
    FROM duly.task JOIN duly.lane ON lane.id = task.lane
    WHERE task.id = $1 AND lane.tenant = $2 AND task.status = 1";

/// What is due and comes before, in the task's own lane and in the first of its queue; a task of
/// another rank stands at the same place if it has that rank's run time. And whether there are more
/// lanes.
const AHEAD: &str = "/* queue.ahead */ SELECT
        (SELECT count(*) FROM (SELECT
            FROM (SELECT $3::integer AS id UNION ALL
                  SELECT other.id FROM (SELECT id FROM duly.lane WHERE tenant = $1 AND queue = $2
                                        ORDER BY type LIMIT $4) other WHERE other.id <> $3) l,
                 unnest($5::smallint[], $6::bigint[]) r(rank, alike),
                 LATERAL (SELECT FROM duly.due WHERE due.lane = l.id AND due.rank = r.rank
                            AND due.run_at <= duly.now()
                            AND (due.run_at, due.task) < (r.alike, $7) LIMIT $8) found
            LIMIT $8) ahead),
        (SELECT count(*) > $4 FROM (SELECT FROM duly.lane WHERE tenant = $1 AND queue = $2
            LIMIT $4 + 1) every)";

pub(super) async fn place(
    snapshot: &Snapshot<'_>,
    tenant: &TenantName,
    id: TaskId,
) -> Result<Option<QueuePosition>> {
    let id = row::uuid(id);
    let Some(task) = snapshot.query_opt(WAITING, &[&id, &tenant.as_str()]).await? else {
        return Ok(None);
    };
    let (lane, rank, queue): (i32, i16, &str) =
        (task.try_get(0)?, task.try_get(1)?, task.try_get(3)?);
    let level = priority(rank).ok_or_else(|| row::corrupt("task", "rank", id))?;
    let own = claim_order(row::instant(task.try_get(2)?), level);
    let ageing = i64::try_from(AGEING_PER_LEVEL.as_millis()).unwrap_or(i64::MAX);
    let alike = |rank| {
        let level = priority(rank)?.level();
        Some((rank, own.saturating_add(i64::from(level) * ageing)))
    };
    let (ranks, alike): (Vec<i16>, Vec<i64>) = (0..2 * RANKS).filter_map(alike).unzip();
    let (lanes, most) = (i64::try_from(QUEUE_LANES).unwrap_or(i64::MAX), i64::from(COUNT_ROWS) + 1);
    let parameters: [&(dyn ToSql + Sync); 8] =
        [&tenant.as_str(), &queue, &lane, &lanes, &ranks, &alike, &id, &most];
    let found = snapshot.query(AHEAD, &parameters).await?;
    let (mut ahead, mut unseen) = (0_i64, false);
    if let Some(found) = found.first() {
        (ahead, unseen) = (found.try_get(0)?, found.try_get(1)?);
    }
    let counted = Counted::up_to(COUNT_ROWS, usize::try_from(ahead).unwrap_or_default());
    let ahead = Counted { more: counted.more || unseen, ..counted };
    let paused = pauses(snapshot, tenant, &[queue]).await?.pop().map(|(_, pause)| pause);
    Ok(Some(QueuePosition { paused, ahead }))
}
