//! Live leases by the batch they were granted in. A batch's row in the file goes with its last
//! lease. What else is known of a batch (whether it arrived, when it is overdue) is kept in
//! memory only: who holds it tells again after a restart.

use std::collections::BTreeSet;

use duly_core::id::{SessionId, TaskId};
use duly_core::lease::Lease;
use duly_core::limits::{DEADLINE_SLACK, DEFAULT_TIMEOUT};
use foldhash::{HashMap, HashSet};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::heads::Range;
use crate::sqlite::error::{Fault, Result};
use crate::sqlite::row;

/// Names one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    /// How many leases each session holds.
    held: HashMap<SessionId, usize>,
    /// When to look for overdue leases in which batch.
    overdue: BTreeSet<(i64, Batch)>,
    /// Deadlines that were moved.
    extended: HashMap<TaskId, i64>,
    /// No lease counts as older than this: who held it could not report before the store opened.
    floor: i64,
    /// Whether the file was read before.
    loaded: bool,
    /// Rows that could not be read.
    damaged: Damaged,
}

/// Rows that cannot be read, by what names them in the file.
#[derive(Debug, Default)]
struct Damaged {
    batches: Vec<(Value, Value)>,
    extensions: Vec<Value>,
}

#[derive(Debug)]
struct Leases {
    granted: Vec<Granted>,
    live: usize,
    /// When it was last handed to its session.
    served_at: i64,
    /// Whether the session has said that it has it.
    received: bool,
    /// No lease in it is overdue before this.
    deadline: i64,
}

const PACKED: usize = 20;

impl Grants {
    /// A store that is being opened.
    pub(in crate::sqlite) fn opened_at(now: i64) -> Self {
        Self { floor: now, ..Self::default() }
    }

    /// Reads the leases again. What the file does not hold is taken over from before. Also tells
    /// which sessions hold a quarantined task.
    pub(super) fn load(before: &Self, connection: &Connection) -> Result<(Self, Quarantining)> {
        let mut grants = Self { floor: before.floor, loaded: true, ..Self::default() };
        let extended = extensions(connection, &mut grants.damaged)?;
        let mut quarantining = Quarantining::default();
        let mut statement =
            connection.prepare("SELECT session, sequence, granted_at, leases FROM grant_log")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (batch, granted_at, granted) = match recorded(row) {
                Ok(recorded) => recorded,
                Err(fault) if fault.is_bad_row() => {
                    tracing::error!(%fault, table = "grant_log", "a batch of leases cannot be read");
                    grants.damaged.batches.push((row.get(0)?, row.get(1)?));
                    continue;
                }
                Err(fault) => return Err(fault),
            };
            let known = before.batches.get(&batch);
            let served_at = known.map_or(before.floor.max(granted_at), |it| it.served_at);
            // One that memory has lost had its last lease ended by what was rolled back, so it
            // must have arrived.
            let received = known.map_or(before.loaded, |known| known.received);
            let (mut live, mut deadline) = (0, i64::MAX);
            for lease in &granted {
                let held = match held(connection, batch, *lease) {
                    Ok(Some(held)) => held,
                    Ok(None) => continue,
                    Err(fault) if fault.is_bad_row() => {
                        tracing::error!(%fault, table = "task", task = %lease.task, "a lease cannot be read");
                        continue;
                    }
                    Err(fault) => return Err(fault),
                };
                live += 1;
                let moved = extended.get(&(lease.task, lease.epoch)).copied();
                grants.extended.extend(moved.map(|at| (lease.task, at)));
                deadline = deadline.min(moved.unwrap_or_else(|| grants.due_back(&held)));
                if let Some(earlier) = grants.by_task.insert(lease.task, batch) {
                    grants.disown(earlier);
                }
                quarantining.extend(held.range.is_quarantined().then_some(batch.session));
            }
            if live > 0 {
                *grants.held.entry(batch.session).or_default() += live;
                grants.overdue.insert((deadline, batch));
            }
            grants.batches.insert(batch, Leases { granted, live, served_at, received, deadline });
        }
        Ok((grants, quarantining))
    }

    /// One lease less for a batch that names a task which was deleted after it had ended, and whose id
    /// came again and stands in a later batch.
    fn disown(&mut self, batch: Batch) {
        let Some(leases) = self.batches.get_mut(&batch) else { return };
        leases.live = leases.live.saturating_sub(1);
        if let Some(held) = self.held.get_mut(&batch.session) {
            *held = held.saturating_sub(1);
        }
        if leases.live == 0 {
            self.overdue.remove(&(leases.deadline, batch));
        }
    }

    /// Records a batch in the file and here.
    pub(in crate::sqlite) fn add(
        &mut self,
        connection: &Connection,
        batch: Batch,
        granted_at: i64,
        (granted, deadline): (Vec<Granted>, i64),
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
        *self.held.entry(batch.session).or_default() += granted.len();
        self.overdue.insert((deadline, batch));
        let (live, served_at, received) = (granted.len(), granted_at, false);
        self.batches.insert(batch, Leases { granted, live, served_at, received, deadline });
        Ok(())
    }

    /// Forgets a lease that its holder has finished, which has therefore received its batch.
    /// Returns the batch if that was not known.
    pub(in crate::sqlite) fn finish(
        &mut self,
        connection: &Connection,
        task: TaskId,
    ) -> Result<Option<Batch>> {
        self.forget(connection, task, true)
    }

    /// Forgets a lease that was taken back, and its batch with the last one.
    pub(in crate::sqlite) fn end(&mut self, connection: &Connection, task: TaskId) -> Result<()> {
        self.forget(connection, task, false).map(drop)
    }

    fn forget(
        &mut self,
        connection: &Connection,
        task: TaskId,
        received: bool,
    ) -> Result<Option<Batch>> {
        let Some(batch) = self.by_task.remove(&task) else { return Ok(None) };
        if !self.extended.is_empty() && self.extended.remove(&task).is_some() {
            let statement = "/* extend.forget */ DELETE FROM extension WHERE task = ?";
            connection.prepare_cached(statement)?.execute([task.as_bytes()])?;
        }
        let Some(leases) = self.batches.get_mut(&batch) else { return Ok(None) };
        let news = received && !leases.received;
        leases.received |= received;
        leases.live = leases.live.saturating_sub(1);
        if let Some(held) = self.held.get_mut(&batch.session) {
            *held = held.saturating_sub(1);
            if *held == 0 {
                self.held.remove(&batch.session);
            }
        }
        if leases.live == 0 {
            self.overdue.remove(&(leases.deadline, batch));
            self.batches.remove(&batch);
            connection
                .prepare_cached(
                    "/* grant.end */ DELETE FROM grant_log WHERE session = ? AND sequence = ?",
                )?
                .execute(params![batch.session.as_bytes(), batch.sequence])?;
        }
        Ok(news.then_some(batch))
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

    /// The newest claim of a session that still holds something.
    pub(super) fn newest(&self, session: SessionId) -> u64 {
        let own = self.batches.keys().filter(|batch| batch.session == session);
        own.map(|batch| batch.sequence).max().unwrap_or(0)
    }

    /// How many leases a session holds.
    pub(in crate::sqlite) fn held(&self, session: SessionId) -> usize {
        self.held.get(&session).copied().unwrap_or(0)
    }

    /// The batch that a task is leased in.
    pub(in crate::sqlite) fn batch_of(&self, task: TaskId) -> Option<Batch> {
        self.by_task.get(&task).copied()
    }

    /// All live leases of these sessions.
    pub(in crate::sqlite) fn leases(
        &self,
        of: impl Fn(SessionId) -> bool,
    ) -> Vec<(SessionId, Granted)> {
        let batches = self.batches.keys().filter(|batch| of(batch.session));
        let leases = batches.flat_map(|batch| {
            self.live(*batch).into_iter().map(|granted| (batch.session, granted))
        });
        leases.collect()
    }

    /// The session has said that it has this batch.
    pub(in crate::sqlite) fn receive(&mut self, batch: Batch) {
        if let Some(leases) = self.batches.get_mut(&batch) {
            leases.received = true;
        }
    }

    /// The batch is handed to its session once more.
    pub(in crate::sqlite) fn serve_again(&mut self, batch: Batch, now: i64) {
        if let Some(leases) = self.batches.get_mut(&batch) {
            leases.served_at = now;
        }
    }

    /// Whether a batch was handed over before this instant and is not acknowledged.
    pub(in crate::sqlite) fn is_unacknowledged(&self, batch: Batch, before: i64) -> bool {
        let leases = self.batches.get(&batch);
        leases.is_some_and(|leases| !leases.received && leases.served_at < before)
    }

    /// Batches in which leases may be overdue.
    pub(in crate::sqlite) fn overdue(&self, now: i64) -> Vec<Batch> {
        let late = self.overdue.iter().take_while(|(deadline, _)| *deadline <= now);
        late.map(|(_, batch)| *batch).collect()
    }

    /// When to look for overdue leases next.
    pub(in crate::sqlite) fn next_deadline(&self) -> Option<i64> {
        self.overdue.first().map(|(deadline, _)| *deadline)
    }

    /// When this lease is overdue.
    pub(in crate::sqlite) fn deadline(&self, held: &Held) -> i64 {
        let extended = self.extended.get(&held.task).copied();
        extended.unwrap_or_else(|| self.due_back(held))
    }

    fn due_back(&self, held: &Held) -> i64 {
        let limit = held.time_limit_ms + millis(DEADLINE_SLACK);
        held.granted_at.max(self.floor).saturating_add(limit)
    }

    /// Moves the deadline of one lease.
    pub(in crate::sqlite) fn extend(
        &mut self,
        connection: &Connection,
        lease: Granted,
        deadline: i64,
    ) -> Result<()> {
        connection
            .prepare_cached(
                "/* extend.keep */ INSERT OR REPLACE INTO extension (task, epoch, deadline)
                 VALUES (?, ?, ?)",
            )?
            .execute(params![lease.task.as_bytes(), lease.epoch, deadline])?;
        self.extended.insert(lease.task, deadline);
        if let Some(batch) = self.batch_of(lease.task)
            && self.batches.get(&batch).is_some_and(|leases| deadline < leases.deadline)
        {
            self.look_at(batch, deadline);
        }
        Ok(())
    }

    /// Looks at a batch again at this time.
    pub(in crate::sqlite) fn look_at(&mut self, batch: Batch, deadline: i64) {
        let Some(leases) = self.batches.get_mut(&batch) else { return };
        self.overdue.remove(&(leases.deadline, batch));
        leases.deadline = deadline;
        self.overdue.insert((deadline, batch));
    }

    /// Removes rows that could not be read. Answers whether batches were among them, whose leases
    /// nothing else tells of.
    pub(in crate::sqlite) fn remove_damaged(&mut self, connection: &Connection) -> Result<bool> {
        let Damaged { batches, extensions } = std::mem::take(&mut self.damaged);
        for (session, sequence) in &batches {
            connection.execute(
                "DELETE FROM grant_log WHERE session = ? AND sequence = ?",
                params![session, sequence],
            )?;
        }
        for task in extensions {
            connection.execute("DELETE FROM extension WHERE task = ?", [task])?;
        }
        Ok(!batches.is_empty())
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

/// Reads a batch: session, sequence, granted_at and leases.
fn recorded(row: &Row<'_>) -> Result<(Batch, i64, Vec<Granted>)> {
    let session = SessionId::from_bytes(row.get(0)?);
    let batch = Batch { session, sequence: row.get(1)? };
    let leases = row.get_ref(3)?.as_blob().map_err(|_| damaged_leases(session))?;
    Ok((batch, row.get(2)?, unpack(session, leases)?))
}

/// The deadlines that were moved.
fn extensions(
    connection: &Connection,
    damaged: &mut Damaged,
) -> Result<HashMap<(TaskId, u32), i64>> {
    let mut statement = connection.prepare("SELECT task, epoch, deadline FROM extension")?;
    let mut rows = statement.query([])?;
    let mut extensions = HashMap::default();
    while let Some(row) = rows.next()? {
        match moved(row) {
            Ok((lease, deadline)) => {
                extensions.insert(lease, deadline);
            }
            // Its lease has the deadline that it had without it.
            Err(fault) if fault.is_bad_row() => {
                tracing::error!(%fault, table = "extension", "a moved deadline cannot be read");
                damaged.extensions.push(row.get(0)?);
            }
            Err(fault) => return Err(fault),
        }
    }
    Ok(extensions)
}

/// Reads a lease and its deadline.
fn moved(row: &Row<'_>) -> Result<((TaskId, u32), i64)> {
    Ok(((TaskId::from_bytes(row.get(0)?), row.get(1)?), row.get(2)?))
}

/// Sessions that hold a quarantined task.
pub(super) type Quarantining = HashSet<SessionId>;

/// What a task's row says of its live lease.
pub(in crate::sqlite) struct Held {
    task: TaskId,
    pub(in crate::sqlite) range: Range,
    granted_at: i64,
    time_limit_ms: i64,
}

/// Reads a lease, if it lives.
pub(in crate::sqlite) fn held(
    connection: &Connection,
    batch: Batch,
    lease: Granted,
) -> Result<Option<Held>> {
    let mut statement = connection.prepare_cached(
        "/* grant.held */ SELECT lane, rank, granted_at, timeout_ms FROM task
         WHERE id = ? AND epoch = ? AND session = ? AND status = 2",
    )?;
    let key = params![lease.task.as_bytes(), lease.epoch, batch.session.as_bytes()];
    let held = statement.query_row(key, |row| {
        let timeout = row::decode_duration(row.get(3)?).unwrap_or(DEFAULT_TIMEOUT);
        Ok(Held {
            task: lease.task,
            range: Range { lane: row.get(0)?, rank: row.get(1)? },
            granted_at: row.get::<_, Option<i64>>(2)?.unwrap_or_default(),
            time_limit_ms: millis(timeout),
        })
    });
    Ok(held.optional()?)
}

fn millis(duration: std::time::Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// The leases of a batch as they are recorded, and when the first of them is overdue.
pub(in crate::sqlite) fn record<'a>(
    leases: impl Iterator<Item = &'a Lease>,
) -> (Vec<Granted>, i64) {
    let mut deadline = i64::MAX;
    let granted = leases.map(|lease| {
        deadline = deadline.min(lease.deadline().millis());
        Granted { task: lease.task, epoch: lease.epoch }
    });
    (granted.collect(), deadline)
}

fn pack(granted: &[Granted]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(granted.len() * PACKED);
    for lease in granted {
        packed.extend_from_slice(lease.task.as_bytes());
        packed.extend_from_slice(&lease.epoch.to_be_bytes());
    }
    packed
}

/// The leases of a batch, as its row holds them.
pub(in crate::sqlite) fn unpack(session: SessionId, packed: &[u8]) -> Result<Vec<Granted>> {
    let (leases, rest) = packed.as_chunks::<PACKED>();
    if !rest.is_empty() {
        return Err(damaged_leases(session));
    }
    let one = |lease: &[u8; PACKED]| {
        let task = TaskId::from_bytes(*lease.first_chunk().expect("16 of 20 bytes"));
        let epoch = u32::from_be_bytes(*lease.last_chunk().expect("4 of 20 bytes"));
        Granted { task, epoch }
    };
    Ok(leases.iter().map(one).collect())
}

fn damaged_leases(session: SessionId) -> Fault {
    Fault::Corrupt { table: "grant_log", column: "leases", id: session.to_string() }
}
