//! Reading what attempts have reported.

use std::sync::Arc;

use async_trait::async_trait;
use duly_core::limits::{LOG_EXCERPT_BYTES, LOG_PIECE_OVERHEAD, STORE_BATCH};
use duly_core::ports::store::{self, Error, LogPage, LogPart, ReadLogs, Report, Reported, Reports};
use duly_core::state::Status;
use foldhash::HashMap;
use tokio_postgres::Row;
use uuid::Uuid;

use super::error::Result;
use super::snapshot::Snapshot;
use super::{PostgresStore, row};

#[async_trait]
impl Reports for PostgresStore {
    async fn report(&self, report: Report) -> store::Result<Vec<Reported>> {
        if report.items.len() > STORE_BATCH {
            return Err(Error::TooLarge { what: "a batch of reports", limit: STORE_BATCH });
        }
        Ok(self.run(&report).await?)
    }

    async fn logs(&self, read: ReadLogs) -> store::Result<Option<LogPage>> {
        let mut client = self.pool.get().await?;
        // One moment, so that a run that has ended is read with all it has logged.
        let snapshot = self.pool.snapshot(&mut client, &read.tenant).await?;
        let Some(live) = is_live(&snapshot, &read).await? else { return Ok(None) };
        let (parts, next) = (Vec::new(), read.after);
        Ok(Some(fill(&snapshot, &read, LogPage { parts, next, live }).await?))
    }
}

/// Whether more may be logged; nothing if the task is absent.
async fn is_live(snapshot: &Snapshot<'_>, read: &ReadLogs) -> Result<Option<bool>> {
    let select = "/* logs.task */ SELECT task.status, task.epoch
        FROM duly.task JOIN duly.lane ON lane.id = task.lane
        WHERE task.id = $1 AND lane.tenant = $2";
    let id = row::uuid(read.task);
    let Some(row) = snapshot.query_opt(select, &[&id, &read.tenant.as_str()]).await? else {
        return Ok(None);
    };
    let status = row::decode_status(row.try_get(0)?, id)?;
    let newest = row::count("task", "epoch", id, row.try_get(1)?)?;
    Ok(Some(match read.epoch {
        Some(epoch) if epoch == newest => status == Status::Running,
        Some(epoch) if epoch < newest => false,
        _ => !status.is_terminal(),
    }))
}

/// Pieces of a log that are read at a time: more than one answer can hold if they are as long as
/// pieces become.
const PIECES: i64 = 300;

async fn fill(snapshot: &Snapshot<'_>, read: &ReadLogs, mut page: LogPage) -> Result<LogPage> {
    // The first piece may be one that the reader's place is within.
    let select = "/* logs */ SELECT run, attempt, epoch, start, at, text FROM duly.log
        WHERE task = $1 AND (epoch, start) >= ($2, $3) AND epoch BETWEEN $4 AND $5
        ORDER BY epoch, start LIMIT $6";
    let id = row::uuid(read.task);
    let (from, to) = read.epoch.map_or((0, i32::MAX), |epoch| {
        let epoch = row::encode_count(epoch);
        (epoch, epoch)
    });
    let mut epoch = row::encode_count(read.after.epoch);
    let mut start = first(snapshot, read).await?;
    let mut bytes = 0;
    loop {
        let rows = snapshot.query(select, &[&id, &epoch, &start, &from, &to, &PIECES]).await?;
        for row in &rows {
            (epoch, start) = (row.try_get(2)?, row.try_get::<_, i64>(3)?.saturating_add(1));
            let Some(part) = part(row, id)?.after(read.after) else { continue };
            bytes += part.text.len() + LOG_PIECE_OVERHEAD;
            if bytes > read.limit && !page.parts.is_empty() {
                return Ok(page);
            }
            page.next = part.end();
            page.parts.push(part);
        }
        if i64::try_from(rows.len()).unwrap_or(i64::MAX) < PIECES {
            return Ok(page);
        }
    }
}

/// Where the piece starts that the reader's place may be within.
async fn first(snapshot: &Snapshot<'_>, read: &ReadLogs) -> Result<i64> {
    let select = "/* logs.start */ SELECT start FROM duly.log
        WHERE task = $1 AND epoch = $2 AND start <= $3 ORDER BY start DESC LIMIT 1";
    let offset = i64::try_from(read.after.offset).unwrap_or(i64::MAX);
    let epoch = row::encode_count(read.after.epoch);
    let found = snapshot.query_opt(select, &[&row::uuid(read.task), &epoch, &offset]).await?;
    Ok(found.map_or(Ok(offset), |row| row.try_get(0))?)
}

fn part(row: &Row, id: Uuid) -> Result<LogPart> {
    let count = |index, column| row::count("log", column, id, row.try_get(index)?);
    let start: i64 = row.try_get(3)?;
    Ok(LogPart {
        run: count(0, "run")?,
        attempt: count(1, "attempt")?,
        epoch: count(2, "epoch")?,
        offset: start.unsigned_abs(),
        at: row::instant(row.try_get(4)?),
        text: row.try_get::<_, &str>(5)?.into(),
    })
}

/// The end of what each attempt of a task has logged, by its grant.
pub(super) async fn excerpts(
    snapshot: &Snapshot<'_>,
    task: Uuid,
) -> Result<HashMap<i32, Arc<str>>> {
    let select = "/* attempts.logs */ SELECT epoch, text FROM (
            SELECT epoch, start, text, sum(octet_length(text)) OVER later - octet_length(text) AS behind
            FROM duly.log WHERE task = $1 WINDOW later AS (PARTITION BY epoch ORDER BY start DESC)
        ) piece WHERE behind < $2 ORDER BY epoch, start";
    let most = i64::try_from(LOG_EXCERPT_BYTES).expect("a small number");
    let mut texts: HashMap<i32, String> = HashMap::default();
    for row in snapshot.query(select, &[&task, &most]).await? {
        texts.entry(row.try_get(0)?).or_default().push_str(row.try_get(1)?);
    }
    let end = |text: String| {
        let surplus = text.len().saturating_sub(LOG_EXCERPT_BYTES);
        Arc::from(&text[text.ceil_char_boundary(surplus)..])
    };
    Ok(texts.into_iter().map(|(epoch, text)| (epoch, end(text))).collect())
}
