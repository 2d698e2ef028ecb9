//! Claims: pick what is due from the heads of the session's ranges, then grant it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use duly_core::id::TaskId;
use duly_core::lease::Lease;
use duly_core::ports::store::Claim;
use duly_core::state::{Event, Status, transition};
use duly_core::task::{Priority, claim_order};
use duly_core::time::Timestamp;
use rusqlite::{OptionalExtension as _, Row, params};

use super::Scope;
use crate::sqlite::error::{Fault, Result};
use crate::sqlite::index::grants::{Batch, Granted};
use crate::sqlite::index::heads::Range;
use crate::sqlite::row;

pub(super) fn claim(scope: &mut Scope<'_>, claim: &Claim) -> Result<Vec<Lease>> {
    let Some(session) = scope.index.sessions.get(claim.session) else { return Ok(Vec::new()) };
    let batch = Batch { session: claim.session, sequence: claim.sequence };
    if !session.admits(claim.sequence) {
        return repeat(scope, batch);
    }
    let picks = pick(scope, claim)?;
    let leases = grant(scope, claim, &picks)?;
    let session = scope.index.sessions.get_mut(claim.session).expect("looked up above");
    session.note(claim.sequence, !leases.is_empty());
    if !leases.is_empty() {
        let granted =
            leases.iter().map(|lease| Granted { task: lease.task, epoch: lease.epoch }).collect();
        scope.index.grants.add(scope.connection, batch, scope.now.millis(), granted)?;
    }
    Ok(leases)
}

/// A row of the due table; ordered as claims are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pick {
    order: i64,
    task: TaskId,
    run_at: i64,
    range: Range,
}

/// Due rows of one range, read in pieces.
struct Stream {
    range: Range,
    priority: Priority,
    rows: VecDeque<(i64, TaskId)>,
    after: (i64, [u8; 16]),
    piece: usize,
    ended: bool,
}

impl Stream {
    fn next(&mut self, scope: &Scope<'_>) -> Result<Option<Pick>> {
        if self.rows.is_empty() && !self.ended {
            self.read(scope)?;
        }
        let Some((run_at, task)) = self.rows.pop_front() else { return Ok(None) };
        let order = claim_order(Timestamp::from_millis(run_at), self.priority);
        Ok(Some(Pick { order, task, run_at, range: self.range }))
    }

    fn read(&mut self, scope: &Scope<'_>) -> Result<()> {
        let mut statement = scope.connection.prepare_cached(
            "/* claim.read */ SELECT run_at, task FROM due
             WHERE lane = ?1 AND rank = ?2 AND run_at <= ?3 AND run_at >= ?4
               AND (run_at, task) > (?4, ?5)
             ORDER BY run_at, task LIMIT ?6",
        )?;
        let (run_at, task) = self.after;
        let Range { lane, rank } = self.range;
        let mut rows =
            statement.query(params![lane, rank, scope.now.millis(), run_at, task, self.piece])?;
        let mut read = 0;
        while let Some(row) = rows.next()? {
            let task = TaskId::from_bytes(row.get(1)?);
            self.rows.push_back((row.get(0)?, task));
            read += 1;
        }
        if let Some((run_at, task)) = self.rows.back() {
            self.after = (*run_at, *task.as_bytes());
        }
        self.ended = read < self.piece;
        Ok(())
    }
}

/// Merges the session's due ranges and takes the first `max` tasks out of the due table.
fn pick(scope: &mut Scope<'_>, claim: &Claim) -> Result<Vec<Pick>> {
    let session = scope.index.sessions.get(claim.session).expect("looked up by the caller");
    let due = scope.index.heads.due(scope.now.millis());
    let ranges: Vec<Range> = due.filter(|range| session.serves(range.lane)).collect();
    if ranges.is_empty() || claim.max == 0 {
        return Ok(Vec::new());
    }
    let piece = claim.max.div_ceil(ranges.len()) + 8;
    let mut streams = Vec::with_capacity(ranges.len());
    let mut heap = BinaryHeap::with_capacity(ranges.len());
    for range in ranges {
        let Some(priority) = Priority::from_rank(range.rank) else {
            let id = range.lane.to_string();
            return Err(Fault::Corrupt { table: "due", column: "rank", id });
        };
        let after = (i64::MIN, [0; 16]);
        let rows = VecDeque::new();
        let mut stream = Stream { range, priority, rows, after, piece, ended: false };
        heap.extend(stream.next(scope)?.map(|pick| Reverse((pick, streams.len()))));
        streams.push(stream);
    }
    let mut picks = Vec::with_capacity(claim.max.min(heap.len() * piece));
    let mut last = vec![None; streams.len()];
    while picks.len() < claim.max {
        let Some(Reverse((pick, at))) = heap.pop() else { break };
        picks.push(pick);
        last[at] = Some(pick);
        heap.extend(streams[at].next(scope)?.map(|pick| Reverse((pick, at))));
    }
    for pick in last.into_iter().flatten() {
        take_out(scope, pick)?;
    }
    Ok(picks)
}

/// Removes a range's rows up to and including `last`: picks of one range are always its first
/// rows, so one statement serves them all.
fn take_out(scope: &mut Scope<'_>, last: Pick) -> Result<()> {
    let Range { lane, rank } = last.range;
    scope
        .connection
        .prepare_cached(
            "/* claim.take_out */ DELETE FROM due WHERE lane = ?1 AND rank = ?2 AND run_at <= ?3
               AND (run_at, task) <= (?3, ?4)",
        )?
        .execute(params![lane, rank, last.run_at, last.task.as_bytes()])?;
    scope.index.heads.refresh(scope.connection, last.range)
}

/// PENDING → RUNNING under the next epoch. A due row whose task does not wait just disappears.
///
/// Read and write are two statements: one with RETURNING opens a temporary table for its rows
/// each time, which costs more than the second look-up on a page that is at hand.
fn grant(scope: &Scope<'_>, claim: &Claim, picks: &[Pick]) -> Result<Vec<Lease>> {
    let status = transition(Status::Pending, Event::Grant).expect("a waiting task can be granted");
    let mut read = scope.connection.prepare_cached(
        "/* claim.read_task */ SELECT epoch + 1, run, charged, retries, timeout_ms, payload, run_at
         FROM task WHERE id = ? AND lane = ? AND status = 1",
    )?;
    let mut write = scope.connection.prepare_cached(
        "/* claim.grant */ UPDATE task SET status = ?3, session = ?4, epoch = ?2, granted_at = ?5
         WHERE id = ?1 AND epoch = ?2 - 1 AND status = 1",
    )?;
    let mut leases = Vec::with_capacity(picks.len());
    for pick in picks {
        let lane = scope.index.lanes.get(pick.range.lane)?;
        let key = params![pick.task.as_bytes(), pick.range.lane];
        let lease = |found: &Row<'_>| row::lease(found, pick.task, lane, scope.now);
        let Some(lease) = read.query_row(key, lease).optional()? else { continue };
        write.execute(params![
            pick.task.as_bytes(),
            lease.epoch,
            row::encode_status(status),
            claim.session.as_bytes(),
            scope.now.millis(),
        ])?;
        leases.push(row::with_payload(scope.connection, lease)?);
    }
    Ok(leases)
}

/// What an earlier claim with this sequence was granted and still holds.
fn repeat(scope: &Scope<'_>, batch: Batch) -> Result<Vec<Lease>> {
    let mut statement = scope.connection.prepare_cached(
        "/* claim.repeat */ SELECT epoch, run, charged, retries, timeout_ms, payload, run_at, granted_at,
                lane
         FROM task WHERE id = ? AND epoch = ? AND session = ? AND status = 2",
    )?;
    let mut leases = Vec::new();
    for granted in scope.index.grants.live(batch) {
        let key = params![granted.task.as_bytes(), granted.epoch, batch.session.as_bytes()];
        let held = |row: &Row<'_>| Ok((row.get(7)?, row.get(8)?));
        let Some((at, lane)) = statement.query_row(key, held).optional()? else { continue };
        let (at, lane) = (Timestamp::from_millis(at), scope.index.lanes.get(lane)?);
        let lease = statement.query_row(key, |found| row::lease(found, granted.task, lane, at))?;
        leases.push(row::with_payload(scope.connection, lease)?);
    }
    Ok(leases)
}
