//! Live leases by the batch they were granted in. A batch's row in the file goes with its last
//! lease.

use duly_core::id::{SessionId, TaskId};
use foldhash::HashMap;
use rusqlite::{Connection, params};

use crate::sqlite::error::{Fault, Result};

/// Names one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::sqlite) struct Batch {
    pub(in crate::sqlite) session: SessionId,
    pub(in crate::sqlite) sequence: u64,
}

/// One lease of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sqlite) struct Granted {
    pub(in crate::sqlite) task: TaskId,
    pub(in crate::sqlite) epoch: u32,
}

#[derive(Debug, Default)]
pub(in crate::sqlite) struct Grants {
    by_task: HashMap<TaskId, Batch>,
    batches: HashMap<Batch, Leases>,
}

#[derive(Debug)]
struct Leases {
    granted: Vec<Granted>,
    live: usize,
}

const PACKED: usize = 20;

impl Grants {
    pub(super) fn load(connection: &Connection) -> Result<Self> {
        let mut grants = Self::default();
        let mut statement =
            connection.prepare("SELECT session, sequence, leases FROM grant_log")?;
        let mut alive = connection.prepare(
            "SELECT count(*) FROM task WHERE id = ? AND epoch = ? AND session = ? AND status = 2",
        )?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let session = SessionId::from_bytes(row.get(0)?);
            let sequence = row.get(1)?;
            let batch = Batch { session, sequence };
            let granted = unpack(session, row.get_ref(2)?.as_blob().unwrap_or_default())?;
            let mut live = 0;
            for lease in &granted {
                let key = params![lease.task.as_bytes(), lease.epoch, session.as_bytes()];
                let count: usize = alive.query_row(key, |row| row.get(0))?;
                live += count;
                if count > 0 {
                    grants.by_task.insert(lease.task, batch);
                }
            }
            grants.batches.insert(batch, Leases { granted, live });
        }
        Ok(grants)
    }

    /// Records a batch in the file and here.
    pub(in crate::sqlite) fn add(
        &mut self,
        connection: &Connection,
        batch: Batch,
        granted_at: i64,
        granted: Vec<Granted>,
    ) -> Result<()> {
        connection
            .prepare_cached(
                "/* grant.add */ INSERT INTO grant_log (session, sequence, granted_at, leases)
                 VALUES (?, ?, ?, ?)",
            )?
            .execute(params![
                batch.session.as_bytes(),
                batch.sequence,
                granted_at,
                pack(&granted)
            ])?;
        for lease in &granted {
            self.by_task.insert(lease.task, batch);
        }
        self.batches.insert(batch, Leases { live: granted.len(), granted });
        Ok(())
    }

    /// Forgets a lease that has ended, and its batch with the last one.
    pub(in crate::sqlite) fn end(&mut self, connection: &Connection, task: TaskId) -> Result<()> {
        let Some(batch) = self.by_task.remove(&task) else { return Ok(()) };
        let Some(leases) = self.batches.get_mut(&batch) else { return Ok(()) };
        leases.live = leases.live.saturating_sub(1);
        if leases.live == 0 {
            self.batches.remove(&batch);
            connection
                .prepare_cached(
                    "/* grant.end */ DELETE FROM grant_log WHERE session = ? AND sequence = ?",
                )?
                .execute(params![batch.session.as_bytes(), batch.sequence])?;
        }
        Ok(())
    }

    /// The leases of a batch that still live.
    pub(in crate::sqlite) fn live(&self, batch: Batch) -> Vec<Granted> {
        let Some(leases) = self.batches.get(&batch) else { return Vec::new() };
        let alive = |lease: &&Granted| self.by_task.get(&lease.task) == Some(&batch);
        leases.granted.iter().filter(alive).copied().collect()
    }

    /// Whether a batch has a live lease.
    pub(super) fn holds(&self, batch: Batch) -> bool {
        self.batches.get(&batch).is_some_and(|leases| leases.live > 0)
    }

    /// The batch that a task is leased in.
    pub(in crate::sqlite) fn batch_of(&self, task: TaskId) -> Option<Batch> {
        self.by_task.get(&task).copied()
    }

    /// All live leases of a session, or of everybody.
    pub(in crate::sqlite) fn leases(&self, of: Option<SessionId>) -> Vec<(SessionId, Granted)> {
        let batches = self.batches.keys().filter(|batch| of.is_none_or(|id| batch.session == id));
        let leases = batches.flat_map(|batch| {
            self.live(*batch).into_iter().map(|granted| (batch.session, granted))
        });
        leases.collect()
    }

    /// Removes the rows of batches without a live lease; only a crash can leave such.
    pub(in crate::sqlite) fn sweep(&mut self, connection: &Connection) -> Result<()> {
        let dead =
            self.batches.iter().filter(|(_, leases)| leases.live == 0).map(|(batch, _)| *batch);
        for batch in dead.collect::<Vec<_>>() {
            self.batches.remove(&batch);
            connection.execute(
                "DELETE FROM grant_log WHERE session = ? AND sequence = ?",
                params![batch.session.as_bytes(), batch.sequence],
            )?;
        }
        Ok(())
    }
}

fn pack(granted: &[Granted]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(granted.len() * PACKED);
    for lease in granted {
        packed.extend_from_slice(lease.task.as_bytes());
        packed.extend_from_slice(&lease.epoch.to_be_bytes());
    }
    packed
}

fn unpack(session: SessionId, packed: &[u8]) -> Result<Vec<Granted>> {
    let (leases, rest) = packed.as_chunks::<PACKED>();
    if !rest.is_empty() {
        let id = session.to_string();
        return Err(Fault::Corrupt { table: "grant_log", column: "leases", id });
    }
    let one = |lease: &[u8; PACKED]| {
        let task = TaskId::from_bytes(*lease.first_chunk().expect("16 of 20 bytes"));
        let epoch = u32::from_be_bytes(*lease.last_chunk().expect("4 of 20 bytes"));
        Granted { task, epoch }
    };
    Ok(leases.iter().map(one).collect())
}
