//! Tidying: windows move, sinks that nobody reads or that are too far behind go, and so do segments that
//! every sink has received. A store without sinks and events is only looked at.

use std::time::Duration;

use deadpool_postgres::{Client, GenericClient as _};
use duly_core::event::SinkName;
use duly_core::ports::store::{Lag, Tidied, TidyEvents};

use super::{LAG, read, sink_name};
use crate::postgres::PostgresStore;
use crate::postgres::error::Result;
use crate::postgres::row;
use crate::postgres::verb::sinks::{forget_wanted, hold_wanted};
use crate::postgres::verb::{Scope, Verb};

/// How far apart marks are at least: a window ends so much later than it could.
const BETWEEN_MARKS: Duration = Duration::from_secs(5);
/// A segment is written to until it has so many rows, or its first row is so old, or every sink has
/// received all of it.
const SEGMENT_ROWS: i64 = 10_000;
const SEGMENT_AGE: Duration = Duration::from_secs(60);
const SEGMENTS: i16 = 4;

impl PostgresStore {
    pub(super) async fn tidy(&self, order: TidyEvents) -> Result<Tidied> {
        let client = self.pool.get().await?;
        if is_empty(&client).await? {
            return Ok(Tidied::default());
        }
        adopt(&client).await?;
        self.mark(&client).await?;
        drop(client);
        let Cleared { expired, suspended } = self.run(&Clear(order)).await?;
        let client = self.pool.get().await?;
        turn(&client).await?;
        Ok(Tidied { removed: empty_segments(&client).await?, suspended, expired })
    }

    /// Marks what is to be seen now, if there are windows and something is new since the last mark.
    async fn mark(&self, client: &Client) -> Result<()> {
        let select = "/* mark.due */ SELECT FROM (SELECT max(at) AS at FROM duly.event_mark) last
            LEFT JOIN duly.event_mark m ON m.at = last.at
            WHERE EXISTS (SELECT FROM duly.sink WHERE window_ms IS NOT NULL)
              AND CASE WHEN m.at IS NULL THEN EXISTS (SELECT FROM duly.outbox)
                       ELSE m.at + $1 <= duly.now() AND EXISTS (SELECT FROM duly.unseen_events(
                           m.seen, m.low, NULL, NULL, NULL, 0, 0, '{0,1,2,3}', 1)) END";
        let statement = client.prepare_cached(select).await?;
        if client.query_opt(&statement, &[&millis(BETWEEN_MARKS)]).await?.is_none() {
            return Ok(());
        }
        let low = read::event_low(client).await?;
        let insert = "/* mark.make */ INSERT INTO duly.event_mark (at, seen, low, high)
            SELECT duly.now(), pg_current_snapshot(), $1, s.last_value FROM duly.event_number s
            ON CONFLICT DO NOTHING";
        let statement = client.prepare_cached(insert).await?;
        client.execute(&statement, &[&low]).await?;
        Ok(())
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).expect("minutes")
}

async fn is_empty(client: &Client) -> Result<bool> {
    let select = "/* outbox.is_empty */ SELECT NOT EXISTS (SELECT FROM duly.sink)
        AND NOT EXISTS (SELECT FROM duly.outbox) AND NOT EXISTS (SELECT FROM duly.event_mark)";
    let statement = client.prepare_cached(select).await?;
    Ok(client.query_one(&statement, &[]).await?.try_get(0)?)
}

/// Looks whether the database was copied from a server that was further on. A row that is to be seen has
/// its id from below the snapshot that sees it, unless it was copied.
async fn adopt(client: &Client) -> Result<()> {
    let select = "/* outbox.is_copied */ SELECT v.now::text FROM (SELECT pg_current_snapshot() AS now) v
        WHERE EXISTS (SELECT FROM duly.sink s
                      WHERE pg_snapshot_xmax(coalesce(s.next_seen, s.seen)) > pg_snapshot_xmax(v.now))
           OR EXISTS (SELECT FROM duly.outbox o WHERE o.made_in >= pg_snapshot_xmax(v.now))";
    let statement = client.prepare_cached(select).await?;
    let Some(copied) = client.query_opt(&statement, &[]).await? else { return Ok(()) };
    let before: String = copied.try_get(0)?;
    tracing::warn!(
        "the database was copied from another server: sinks receive stored events again"
    );
    let adopt = "/* outbox.adopt */ SELECT duly.adopt_events($1::text::pg_snapshot)";
    let statement = client.prepare_cached(adopt).await?;
    client.query_one(&statement, &[&before]).await?;
    Ok(())
}

struct Clear(TidyEvents);

#[derive(Default)]
struct Cleared {
    expired: Vec<SinkName>,
    suspended: Vec<SinkName>,
}

impl Verb for Clear {
    type Answer = Cleared;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<Cleared> {
        let late = self.late(scope).await?;
        let expired = "/* sink.is_expired */ SELECT FROM duly.sink WHERE put_at + window_ms <= $1";
        let expires = !scope.query(expired, &[&scope.now.millis()]).await?.is_empty();
        if late.is_empty() && !expires {
            move_windows(scope).await?;
            return Ok(Cleared::default());
        }
        hold_wanted(scope).await?;
        let mut cleared = Cleared { expired: expire(scope).await?, ..Cleared::default() };
        for (name, reason) in late {
            let update = "/* sink.suspend */ UPDATE duly.sink SET suspended_at = $2,
                    suspended_reason = $3, node = NULL, held_until = 0
                WHERE name = $1 AND window_ms IS NULL AND suspended_at IS NULL";
            let now = scope.now.millis();
            if scope.execute(update, &[&name.as_str(), &now, &reason]).await? > 0 {
                cleared.suspended.push(name);
            }
        }
        let gone: Vec<_> =
            cleared.expired.iter().chain(&cleared.suspended).map(SinkName::as_str).collect();
        forget_wanted(scope, &gone).await?;
        move_windows(scope).await?;
        Ok(cleared)
    }
}

impl Clear {
    /// Sinks that are too far behind, and why.
    async fn late(&self, scope: &Scope<'_>) -> Result<Vec<(SinkName, String)>> {
        let select = format!(
            "/* sink.lags */ SELECT s.name, lag.rows, lag.since FROM duly.sink s, LATERAL {LAG} lag
             WHERE s.window_ms IS NULL AND s.suspended_at IS NULL AND lag.rows > 0 ORDER BY s.name"
        );
        let most = i64::try_from(self.0.rows).unwrap_or(i64::MAX);
        let mut late = Vec::new();
        for found in scope.query(&select, &[&most]).await? {
            let rows = found.try_get::<_, i64>(1)?.unsigned_abs();
            let since = found.try_get::<_, Option<i64>>(2)?.map(row::instant);
            if let Some(reason) = self.0.verdict(Lag { rows, since }, scope.now) {
                late.push((sink_name(&found, 0)?, reason));
            }
        }
        Ok(late)
    }
}

/// Removes sinks that nobody has read for the time of their window.
async fn expire(scope: &Scope<'_>) -> Result<Vec<SinkName>> {
    let delete = "/* sink.expire */ DELETE FROM duly.sink WHERE put_at + window_ms <= $1
        RETURNING name";
    let rows = scope.query(delete, &[&scope.now.millis()]).await?;
    rows.iter().map(|row| sink_name(row, 0)).collect()
}

/// Moves windows to the last mark that is older than they are long, and forgets the marks before it.
async fn move_windows(scope: &Scope<'_>) -> Result<()> {
    let select = "/* mark.any */ SELECT FROM duly.event_mark LIMIT 1";
    if scope.query(select, &[]).await?.is_empty() {
        return Ok(());
    }
    let update = "/* sink.move_window */ UPDATE duly.sink s
        SET seen = m.seen, low = m.low, high = m.high, seen_at = m.at
        FROM duly.event_mark m
        WHERE m.at = (SELECT max(o.at) FROM duly.event_mark o WHERE o.at <= $1 - s.window_ms)
          AND s.seen_at <= m.at AND pg_snapshot_xmax(s.seen) <= pg_snapshot_xmax(m.seen)
          AND s.seen::text <> m.seen::text";
    scope.execute(update, &[&scope.now.millis()]).await?;
    let delete = "/* mark.forget */ DELETE FROM duly.event_mark WHERE at < (
            SELECT max(m.at) FROM duly.event_mark m
            WHERE m.at <= $1 - coalesce((SELECT max(window_ms) FROM duly.sink), 0))";
    scope.execute(delete, &[&scope.now.millis()]).await?;
    let delete = "/* mark.forget_all */ DELETE FROM duly.event_mark
        WHERE NOT EXISTS (SELECT FROM duly.sink WHERE window_ms IS NOT NULL)";
    scope.execute(delete, &[]).await?;
    Ok(())
}

/// Whether sinks have not received all of a segment, for a statement about `segments`.
const UNSEEN: &str = "EXISTS (SELECT FROM duly.sink s, LATERAL duly.unseen_events(
        s.seen, s.low, s.next_seen, s.next_low, s.next_high, s.number, s.index, ARRAY[g.segment], 1)
    WHERE s.suspended_at IS NULL)";

/// Lets writers go on in the next segment if that is empty and it is time.
async fn turn(client: &Client) -> Result<()> {
    let select = format!(
        "/* outbox.turn */ SELECT g.segment, g.next FROM (
             SELECT h.segment, ((h.segment + 1) % {SEGMENTS})::smallint AS next FROM (
                 SELECT coalesce((SELECT segment FROM duly.outbox_head), 0::smallint) AS segment) h) g
         WHERE EXISTS (SELECT FROM duly.outbox o WHERE o.segment = g.segment)
           AND NOT EXISTS (SELECT FROM duly.outbox o WHERE o.segment = g.next)
           AND ((SELECT min(f.at) FROM (SELECT o.at FROM duly.outbox o WHERE o.segment = g.segment
                                        ORDER BY o.number LIMIT 1) f) <= duly.now() - $1
                OR (SELECT count(*) FROM (SELECT FROM duly.outbox o WHERE o.segment = g.segment
                                          LIMIT $2) f) >= $2
                OR NOT {UNSEEN})"
    );
    let statement = client.prepare_cached(&select).await?;
    let due = client.query_opt(&statement, &[&millis(SEGMENT_AGE), &SEGMENT_ROWS]).await?;
    let Some(due) = due else { return Ok(()) };
    let (segment, next): (i16, i16) = (due.try_get(0)?, due.try_get(1)?);
    // Another node may be as fast: then both say the same.
    let update = client
        .prepare_cached(
            "/* outbox.move */ UPDATE duly.outbox_head SET segment = $2 WHERE segment = $1",
        )
        .await?;
    if client.execute(&update, &[&segment, &next]).await? == 0 {
        let insert = client
            .prepare_cached(
                "/* outbox.begin */ INSERT INTO duly.outbox_head (segment) VALUES ($1)
                 ON CONFLICT DO NOTHING",
            )
            .await?;
        client.execute(&insert, &[&next]).await?;
    }
    Ok(())
}

/// Empties the segments that are not written to and that every sink has received. Answers how many rows
/// that were.
async fn empty_segments(client: &Client) -> Result<u64> {
    let select = format!(
        "/* outbox.passed */ SELECT g.segment FROM generate_series(0, {SEGMENTS} - 1) n,
             LATERAL (SELECT n::smallint AS segment) g
         WHERE g.segment <> coalesce((SELECT segment FROM duly.outbox_head), 0)
           AND EXISTS (SELECT FROM duly.outbox o WHERE o.segment = g.segment) AND NOT {UNSEEN}"
    );
    let statement = client.prepare_cached(&select).await?;
    let empty = client.prepare_cached("/* outbox.empty */ SELECT duly.empty_segment($1)").await?;
    let mut removed = 0;
    for passed in client.query(&statement, &[]).await? {
        let segment: i16 = passed.try_get(0)?;
        let rows: Option<i64> = client.query_one(&empty, &[&segment]).await?.try_get(0)?;
        removed += rows.unwrap_or_default().unsigned_abs();
    }
    Ok(removed)
}
