//! What runs in a tenant's queues, counted from the batches of leases.

use duly_core::limits::COUNT_LEASES;
use duly_core::name::{QueueName, TenantName};
use duly_core::ports::store::Counted;
use foldhash::HashMap;
use uuid::Uuid;

use crate::postgres::days;
use crate::postgres::error::Result;
use crate::postgres::snapshot::Snapshot;

/// How many of a tenant's leases live in each of its queues.
#[derive(Default)]
pub(super) struct Running {
    by_queue: HashMap<String, usize>,
    /// Whether some that may be this tenant's were not looked at.
    unseen: bool,
}

impl Running {
    pub(super) fn of(&self, queue: &QueueName, count_to: u32) -> Counted {
        let found = self.by_queue.get(queue.as_str()).copied().unwrap_or_default();
        let counted = Counted::up_to(count_to, found);
        Counted { more: counted.more || self.unseen, ..counted }
    }
}

/// Sessions that belong to another tenant hold nothing of this one: their leases are passed by, so
/// that their load makes no number here uncertain.
const BATCHES: &str =
    "/* queue.grants */ SELECT grant_log.session, grant_log.tasks, grant_log.epochs
    FROM duly.grant_log LEFT JOIN duly.session ON session.id = grant_log.session
    WHERE grant_log.live > 0 AND (session.tenant IS NULL OR session.tenant = $1) LIMIT $2";

const QUEUES: &str = "/* queue.running */ SELECT task.id, task.epoch, task.session, lane.queue
    FROM duly.task JOIN duly.lane ON lane.id = task.lane
    WHERE task.id = ANY($1) AND task.status = 2 AND lane.tenant = $2";

/// Who holds a task, and under which grant.
type Holder = (Uuid, i32);

pub(super) async fn running(snapshot: &Snapshot<'_>, tenant: &TenantName) -> Result<Running> {
    let (mut running, mut leases) = (Running::default(), HashMap::<Uuid, Vec<Holder>>::default());
    // A batch holds a lease at the least.
    let most = i64::from(COUNT_LEASES) + 1;
    let mut looked_at = 0;
    for row in snapshot.query(BATCHES, &[&tenant.as_str(), &most]).await? {
        let (tasks, epochs): (Vec<Uuid>, Vec<i32>) = (row.try_get(1)?, row.try_get(2)?);
        let session = row.try_get(0)?;
        for (task, epoch) in tasks.into_iter().zip(epochs) {
            running.unseen |= looked_at == COUNT_LEASES;
            if running.unseen {
                break;
            }
            looked_at += 1;
            leases.entry(task).or_default().push((session, epoch));
        }
    }
    for ids in days::apart(leases.keys().copied()) {
        for row in snapshot.query(QUEUES, &[&ids, &tenant.as_str()]).await? {
            let task: Uuid = row.try_get(0)?;
            let holder = (row.try_get::<_, Option<Uuid>>(2)?.unwrap_or_default(), row.try_get(1)?);
            if leases.get(&task).is_some_and(|known| known.contains(&holder)) {
                *running.by_queue.entry(row.try_get(3)?).or_default() += 1;
            }
        }
    }
    Ok(running)
}
