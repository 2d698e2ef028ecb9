//! What runs in a tenant's queues, counted from the batches of leases.

use duly_core::id::SessionId;
use duly_core::limits::COUNT_LEASES;
use duly_core::name::{QueueName, TenantName};
use duly_core::ports::store::Counted;
use foldhash::{HashMap, HashSet};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::sqlite::error::Result;
use crate::sqlite::index::grants::{Granted, unpack};

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
const BATCHES: &str = "/* queue.grants */ SELECT grant_log.session, leases FROM grant_log
     LEFT JOIN session ON session.id = grant_log.session
     WHERE session.tenant IS NULL OR session.tenant = ?";

const QUEUE: &str = "/* queue.running */ SELECT lane.queue
     FROM task JOIN lane ON lane.id = task.lane
     WHERE task.id = ? AND epoch = ? AND session = ? AND status = 2 AND lane.tenant = ?";

pub(super) fn running(connection: &Connection, tenant: &TenantName) -> Result<Running> {
    let mut batches = connection.prepare_cached(BATCHES)?;
    let mut queue = connection.prepare_cached(QUEUE)?;
    let (mut running, mut looked_at) = (Running::default(), 0);
    let mut counted = HashSet::default();
    let mut rows = batches.query([tenant.as_str()])?;
    while let Some(row) = rows.next()? {
        let (session, leases) = match batch(row) {
            Ok(batch) => batch,
            // One damaged row must not hide the others.
            Err(fault) if fault.is_bad_row() => {
                tracing::error!(%fault, "a batch of leases cannot be read");
                continue;
            }
            Err(fault) => return Err(fault),
        };
        for lease in leases {
            if looked_at == COUNT_LEASES {
                return Ok(Running { unseen: true, ..running });
            }
            looked_at += 1;
            let (task, session) = (lease.task.as_bytes(), session.as_bytes());
            let key = params![task, lease.epoch, session, tenant.as_str()];
            if let Some(name) = queue.query_row(key, |row| row.get(0)).optional()? {
                // A batch still names a task that was deleted after it had ended. If its id came
                // again, another batch may name it too.
                if counted.insert(lease.task) {
                    *running.by_queue.entry(name).or_default() += 1;
                }
            }
        }
    }
    Ok(running)
}

fn batch(row: &Row<'_>) -> Result<(SessionId, Vec<Granted>)> {
    let session = SessionId::from_bytes(row.get(0)?);
    let leases = unpack(session, row.get_ref(1)?.as_blob().unwrap_or_default())?;
    Ok((session, leases))
}
