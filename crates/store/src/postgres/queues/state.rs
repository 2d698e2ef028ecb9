//! What is in queues.

use duly_core::limits::QUEUE_LANES;
use duly_core::name::{QueueName, TenantName};
use duly_core::ports::store::{Counted, QueueState};
use tokio_postgres::types::ToSql;

use super::pauses;
use super::running::Running;
use crate::postgres::error::Result;
use crate::postgres::range::RANKS;
use crate::postgres::row;
use crate::postgres::snapshot::Snapshot;

/// What queues are seen by.
pub(super) struct View<'a> {
    pub(super) snapshot: &'a Snapshot<'a>,
    pub(super) running: &'a Running,
    pub(super) count_to: u32,
}

/// The numbers of each queue, in the order of the names. The first types of each are looked at, and
/// one row more than counts. Each inner limit ends a range as soon as the outer one could be reached.
const COUNTS: &str = "/* queue.counts */ SELECT
        (SELECT count(*) > $4 FROM (SELECT FROM duly.lane
            WHERE lane.tenant = $1 AND lane.queue = name.queue LIMIT $4 + 1) every),
        (SELECT count(*) FROM (SELECT FROM unnest(own.lanes) l(id),
            LATERAL (SELECT FROM duly.due WHERE due.lane = l.id LIMIT $3) found LIMIT $3) all_waiting),
        (SELECT count(*) FROM (SELECT FROM unnest(own.waiting) l(id), generate_series(0, $5) r(rank),
            LATERAL (SELECT FROM duly.due WHERE due.lane = l.id AND due.rank = r.rank
                       AND due.run_at <= duly.now() LIMIT $3) found LIMIT $3) all_due),
        (SELECT count(*) FROM (SELECT FROM unnest(own.lanes) l(id),
            LATERAL (SELECT FROM duly.dlq WHERE dlq.lane = l.id LIMIT $3) found LIMIT $3) all_dead),
        (SELECT min(found.run_at) FROM unnest(own.waiting) l(id), generate_series(0, $5) r(rank),
            LATERAL (SELECT due.run_at FROM duly.due WHERE due.lane = l.id AND due.rank = r.rank
                     ORDER BY due.run_at LIMIT 1) found WHERE found.run_at <= duly.now())
    FROM unnest($2::text[]) WITH ORDINALITY name(queue, place),
         LATERAL (SELECT array_agg(id) AS lanes, array_agg(id) FILTER (WHERE
                      EXISTS (SELECT FROM duly.due WHERE due.lane = first.id)) AS waiting
                  FROM (SELECT lane.id FROM duly.lane
                        WHERE lane.tenant = $1 AND lane.queue = name.queue
                        ORDER BY lane.type LIMIT $4) first) own
    ORDER BY name.place";

impl View<'_> {
    pub(super) async fn queues(
        &self,
        tenant: &TenantName,
        names: Vec<QueueName>,
    ) -> Result<Vec<QueueState>> {
        let texts: Vec<_> = names.iter().map(QueueName::as_str).collect();
        let mut paused = pauses(self.snapshot, tenant, &texts).await?;
        let most = i64::from(self.count_to) + 1;
        let (lanes, ranks) =
            (i64::try_from(QUEUE_LANES).unwrap_or(i64::MAX), i32::from(2 * RANKS - 1));
        let parameters: [&(dyn ToSql + Sync); 5] =
            [&tenant.as_str(), &texts, &most, &lanes, &ranks];
        let rows = self.snapshot.query(COUNTS, &parameters).await?;
        let mut queues = Vec::with_capacity(names.len());
        for (queue, row) in names.into_iter().zip(rows) {
            let unseen: bool = row.try_get(0)?;
            let count = |index| -> Result<Counted> {
                let found: i64 = row.try_get(index)?;
                let found = usize::try_from(found).unwrap_or_default();
                let counted = Counted::up_to(self.count_to, found);
                Ok(Counted { more: counted.more || unseen, ..counted })
            };
            let place = paused.iter().position(|(name, _)| name == queue.as_str());
            queues.push(QueueState {
                paused: place.map(|place| paused.swap_remove(place).1),
                running: self.running.of(&queue, self.count_to),
                queue,
                waiting: count(1)?,
                due: count(2)?,
                dead: count(3)?,
                oldest_due: row.try_get::<_, Option<i64>>(4)?.map(row::instant),
            });
        }
        Ok(queues)
    }
}
