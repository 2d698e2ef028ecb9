//! Reading what attempts have told.

use std::sync::Arc;

use async_trait::async_trait;
use duly_core::id::TaskId;
use duly_core::limits::{LOG_EXCERPT_BYTES, LOG_PIECE_OVERHEAD, STORE_BATCH};
use duly_core::ports::store::{self, Error, LogPage, LogPart, ReadLogs, Report, Reported, Reports};
use duly_core::state::Status;
use duly_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::error::Result;
use super::{SqliteStore, row};

#[async_trait]
impl Reports for SqliteStore {
    async fn report(&self, report: Report) -> store::Result<Vec<Reported>> {
        if report.items.len() > STORE_BATCH {
            return Err(Error::TooLarge { what: "a batch of reports", limit: STORE_BATCH });
        }
        self.ask(report).await
    }

    async fn logs(&self, read: ReadLogs) -> store::Result<Option<LogPage>> {
        self.readers.query(move |connection| logs(connection, &read)).await
    }
}

fn logs(connection: &Connection, read: &ReadLogs) -> Result<Option<LogPage>> {
    // One transaction, so that a run that has ended is read with all it has logged.
    let moment = connection.unchecked_transaction()?;
    let Some(live) = is_live(connection, read)? else { return Ok(None) };
    let (parts, next) = (Vec::new(), read.after);
    let page = fill(connection, read, LogPage { parts, next, live })?;
    moment.finish()?;
    Ok(Some(page))
}

/// Whether more may be logged; nothing if the task is absent.
fn is_live(connection: &Connection, read: &ReadLogs) -> Result<Option<bool>> {
    let mut statement = connection.prepare_cached(
        "/* logs.task */ SELECT status, epoch FROM task JOIN lane ON lane.id = task.lane
         WHERE task.id = ? AND lane.tenant = ?",
    )?;
    let key = params![read.task.as_bytes(), read.tenant.as_str()];
    let found = statement.query_row(key, |row| Ok((row.get(0)?, row.get::<_, u32>(1)?)));
    let Some((status, newest)) = found.optional()? else { return Ok(None) };
    let status = row::decode_status(status, read.task.as_bytes())?;
    Ok(Some(match read.epoch {
        Some(epoch) if epoch == newest => status == Status::Running,
        Some(epoch) if epoch < newest => false,
        _ => !status.is_terminal(),
    }))
}

fn fill(connection: &Connection, read: &ReadLogs, mut page: LogPage) -> Result<LogPage> {
    let mut statement = connection.prepare_cached(
        "/* logs */ SELECT run, attempt, epoch, offset, at, text FROM log
         WHERE task = ?1 AND (epoch, offset) >= (?2, ?3) AND epoch BETWEEN ?4 AND ?5
         ORDER BY epoch, offset",
    )?;
    let (from, to) = read.epoch.map_or((0, u32::MAX), |epoch| (epoch, epoch));
    let start = start(connection, read)?;
    let key = params![read.task.as_bytes(), read.after.epoch, start, from, to];
    let mut rows = statement.query(key)?;
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        let Some(part) = part(row)?.after(read.after) else { continue };
        bytes += part.text.len() + LOG_PIECE_OVERHEAD;
        if bytes > read.limit && !page.parts.is_empty() {
            break;
        }
        page.next = part.end();
        page.parts.push(part);
    }
    Ok(page)
}

/// Where the piece starts that the reader's place may be within.
fn start(connection: &Connection, read: &ReadLogs) -> Result<u64> {
    let mut statement = connection.prepare_cached(
        "/* logs.start */ SELECT offset FROM log WHERE task = ? AND epoch = ? AND offset <= ?
         ORDER BY offset DESC LIMIT 1",
    )?;
    let key = params![read.task.as_bytes(), read.after.epoch, read.after.offset];
    let start = statement.query_row(key, |row| row.get(0)).optional()?;
    Ok(start.unwrap_or(read.after.offset))
}

fn part(row: &Row<'_>) -> Result<LogPart> {
    Ok(LogPart {
        run: row.get(0)?,
        attempt: row.get(1)?,
        epoch: row.get(2)?,
        offset: row.get(3)?,
        at: Timestamp::clamped(row.get(4)?),
        text: row.get::<_, String>(5)?.into(),
    })
}

/// The end of what an attempt has logged.
pub(super) fn excerpt(
    connection: &Connection,
    task: TaskId,
    epoch: u32,
) -> Result<Option<Arc<str>>> {
    let mut statement = connection.prepare_cached(
        "/* attempts.log */ SELECT text FROM log WHERE task = ? AND epoch = ?
         ORDER BY offset DESC",
    )?;
    let mut rows = statement.query(params![task.as_bytes(), epoch])?;
    let (mut texts, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        let text: String = row.get(0)?;
        bytes += text.len();
        texts.push(text);
        if bytes >= LOG_EXCERPT_BYTES {
            break;
        }
    }
    texts.reverse();
    let text = texts.concat();
    let end = &text[text.ceil_char_boundary(bytes.saturating_sub(LOG_EXCERPT_BYTES))..];
    Ok((!end.is_empty()).then(|| end.into()))
}
