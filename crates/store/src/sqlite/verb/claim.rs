//! Claims: pick what is due from the heads of the session's ranges, then grant it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use duly_core::id::{SessionId, TaskId};
use duly_core::lease::Lease;
use duly_core::limits::STORE_BATCH_BYTES;
use duly_core::ports::store::Claim;
use duly_core::task::{Failure, Priority, claim_order};
use duly_core::time::Timestamp;
use rusqlite::{CachedStatement, OptionalExtension as _, Row, params};

use super::Scope;
use crate::sqlite::error::{Fault, Result};
use crate::sqlite::index::Index;
use crate::sqlite::index::grants::Batch;
use crate::sqlite::index::heads::Range;
use crate::sqlite::row;
use crate::sqlite::task_state::ended::spoiled;
use crate::sqlite::task_state::granted::granted;

pub(super) fn claim(scope: &mut Scope<'_>, claim: &Claim) -> Result<Vec<Lease>> {
    let Some(session) = scope.index.sessions.get(claim.session) else { return Ok(Vec::new()) };
    let batch = Batch { session: claim.session, sequence: claim.sequence };
    if !session.admits(claim.sequence, &scope.index.grants) {
        scope.index.grants.serve_again(batch, scope.now.millis());
        return repeat(scope, batch);
    }
    let session = scope.index.sessions.get_mut(claim.session).expect("looked up above");
    session.waits_for = None;
    session.alone &= scope.index.grants.held(claim.session) > 0;
    let leases = pick(scope, claim)?;
    granted(scope, batch, &leases)?;
    let session = scope.index.sessions.get_mut(claim.session).expect("looked up above");
    session.note(claim.sequence, !leases.is_empty());
    Ok(leases)
}

/// A row of the due table.
#[derive(Clone, Copy, Debug)]
struct Pick {
    task: TaskId,
    run_at: i64,
    range: Range,
}

/// Due rows of one range in order, read in pieces and only when it is their turn.
struct Stream {
    range: Range,
    priority: Priority,
    rows: VecDeque<Pick>,
    taken: usize,
    last: Option<Pick>,
    piece: usize,
    ended: bool,
}

/// The next row of a stream, by the order of claims: its order, its task and the number of the stream.
/// A stream that was not read yet has no task, and comes before any row that its first row may equal.
type NextRow = Reverse<(i64, Option<TaskId>, usize)>;

impl Stream {
    /// Nothing for a rank that no priority has.
    fn new(range: Range, piece: usize) -> Option<Self> {
        let priority = range.priority()?;
        let rows = VecDeque::new();
        Some(Self { range, priority, rows, taken: 0, last: None, piece, ended: false })
    }

    /// The next row, if there is one.
    fn next_row(&mut self, scope: &Scope<'_>, number: usize) -> Result<Option<NextRow>> {
        if self.rows.is_empty() && !self.ended {
            self.read(scope)?;
        }
        let order = |pick: &Pick| claim_order(Timestamp::clamped(pick.run_at), self.priority);
        Ok(self.rows.front().map(|pick| Reverse((order(pick), Some(pick.task), number))))
    }

    fn take(&mut self) {
        self.last = self.rows.pop_front();
        self.taken += 1;
    }

    fn read(&mut self, scope: &Scope<'_>) -> Result<()> {
        let mut statement = scope.connection.prepare_cached(
            "/* claim.read */ SELECT run_at, task FROM due
             WHERE lane = ?1 AND rank = ?2 AND run_at <= ?3 AND run_at >= ?4
               AND (run_at, task) > (?4, ?5)
             ORDER BY run_at, task LIMIT ?6",
        )?;
        let Range { lane, rank } = self.range;
        let (after, task) =
            self.last.map_or((i64::MIN, [0; 16]), |last| (last.run_at, *last.task.as_bytes()));
        let mut rows =
            statement.query(params![lane, rank, scope.now.millis(), after, task, self.piece])?;
        while let Some(row) = rows.next()? {
            let task = TaskId::from_bytes(row.get(1)?);
            self.rows.push_back(Pick { task, run_at: row.get(0)?, range: self.range });
        }
        self.ended = self.rows.len() < self.piece;
        Ok(())
    }
}

/// Merges the session's due ranges and takes the first `max` tasks out of the due table, fewer
/// if their payloads are large.
fn pick(scope: &mut Scope<'_>, claim: &Claim) -> Result<Vec<Lease>> {
    let idle = scope.index.grants.held(claim.session) == 0;
    if scope.index.sessions.is_isolating(claim.session, &scope.index.grants) {
        return Ok(Vec::new());
    }
    let (mut streams, mut heap) = streams(scope, claim);
    let mut tasks = scope.connection.prepare_cached(READ_TASK)?;
    let (mut leases, mut bytes) = (Vec::new(), 0);
    while leases.len() < claim.max {
        let Some(Reverse((_, known, number))) = heap.pop() else { break };
        let stream = &mut streams[number];
        if let (Some(_), Some(pick)) = (known, stream.rows.front().copied()) {
            if pick.range.is_quarantined() && !(idle && leases.is_empty()) {
                if pass_by(scope, claim.session, pick.task) {
                    stream.take();
                    heap.extend(stream.next_row(scope, number)?);
                    continue;
                }
                break;
            }
            match read(scope, &mut tasks, pick) {
                Ok(Some(lease)) => {
                    bytes += lease.payload.len();
                    if bytes > STORE_BATCH_BYTES && !leases.is_empty() {
                        break;
                    }
                    leases.push(lease);
                }
                // A due row whose task does not wait just disappears.
                Ok(None) => {}
                Err(fault) if fault.is_bad_row() => spoil(scope, pick, &fault)?,
                Err(fault) => return Err(fault),
            }
            stream.take();
            if pick.range.is_quarantined() {
                take_out_one(scope, pick)?;
                if !leases.is_empty() {
                    let session = scope.index.sessions.get_mut(claim.session);
                    session.expect("it claims").alone = true;
                    break;
                }
            }
        }
        heap.extend(stream.next_row(scope, number)?);
    }
    for stream in streams.iter().filter(|stream| !stream.range.is_quarantined()) {
        take_out(scope, stream)?;
    }
    Ok(leases)
}

/// A session that holds something, or is about to, comes upon a quarantined task: it takes nothing
/// more until it can take this one alone, unless another session does so already.
fn pass_by(scope: &mut Scope<'_>, session: SessionId, task: TaskId) -> bool {
    let Index { sessions, grants, .. } = &mut *scope.index;
    let waited_for = sessions.is_waited_for(task, session, grants);
    if !waited_for {
        sessions.get_mut(session).expect("it claims").waits_for = Some(task);
    }
    waited_for
}

/// The due ranges of a claim, none of them read yet, in the order of their first rows.
fn streams(scope: &Scope<'_>, claim: &Claim) -> (Vec<Stream>, BinaryHeap<NextRow>) {
    let session = scope.index.sessions.get(claim.session).expect("looked up by the caller");
    let due = scope.index.heads.due(scope.now.millis());
    let lanes = &scope.index.lanes;
    let serves = |lane| session.serves(lane) && lanes.accepts(claim, lane);
    let due: Vec<_> = due.filter(|(_, range)| serves(range.lane)).collect();
    let piece = claim.max.div_ceil(due.len().max(1)) + 8;
    let mut streams = Vec::with_capacity(due.len());
    let mut heap = BinaryHeap::with_capacity(due.len());
    for (run_at, range) in due {
        let Some(stream) = Stream::new(range, piece.min(claim.max)) else { continue };
        let order = claim_order(Timestamp::clamped(run_at), stream.priority);
        heap.push(Reverse((order, None, streams.len())));
        streams.push(stream);
    }
    (streams, heap)
}

const READ_TASK: &str = "/* claim.read_task */ SELECT epoch + 1, run, charged, retries, timeout_ms,
        payload, run_at, links
    FROM task WHERE id = ? AND lane = ? AND status = 1";

/// The lease that a pick would be, if its task waits.
fn read(
    scope: &Scope<'_>,
    statement: &mut CachedStatement<'_>,
    pick: Pick,
) -> Result<Option<Lease>> {
    let lane = scope.index.lanes.get(pick.range.lane)?;
    let key = params![pick.task.as_bytes(), pick.range.lane];
    let lease = |found: &Row<'_>| row::lease(found, pick.task, lane, scope.now);
    let lease = statement.query_row(key, lease).optional()?;
    lease.map(|lease| row::with_payload(scope.connection, lease)).transpose()
}

/// A task that cannot be read is failed by itself: it must not stop those behind it.
fn spoil(scope: &mut Scope<'_>, pick: Pick, fault: &Fault) -> Result<()> {
    tracing::error!(task.id = %pick.task, %fault, "a stored task is damaged and was failed");
    spoiled(scope, pick.task, &Failure::new("CORRUPT", fault.to_string()))
}

/// Removes what was picked of a range. Picks of one range are always its first rows, so one
/// statement serves them all; a single row has one of its own, which needs no temporary table.
fn take_out(scope: &mut Scope<'_>, stream: &Stream) -> Result<()> {
    match stream.last {
        None => return Ok(()),
        Some(last) if stream.taken == 1 => delete_one(scope, last)?,
        Some(last) => delete_to(scope, last)?,
    }
    match stream.rows.front() {
        Some(next) => scope.index.heads.begins_at(stream.range, next.run_at),
        None => scope.index.heads.refresh(scope.connection, stream.range)?,
    }
    Ok(())
}

/// Removes one quarantined task: those before it may have been passed by.
fn take_out_one(scope: &mut Scope<'_>, pick: Pick) -> Result<()> {
    delete_one(scope, pick)?;
    scope.index.heads.refresh(scope.connection, pick.range)
}

fn delete_to(scope: &Scope<'_>, last: Pick) -> Result<()> {
    let Range { lane, rank } = last.range;
    scope
        .connection
        .prepare_cached(
            "/* claim.delete_to */ DELETE FROM due WHERE lane = ?1 AND rank = ?2 AND run_at <= ?3
               AND (run_at, task) <= (?3, ?4)",
        )?
        .execute(params![lane, rank, last.run_at, last.task.as_bytes()])?;
    Ok(())
}

fn delete_one(scope: &Scope<'_>, pick: Pick) -> Result<()> {
    let Range { lane, rank } = pick.range;
    scope
        .connection
        .prepare_cached(
            "/* claim.delete_one */ DELETE FROM due
             WHERE lane = ? AND rank = ? AND run_at = ? AND task = ?",
        )?
        .execute(params![lane, rank, pick.run_at, pick.task.as_bytes()])?;
    Ok(())
}

/// What an earlier claim with this sequence was granted and still holds.
fn repeat(scope: &Scope<'_>, batch: Batch) -> Result<Vec<Lease>> {
    let mut statement = scope.connection.prepare_cached(
        "/* claim.repeat */ SELECT epoch, run, charged, retries, timeout_ms, payload, run_at, links,
                granted_at, lane
         FROM task WHERE id = ? AND epoch = ? AND session = ? AND status = 2",
    )?;
    let mut leases = Vec::new();
    for lease in scope.index.grants.live(batch) {
        let key = params![lease.task.as_bytes(), lease.epoch, batch.session.as_bytes()];
        let held = |row: &Row<'_>| Ok((row.get(8)?, row.get(9)?));
        let Some((at, lane)) = statement.query_row(key, held).optional()? else { continue };
        let (at, lane) = (Timestamp::clamped(at), scope.index.lanes.get(lane)?);
        let task = lease.task;
        let lease = statement.query_row(key, |found| row::lease(found, task, lane, at))?;
        leases.push(row::with_payload(scope.connection, lease)?);
    }
    Ok(leases)
}
