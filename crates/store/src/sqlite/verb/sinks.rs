//! Sinks of events: make and remove them, serve them, and move them on.

use duly_core::event::{Position, SinkName};
use duly_core::id::NodeId;
use duly_core::limits::SINKS;
use duly_core::ports::store::{
    HeldSink, HoldSinks, PassEvents, PutSink, SinkChange, Tidied, TidyEvents,
};
use rusqlite::params;

use super::{Scope, Verb};
use crate::sqlite::error::Result;
use crate::sqlite::outbox::{lag, newest, place, sink_name};
use crate::sqlite::row;

/// Rows that are removed in one transaction.
const REMOVED_AT_ONCE: u32 = 2_000;

/// Wraps the order, which is a plain value of the port.
pub(in crate::sqlite) struct PutSinkVerb(pub(in crate::sqlite) PutSink);

impl Verb for PutSinkVerb {
    type Answer = SinkChange;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<SinkChange> {
        let PutSink { name, subscriptions, window } = &self.0;
        let wanted = serde_json::to_string(subscriptions).expect("names and numbers become JSON");
        let window = row::encode_duration(*window);
        let now = scope.now.millis();
        let changed = scope.connection.execute(
            "/* sink.change */ UPDATE sink SET subscriptions = ?2, window_ms = ?3, put_at = ?4
             WHERE name = ?1",
            params![name.as_str(), wanted, window, now],
        )?;
        if changed == 0 {
            let count = "/* sink.count */ SELECT count(*) FROM sink";
            let count: u32 = scope.connection.query_row(count, [], |row| row.get(0))?;
            if count >= SINKS {
                return Ok(SinkChange::TooMany);
            }
            let end = end(scope)?;
            scope.connection.execute(
                "/* sink.create */ INSERT INTO sink (name, subscriptions, window_ms, created_at, put_at,
                    position, position_index, term, held_until)
                 VALUES (?1, ?2, ?3, ?4, ?4, ?5, 0, 0, 0)",
                params![name.as_str(), wanted, window, now, end],
            )?;
        }
        scope.index.reload_sinks(scope.connection)?;
        Ok(SinkChange::Done { created: changed == 0 })
    }
}

/// The number of the newest row there ever was, with what this transaction is about to write.
fn end(scope: &Scope<'_>) -> Result<u64> {
    scope.flush_events()?;
    newest(scope.connection)
}

/// Lets a suspended sink receive again.
pub(in crate::sqlite) struct Resume(pub(in crate::sqlite) SinkName);

impl Verb for Resume {
    type Answer = bool;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<bool> {
        let end = end(scope)?;
        let resumed = scope.connection.execute(
            "/* sink.resume */ UPDATE sink SET
                    position = iif(suspended_at IS NULL, position, ?2),
                    position_index = iif(suspended_at IS NULL, position_index, 0),
                    trouble = iif(suspended_at IS NULL, trouble, NULL),
                    suspended_at = NULL, suspended_reason = NULL
             WHERE name = ?1",
            params![self.0.as_str(), end],
        )?;
        scope.index.reload_sinks(scope.connection)?;
        Ok(resumed > 0)
    }
}

/// Removes a sink.
pub(in crate::sqlite) struct Remove(pub(in crate::sqlite) SinkName);

impl Verb for Remove {
    type Answer = bool;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<bool> {
        let delete = "/* sink.remove */ DELETE FROM sink WHERE name = ?";
        let removed = scope.connection.execute(delete, [self.0.as_str()])?;
        scope.index.reload_sinks(scope.connection)?;
        Ok(removed > 0)
    }
}

/// Serves sinks.
pub(in crate::sqlite) struct Hold(pub(in crate::sqlite) HoldSinks);

impl Verb for Hold {
    type Answer = Vec<HeldSink>;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<Vec<HeldSink>> {
        let HoldSinks { node, ttl, names, most } = &self.0;
        let now = scope.now.millis();
        let until = scope.now.plus(*ttl).millis();
        let mut select = scope.connection.prepare_cached(
            "/* sink.free */ SELECT name, node = ?1 AND held_until > ?2, held_until <= ?2, term, position,
                    position_index
             FROM sink WHERE window_ms IS NULL AND suspended_at IS NULL ORDER BY name",
        )?;
        let mut hold = scope.connection.prepare_cached(
            "/* sink.hold */ UPDATE sink SET node = ?2, held_until = ?3, term = ?4 WHERE name = ?1",
        )?;
        let mut rows = select.query(params![node.as_bytes(), now])?;
        let (mut own, mut free) = (Vec::new(), Vec::new());
        while let Some(row) = rows.next()? {
            let held = HeldSink {
                name: sink_name(row, 0)?,
                term: row.get(3)?,
                position: place(row.get(4)?, row.get(5)?),
            };
            if !names.contains(&held.name) {
                continue;
            }
            if row.get::<_, Option<bool>>(1)?.unwrap_or(false) {
                own.push(held);
            } else if row.get(2)? {
                free.push(HeldSink { term: held.term + 1, ..held });
            }
        }
        drop(rows);
        own.extend(free.into_iter().take(most.saturating_sub(own.len())));
        for held in &own {
            hold.execute(params![held.name.as_str(), node.as_bytes(), until, held.term])?;
        }
        own.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(own)
    }
}

/// Lets others serve what a node serves.
pub(in crate::sqlite) struct Release(pub(in crate::sqlite) NodeId);

impl Verb for Release {
    type Answer = ();

    fn apply(&self, scope: &mut Scope<'_>) -> Result<()> {
        let update =
            "/* sink.release */ UPDATE sink SET node = NULL, held_until = 0 WHERE node = ?";
        scope.connection.execute(update, [self.0.as_bytes()])?;
        Ok(())
    }
}

impl Verb for PassEvents {
    type Answer = bool;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<bool> {
        let Self { sink, node, term, position, trouble } = self;
        let (number, index) =
            position.as_ref().map_or((None, None), |it| (Some(it.number), Some(it.index)));
        // A position behind a whole row has the index 0, and one within the row comes before it.
        let passed = scope
            .connection
            .prepare_cached(
                "/* sink.pass */ UPDATE sink SET trouble = ?6,
                    position_index = iif(?4 > position OR ?4 = position AND position_index > 0
                        AND (?5 = 0 OR ?5 > position_index), ?5, position_index),
                    position = max(position, coalesce(?4, position))
                 WHERE name = ?1 AND node = ?2 AND term = ?3 AND suspended_at IS NULL",
            )?
            .execute(params![sink.as_str(), node.as_bytes(), term, number, index, trouble])?;
        Ok(passed > 0)
    }
}

impl Verb for TidyEvents {
    type Answer = Tidied;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<Tidied> {
        let expired = expire(scope)?;
        move_windows(scope)?;
        let suspended = suspend(scope, *self)?;
        if !(expired.is_empty() && suspended.is_empty()) {
            scope.index.reload_sinks(scope.connection)?;
        }
        Ok(Tidied { removed: remove_passed(scope)?, suspended, expired })
    }
}

/// Removes sinks that nobody has read for the time of their window.
fn expire(scope: &Scope<'_>) -> Result<Vec<SinkName>> {
    let mut delete = scope.connection.prepare_cached(
        "/* sink.expire */ DELETE FROM sink WHERE put_at + window_ms <= ? RETURNING name",
    )?;
    let mut rows = delete.query([scope.now.millis()])?;
    let mut expired = Vec::new();
    while let Some(row) = rows.next()? {
        expired.push(sink_name(row, 0)?);
    }
    Ok(expired)
}

/// Lets go what windows no longer keep.
fn move_windows(scope: &Scope<'_>) -> Result<()> {
    scope
        .connection
        .prepare_cached(
            "/* sink.move_window */ UPDATE sink SET position_index = 0, position = max(position, coalesce(
                (SELECT number - 1 FROM outbox WHERE number > sink.position
                    AND at + sink.window_ms > ?1 ORDER BY number LIMIT 1),
                (SELECT max(number) FROM outbox), position))
             WHERE window_ms IS NOT NULL",
        )?
        .execute([scope.now.millis()])?;
    Ok(())
}

/// Suspends sinks that are too far behind.
fn suspend(scope: &Scope<'_>, order: TidyEvents) -> Result<Vec<SinkName>> {
    let mut suspended = Vec::new();
    for (name, position) in served(scope)? {
        let Some(reason) = order.verdict(lag(scope.connection, &position)?, scope.now) else {
            continue;
        };
        scope.connection.execute(
            "/* sink.suspend */ UPDATE sink SET suspended_at = ?2, suspended_reason = ?3, node = NULL,
                    held_until = 0
             WHERE name = ?1",
            params![name.as_str(), scope.now.millis(), reason],
        )?;
        suspended.push(name);
    }
    Ok(suspended)
}

/// Sinks that nodes serve, and where they are.
fn served(scope: &Scope<'_>) -> Result<Vec<(SinkName, Position)>> {
    let mut select = scope.connection.prepare_cached(
        "/* sink.served */ SELECT name, position, position_index FROM sink
         WHERE window_ms IS NULL AND suspended_at IS NULL",
    )?;
    let mut rows = select.query([])?;
    let mut served = Vec::new();
    while let Some(row) = rows.next()? {
        served.push((sink_name(row, 0)?, place(row.get(1)?, row.get(2)?)));
    }
    Ok(served)
}

/// Removes rows that every sink has passed, so many at once.
fn remove_passed(scope: &Scope<'_>) -> Result<u64> {
    let removed = scope
        .connection
        .prepare_cached(
            "/* outbox.remove */ DELETE FROM outbox WHERE number IN (
                 SELECT number FROM outbox WHERE number <= coalesce(
                     (SELECT min(position - (position_index > 0)) FROM sink WHERE suspended_at IS NULL),
                     9223372036854775807)
                 ORDER BY number LIMIT ?)",
        )?
        .execute([REMOVED_AT_ONCE])?;
    Ok(u64::try_from(removed).unwrap_or(u64::MAX))
}
