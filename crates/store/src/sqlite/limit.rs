//! What bare SQLite can do: see [`crate::limit`].

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};

use super::checkpoint::Checkpointer;
use super::open::{self, OpenError};
use crate::limit::{HandOff, Limit, PAYLOAD};

/// How the waiting tasks are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// The store's own: a narrow table of due keys beside the tasks.
    DueTable,
    /// The rival: one table, a partial index over the waiting rows.
    PartialIndex,
}

const PARTIAL_INDEX: &str = "CREATE INDEX waiting ON task (lane, rank, run_at) WHERE status = 1";

/// Runs the loop on a fresh file.
pub fn run(path: &Path, layout: Layout, tasks: usize, batch: usize) -> Result<Limit, OpenError> {
    let broken = |error: rusqlite::Error| OpenError::database(path, error);
    let mut bench = Bench::open(path, layout, batch)?;
    let batches = tasks / batch;
    let submit = bench.repeat(batches, Bench::submit).map_err(broken)?;
    let claims = bench.repeat(batches, Bench::claim).map_err(broken)?;
    let finish = bench.repeat(batches, Bench::finish).map_err(broken)?;
    let tasks = batches * batch;
    let log_bytes_per_task = bench.log_bytes_per(tasks);
    bench.checkpointer.stop();
    Ok(Limit { tasks, submit, claim: claims, finish, log_bytes_per_task })
}

/// Runs the shorter life on a fresh file: stored as granted, then ended.
pub fn hand_off(path: &Path, tasks: usize, batch: usize) -> Result<HandOff, OpenError> {
    let broken = |error: rusqlite::Error| OpenError::database(path, error);
    let mut bench = Bench::open(path, Layout::DueTable, batch)?;
    let mut cycle = Duration::ZERO;
    let batches = tasks / batch;
    for number in 0..batches {
        cycle += bench.once(number, Bench::submit_granted).map_err(broken)?;
        cycle += bench.once(number, Bench::finish).map_err(broken)?;
    }
    let tasks = batches * batch;
    let log_bytes_per_task = bench.log_bytes_per(tasks);
    bench.checkpointer.stop();
    Ok(HandOff { tasks, cycle, log_bytes_per_task })
}

struct Bench {
    connection: Connection,
    checkpointer: Checkpointer,
    layout: Layout,
    batch: usize,
}

const SESSION: [u8; 16] = [7; 16];
/// Bytes of one lease in a row of the grant log.
const LEASE: usize = 20;

/// Adds a lease of the first epoch.
fn pack(leases: &mut Vec<u8>, id: [u8; 16]) {
    leases.extend_from_slice(&id);
    leases.extend_from_slice(&1_u32.to_be_bytes());
}

/// One part of the lives of a batch.
type Part = fn(&Bench, usize) -> rusqlite::Result<()>;

impl Bench {
    fn open(path: &Path, layout: Layout, batch: usize) -> Result<Self, OpenError> {
        let broken = |error: rusqlite::Error| OpenError::database(path, error);
        open::make_directory(path)?;
        let mut connection = open::writer(path)?;
        if layout == Layout::PartialIndex {
            connection.execute_batch(PARTIAL_INDEX).map_err(broken)?;
        }
        let checkpointer = Checkpointer::new(&mut connection, path.to_owned()).map_err(broken)?;
        Ok(Self { connection, checkpointer, layout, batch })
    }

    fn log_bytes_per(&self, tasks: usize) -> u64 {
        self.checkpointer.log().bytes() / tasks.max(1) as u64
    }

    fn repeat(&mut self, batches: usize, part: Part) -> rusqlite::Result<Duration> {
        (0..batches).map(|number| self.once(number, part)).sum()
    }

    fn once(&mut self, number: usize, part: Part) -> rusqlite::Result<Duration> {
        let start = Instant::now();
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        part(self, number)?;
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        self.checkpointer.after_commit(&self.connection);
        Ok(start.elapsed())
    }

    fn submit_granted(&self, number: usize) -> rusqlite::Result<()> {
        let mut task = self.connection.prepare_cached(
            "INSERT INTO task (id, status, epoch, session, lane, rank, run_at, created_at, granted_at,
                    run, charged, retries, losses, payload)
             VALUES (?1, 2, 1, ?4, 1, 4, ?2, ?2, ?2, 1, 0, 3, 0, ?3)",
        )?;
        let mut leases = Vec::with_capacity(self.batch * LEASE);
        for place in 0..self.batch {
            let (run_at, id) = key(number, self.batch, place);
            task.execute(params![id, run_at, PAYLOAD, SESSION])?;
            pack(&mut leases, id);
        }
        self.log_grant(number, &leases)
    }

    fn log_grant(&self, number: usize, leases: &[u8]) -> rusqlite::Result<()> {
        let sql =
            "INSERT INTO grant_log (session, sequence, granted_at, leases) VALUES (?, ?, 0, ?)";
        self.connection.prepare_cached(sql)?.execute(params![SESSION, number, leases])?;
        Ok(())
    }

    fn submit(&self, number: usize) -> rusqlite::Result<()> {
        let mut task = self.connection.prepare_cached(
            "INSERT INTO task (id, status, epoch, lane, rank, run_at, created_at, run, charged, retries,
                    losses, payload)
             VALUES (?1, 1, 0, 1, 4, ?2, ?2, 1, 0, 3, 0, ?3)",
        )?;
        for place in 0..self.batch {
            let (run_at, id) = key(number, self.batch, place);
            task.execute(params![id, run_at, PAYLOAD])?;
        }
        if self.layout == Layout::DueTable {
            let mut due = self
                .connection
                .prepare_cached("INSERT INTO due (lane, rank, run_at, task) VALUES (1, 4, ?, ?)")?;
            for place in 0..self.batch {
                let (run_at, id) = key(number, self.batch, place);
                due.execute(params![run_at, id])?;
            }
        }
        Ok(())
    }

    fn claim(&self, number: usize) -> rusqlite::Result<()> {
        let sql = match self.layout {
            Layout::DueTable => {
                "SELECT run_at, task FROM due WHERE lane = 1 AND rank = 4 AND run_at <= ?1
                 ORDER BY run_at, task LIMIT ?2"
            }
            Layout::PartialIndex => {
                "SELECT run_at, id FROM task WHERE status = 1 AND lane = 1 AND rank = 4
                 AND run_at <= ?1 ORDER BY run_at, id LIMIT ?2"
            }
        };
        let mut select = self.connection.prepare_cached(sql)?;
        let rows = select.query_map(params![i64::MAX, self.batch], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, [u8; 16]>(1)?))
        })?;
        let picked: Vec<(i64, [u8; 16])> = rows.collect::<rusqlite::Result<_>>()?;
        if let (Layout::DueTable, Some((run_at, id))) = (self.layout, picked.last()) {
            self.connection
                .prepare_cached(
                    "DELETE FROM due WHERE lane = 1 AND rank = 4 AND run_at <= ?1
                     AND (run_at, task) <= (?1, ?2)",
                )?
                .execute(params![run_at, id])?;
        }
        let mut grant = self.connection.prepare_cached(
            "UPDATE task SET status = 2, session = ?2, epoch = epoch + 1, granted_at = ?3
             WHERE id = ?1 AND status = 1",
        )?;
        let mut leases = Vec::with_capacity(picked.len() * LEASE);
        for (run_at, id) in &picked {
            grant.execute(params![id, SESSION, run_at])?;
            pack(&mut leases, *id);
        }
        self.log_grant(number, &leases)
    }

    fn finish(&self, number: usize) -> rusqlite::Result<()> {
        let mut end = self.connection.prepare_cached(
            "UPDATE task SET status = 3, finished_at = ?3, charged = charged + 1
             WHERE id = ?1 AND epoch = 1 AND session = ?2 AND status = 2",
        )?;
        for place in 0..self.batch {
            let (run_at, id) = key(number, self.batch, place);
            end.execute(params![id, SESSION, run_at])?;
        }
        self.connection
            .prepare_cached("DELETE FROM grant_log WHERE session = ? AND sequence = ?")?
            .execute(params![SESSION, number])?;
        Ok(())
    }
}

/// A task's due time and id, in the order of submission.
fn key(number: usize, batch: usize, place: usize) -> (i64, [u8; 16]) {
    let run_at = 1_900_000_000_000 + number as i64;
    let mut id = [0; 16];
    id[..6].copy_from_slice(&run_at.to_be_bytes()[2..]);
    id[6..14].copy_from_slice(&((number * batch + place) as u64).to_be_bytes());
    (run_at, id)
}
