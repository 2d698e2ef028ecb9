//! What attempts log. The caller holds the locks of their tasks' rows, and their leases live.

use duly_core::limits::{ATTEMPTS, LOG_BYTES, LOG_PIECE_BYTES, LOG_PIECES};
use duly_core::log::LogChunk;
use foldhash::HashMap;
use uuid::Uuid;

use super::Scope;
use crate::postgres::error::Result;

/// What an attempt has logged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Logged<'a> {
    pub(super) task: Uuid,
    pub(super) epoch: i32,
    pub(super) run: i32,
    pub(super) attempt: i32,
    pub(super) chunk: &'a LogChunk,
}

impl Logged<'_> {
    /// The last attempt whose log goes as this one begins.
    fn forgotten(&self) -> Option<i32> {
        let kept = i32::try_from(ATTEMPTS).expect("a small number");
        (self.epoch > kept).then(|| self.epoch - kept)
    }
}

/// Keeps what attempts have logged beyond what is there.
pub(super) async fn keep(scope: &Scope<'_>, mut logs: Vec<Logged<'_>>) -> Result<()> {
    logs.sort_by_key(|log| (log.task, log.epoch));
    while !logs.is_empty() {
        // Each piece of a log lies behind the last: two of one log are kept one after the other.
        let (mut now, mut later): (Vec<Logged<'_>>, Vec<_>) = (Vec::new(), Vec::new());
        for log in logs {
            let again =
                now.last().is_some_and(|last| (last.task, last.epoch) == (log.task, log.epoch));
            if again { later.push(log) } else { now.push(log) }
        }
        keep_one_of_each(scope, &now).await?;
        logs = later;
    }
    Ok(())
}

/// A text at its place in a log.
struct Piece<'a> {
    log: &'a Logged<'a>,
    start: i64,
    text: &'a str,
}

async fn keep_one_of_each(scope: &Scope<'_>, logs: &[Logged<'_>]) -> Result<()> {
    let last = last_pieces(scope, logs).await?;
    let (mut grown, mut added, mut forgotten) = (Vec::new(), Vec::new(), Forgotten::default());
    for log in logs {
        let last = last.get(&(log.task, log.epoch));
        let known = last.map_or(0, LastPiece::end);
        let Some((offset, text)) = log.chunk.beyond(known) else { continue };
        let kept_from = offset.saturating_add(text.len() as u64).saturating_sub(LOG_BYTES as u64);
        if kept_from > 0 {
            forgotten.beginnings.push((log.task, log.epoch, encode_offset(kept_from)));
        }
        match last {
            Some(last) if last.takes(offset, text) => {
                grown.push(Piece { log, start: last.start, text });
                continue;
            }
            Some(_) => forgotten.surplus.push((log.task, log.epoch)),
            None => forgotten.attempts.extend(log.forgotten().map(|up_to| (log.task, up_to))),
        }
        added.push(Piece { log, start: encode_offset(offset), text });
    }
    grow(scope, &grown).await?;
    add(scope, &added).await?;
    forgotten.forget(scope).await
}

/// The last piece of an attempt's log.
struct LastPiece {
    start: i64,
    bytes: usize,
}

impl LastPiece {
    fn end(&self) -> u64 {
        self.start.unsigned_abs().saturating_add(self.bytes as u64)
    }

    /// Whether what is at this place becomes part of it.
    fn takes(&self, offset: u64, text: &str) -> bool {
        self.end() == offset && self.bytes + text.len() <= LOG_PIECE_BYTES
    }
}

async fn last_pieces(
    scope: &Scope<'_>,
    logs: &[Logged<'_>],
) -> Result<HashMap<(Uuid, i32), LastPiece>> {
    let select = "/* report.last_pieces */ SELECT l.task, l.epoch, last.start, last.bytes
        FROM unnest($1::uuid[], $2::integer[]) l(task, epoch),
             LATERAL (SELECT start, octet_length(text) AS bytes FROM duly.log
                      WHERE log.task = l.task AND log.epoch = l.epoch
                      ORDER BY start DESC LIMIT 1) last";
    let tasks: Vec<_> = logs.iter().map(|log| log.task).collect();
    let epochs: Vec<_> = logs.iter().map(|log| log.epoch).collect();
    let mut pieces = HashMap::default();
    for row in scope.query(select, &[&tasks, &epochs]).await? {
        let bytes: i32 = row.try_get(3)?;
        let piece = LastPiece { start: row.try_get(2)?, bytes: bytes.unsigned_abs() as usize };
        pieces.insert((row.try_get(0)?, row.try_get(1)?), piece);
    }
    Ok(pieces)
}

/// Adds to pieces that are there.
async fn grow(scope: &Scope<'_>, pieces: &[Piece<'_>]) -> Result<()> {
    if pieces.is_empty() {
        return Ok(());
    }
    // One look into the index for each, whatever the planner believes of the table.
    let update = "/* report.grow */ UPDATE duly.log SET at = $5, text = log.text || grown.text
        FROM (SELECT held.ctid, n.text
              FROM unnest($1::uuid[], $2::integer[], $3::bigint[], $4::text[])
                       n(task, epoch, start, text),
                   LATERAL (SELECT ctid FROM duly.log WHERE log.task = n.task
                              AND log.epoch = n.epoch AND log.start = n.start LIMIT 1) held) grown
        WHERE log.ctid = grown.ctid";
    let tasks: Vec<_> = pieces.iter().map(|piece| piece.log.task).collect();
    let epochs: Vec<_> = pieces.iter().map(|piece| piece.log.epoch).collect();
    let starts: Vec<_> = pieces.iter().map(|piece| piece.start).collect();
    let texts: Vec<_> = pieces.iter().map(|piece| piece.text).collect();
    scope.execute(update, &[&tasks, &epochs, &starts, &texts, &scope.now.millis()]).await?;
    Ok(())
}

/// Starts new pieces.
async fn add(scope: &Scope<'_>, pieces: &[Piece<'_>]) -> Result<()> {
    if pieces.is_empty() {
        return Ok(());
    }
    let insert = "/* report.log */ INSERT INTO duly.log
            (task, epoch, start, at, run, attempt, text)
        SELECT n.task, n.epoch, n.start, $7, n.run, n.attempt, n.text
        FROM unnest($1::uuid[], $2::integer[], $3::bigint[], $4::integer[], $5::integer[],
                    $6::text[]) n(task, epoch, start, run, attempt, text)";
    let tasks: Vec<_> = pieces.iter().map(|piece| piece.log.task).collect();
    let epochs: Vec<_> = pieces.iter().map(|piece| piece.log.epoch).collect();
    let starts: Vec<_> = pieces.iter().map(|piece| piece.start).collect();
    let runs: Vec<_> = pieces.iter().map(|piece| piece.log.run).collect();
    let attempts: Vec<_> = pieces.iter().map(|piece| piece.log.attempt).collect();
    let texts: Vec<_> = pieces.iter().map(|piece| piece.text).collect();
    let now = scope.now.millis();
    scope.execute(insert, &[&tasks, &epochs, &starts, &runs, &attempts, &texts, &now]).await?;
    Ok(())
}

/// What is kept no longer.
#[derive(Default)]
struct Forgotten {
    /// Logs, and the byte from which on they are kept.
    beginnings: Vec<(Uuid, i32, i64)>,
    /// Logs that may have too many pieces.
    surplus: Vec<(Uuid, i32)>,
    /// Tasks, and the last of their attempts whose logs go.
    attempts: Vec<(Uuid, i32)>,
}

impl Forgotten {
    async fn forget(self, scope: &Scope<'_>) -> Result<()> {
        if !self.beginnings.is_empty() {
            let delete = "/* report.forget_beginnings */ DELETE FROM duly.log
                WHERE ctid = ANY(ARRAY(SELECT old.ctid
                    FROM unnest($1::uuid[], $2::integer[], $3::bigint[]) k(task, epoch, kept_from),
                         LATERAL (SELECT max(start) AS first FROM duly.log
                                  WHERE log.task = k.task AND log.epoch = k.epoch
                                    AND log.start <= k.kept_from) kept,
                         LATERAL (SELECT ctid FROM duly.log
                                  WHERE log.task = k.task AND log.epoch = k.epoch
                                    AND log.start < kept.first OFFSET 0) old))";
            let tasks: Vec<_> = self.beginnings.iter().map(|it| it.0).collect();
            let epochs: Vec<_> = self.beginnings.iter().map(|it| it.1).collect();
            let kept: Vec<_> = self.beginnings.iter().map(|it| it.2).collect();
            scope.execute(delete, &[&tasks, &epochs, &kept]).await?;
        }
        if !self.surplus.is_empty() {
            let delete = "/* report.forget_surplus */ DELETE FROM duly.log
                WHERE ctid = ANY(ARRAY(SELECT old.ctid
                    FROM unnest($1::uuid[], $2::integer[]) k(task, epoch),
                         LATERAL (SELECT ctid FROM duly.log
                                  WHERE log.task = k.task AND log.epoch = k.epoch
                                  ORDER BY log.start DESC OFFSET $3) old))";
            let tasks: Vec<_> = self.surplus.iter().map(|it| it.0).collect();
            let epochs: Vec<_> = self.surplus.iter().map(|it| it.1).collect();
            let kept = i64::try_from(LOG_PIECES).expect("a small number");
            scope.execute(delete, &[&tasks, &epochs, &kept]).await?;
        }
        if !self.attempts.is_empty() {
            let delete = "/* report.forget_logs */ DELETE FROM duly.log
                WHERE ctid = ANY(ARRAY(SELECT old.ctid
                    FROM unnest($1::uuid[], $2::integer[]) k(task, up_to),
                         LATERAL (SELECT ctid FROM duly.log WHERE log.task = k.task
                                    AND log.epoch <= k.up_to OFFSET 0) old))";
            let tasks: Vec<_> = self.attempts.iter().map(|it| it.0).collect();
            let up_to: Vec<_> = self.attempts.iter().map(|it| it.1).collect();
            scope.execute(delete, &[&tasks, &up_to]).await?;
        }
        Ok(())
    }
}

/// A place in a log as the server keeps it; it is bounded far below what does not fit.
fn encode_offset(offset: u64) -> i64 {
    i64::try_from(offset).unwrap_or(i64::MAX)
}
