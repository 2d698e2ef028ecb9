//! Finding tasks that ended long ago: in the order of ids, beside the writer, which then only
//! deletes. There is no index by end, since every outcome would pay for it.

use async_trait::async_trait;
use duly_core::id::TaskId;
use duly_core::limits::{SCAN_ROWS, STORE_BATCH, STORE_BATCH_BYTES};
use duly_core::name::TenantName;
use duly_core::ports::store::{self, Expiry, Sweep, Swept};
use duly_core::time::Timestamp;
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::error::Result;
use super::verb::expire::{Ended, Expire, ForgetSessions};
use super::{row, weight};

#[async_trait]
impl Expiry for SqliteStore {
    async fn sweep(&self, sweep: Sweep) -> store::Result<Swept> {
        let Found { tasks, next } =
            self.readers.query(move |connection| find(connection, &sweep)).await?;
        if tasks.is_empty() {
            return Ok(Swept { deleted: 0, next });
        }
        let deleted = self.ask(Expire { tasks }).await?;
        Ok(Swept { deleted, next })
    }

    async fn forget_sessions(&self, before: Timestamp) -> store::Result<u32> {
        self.ask(ForgetSessions { before }).await
    }
}

struct Found {
    tasks: Vec<Ended>,
    next: Option<TaskId>,
}

const ENDED: &str = "/* sweep.find */ SELECT id, status, finished_at FROM task
    WHERE id > ? AND id < ? ORDER BY id";

/// The same with the tenant, for when some have a retention of their own.
const ENDED_OF_TENANTS: &str = "/* sweep.find_of_tenants */
    SELECT task.id, status, finished_at, tenant FROM task CROSS JOIN lane ON lane.id = task.lane
    WHERE task.id > ? AND task.id < ? ORDER BY task.id";

fn find(connection: &Connection, sweep: &Sweep) -> Result<Found> {
    let mut found = Found { tasks: Vec::new(), next: None };
    let Some(latest) = sweep.latest() else { return Ok(found) };
    let after = sweep.after.map_or([0; 16], |after| *after.as_bytes());
    let by_tenant = !sweep.tenants.is_empty();
    let select = if by_tenant { ENDED_OF_TENANTS } else { ENDED };
    let mut statement = connection.prepare_cached(select)?;
    let mut rows = statement.query(params![after, TaskId::first_of(latest).as_bytes()])?;
    let (mut looked, mut bytes, mut last) = (0, 0, None);
    while let Some(row) = rows.next()? {
        let full = found.tasks.len() == STORE_BATCH || bytes > STORE_BATCH_BYTES;
        if looked == SCAN_ROWS || full {
            found.next = last;
            break;
        }
        let id: [u8; 16] = row.get(0)?;
        looked += 1;
        last = Some(TaskId::from_bytes(id));
        // A damaged row is not deleted: it stays for a person to look at.
        let Ok(status) = row::decode_status(row.get(1)?, &id) else { continue };
        let ended = row.get::<_, Option<i64>>(2)?.map(Timestamp::clamped);
        let tenant = by_tenant.then(|| row.get::<_, String>(3)).transpose()?;
        let cutoffs = match tenant.map(|name| TenantName::new(&name)) {
            None => &sweep.cutoffs,
            Some(Ok(tenant)) => sweep.cutoffs_of(&tenant),
            Some(Err(_)) => continue,
        };
        let expired = ended.zip(cutoffs.before(status)).filter(|(ended, before)| ended < before);
        if let Some((_, before)) = expired {
            let task = TaskId::from_bytes(id);
            bytes += weight::of(connection, task)?;
            found.tasks.push(Ended { task, status, before });
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use duly_core::ports::store::Cutoffs;

    use super::*;
    use crate::sqlite::migrate;

    #[test]
    fn a_sweep_reads_one_bounded_range_in_its_order() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate::up(&mut connection).unwrap();
        let range = "SEARCH task USING PRIMARY KEY (id>? AND id<?)";
        let lane = "SEARCH lane USING INTEGER PRIMARY KEY (rowid=?)";
        for (select, expected) in [(ENDED, &[range][..]), (ENDED_OF_TENANTS, &[range, lane])] {
            let mut statement =
                connection.prepare(&format!("EXPLAIN QUERY PLAN {select}")).unwrap();
            let plan = statement.raw_query().mapped(|row| row.get::<_, String>("detail"));
            let plan: Vec<_> = plan.map(|detail| detail.unwrap()).collect();
            assert_eq!(plan, expected);
        }
    }

    #[test]
    fn large_tasks_make_a_small_batch() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate::up(&mut connection).unwrap();
        let due = Timestamp::from_millis(1_900_000_000_000);
        for number in 0..10 {
            let id = TaskId::mint(due, number, 7);
            let task = "INSERT INTO task (id, status, epoch, lane, rank, run_at, created_at,
                    finished_at, run, charged, retries, losses)
                VALUES (?, 3, 1, 1, 4, 1, 1, 5, 1, 0, 0, 0)";
            connection.execute(task, [id.as_bytes()]).unwrap();
            let log = "INSERT INTO log (task, epoch, offset, at, run, attempt, text)
                VALUES (?, 1, 0, 1, 1, 1, hex(zeroblob(786432)))";
            connection.execute(log, [id.as_bytes()]).unwrap();
        }
        let success = Some(due.plus(std::time::Duration::from_secs(1)));
        let cutoffs = Cutoffs { success, ..Cutoffs::default() };
        let mut sweep = Sweep { cutoffs, ..Sweep::default() };
        let mut pages = Vec::new();
        loop {
            let found = find(&connection, &sweep).unwrap();
            pages.push(found.tasks.len());
            sweep.after = found.next;
            if sweep.after.is_none() {
                break;
            }
        }
        assert_eq!(pages, [3, 3, 3, 1], "1.5 MiB each");
    }
}
