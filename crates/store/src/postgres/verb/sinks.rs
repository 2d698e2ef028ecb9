//! Sinks of events: make and remove them, serve them, and move them on.

use std::time::Duration;

use duly_core::event::{SinkName, Subscription};
use duly_core::limits::SINKS;
use duly_core::ports::store::{HeldSink, HoldSinks, PassEvents, PutSink, SinkChange};
use tokio_postgres::Row;
use uuid::Uuid;

use super::{Scope, Verb};
use crate::postgres::error::Result;
use crate::postgres::outbox::{PLACE, Place, sink_name, subscriptions};
use crate::postgres::task_state::state::each;

/// Only one node at a time changes what is wanted; writers of events do not wait.
const LOCK: &str = "/* sink.lock */ LOCK TABLE duly.wanted_kinds IN SHARE ROW EXCLUSIVE MODE";

/// Keeps what is wanted as it is until the end of the transaction.
pub(in crate::postgres) async fn hold_wanted(scope: &Scope<'_>) -> Result<()> {
    scope.execute(LOCK, &[]).await?;
    Ok(())
}

/// These sinks want nothing any more. The caller holds what is wanted.
pub(in crate::postgres) async fn forget_wanted(scope: &Scope<'_>, names: &[&str]) -> Result<()> {
    let delete = "/* sink.forget */ DELETE FROM duly.wanted WHERE sink = ANY($1)";
    if scope.execute(delete, &[&names]).await? > 0 {
        sum_up(scope).await?;
    }
    Ok(())
}

/// What one sink wants from now on.
async fn write_wanted(scope: &Scope<'_>, name: &SinkName, wanted: &[Subscription]) -> Result<()> {
    let delete = "/* sink.unwant */ DELETE FROM duly.wanted WHERE sink = $1";
    scope.execute(delete, &[&name.as_str()]).await?;
    let insert = "/* sink.want */ INSERT INTO duly.wanted (sink, kinds, tenant, queue, type)
        SELECT $1, * FROM unnest($2::integer[], $3::text[], $4::text[], $5::text[])";
    let tenants = each(wanted, |it| it.tenant.as_ref().map_or("", |it| it.as_str()));
    let queues = each(wanted, |it| it.queue.as_ref().map_or("", |it| it.as_str()));
    let types = each(wanted, |it| it.task_type.as_ref().map_or("", |it| it.as_str()));
    let kinds = each(wanted, |it| it.kinds.bits().cast_signed());
    scope.execute(insert, &[&name.as_str(), &kinds, &tenants, &queues, &types]).await?;
    sum_up(scope).await
}

async fn sum_up(scope: &Scope<'_>) -> Result<()> {
    scope.execute("/* sink.none */ DELETE FROM duly.wanted_kinds", &[]).await?;
    let insert = "/* sink.kinds */ INSERT INTO duly.wanted_kinds (kinds)
        SELECT bit_or(kinds) FROM duly.wanted HAVING bit_or(kinds) <> 0";
    scope.execute(insert, &[]).await?;
    Ok(())
}

/// `low` was read before this transaction, see `duly.event_low`.
pub(in crate::postgres) struct PutSinkVerb {
    pub(in crate::postgres) sink: PutSink,
    pub(in crate::postgres) low: i64,
}

impl Verb for PutSinkVerb {
    type Answer = SinkChange;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<SinkChange> {
        let PutSink { name, subscriptions: wanted, window } = &self.sink;
        let text = serde_json::to_string(wanted).expect("names and numbers become JSON");
        let window = window.map(millis);
        hold_wanted(scope).await?;
        let select = "/* sink.known */ SELECT name, subscriptions, suspended_at IS NULL
            FROM duly.sink WHERE name = $1 FOR NO KEY UPDATE";
        let known = scope.query(select, &[&name.as_str()]).await?;
        let Some(known) = known.first() else { return self.create(scope, &text, window).await };
        let update = "/* sink.change */ UPDATE duly.sink
            SET subscriptions = $2, window_ms = $3, put_at = $4 WHERE name = $1";
        let now = scope.now.millis();
        scope.execute(update, &[&name.as_str(), &text, &window, &now]).await?;
        if known.try_get(2)? && known.try_get::<_, &str>(1)? != text {
            write_wanted(scope, name, wanted).await?;
        }
        Ok(SinkChange::Done { created: false })
    }
}

impl PutSinkVerb {
    async fn create(
        &self,
        scope: &Scope<'_>,
        text: &str,
        window: Option<i64>,
    ) -> Result<SinkChange> {
        let count = "/* sink.count */ SELECT count(*) FROM duly.sink";
        let rows = scope.query(count, &[]).await?;
        let count: i64 = rows.first().map(|row| row.try_get(0)).transpose()?.unwrap_or_default();
        if count >= i64::from(SINKS) {
            return Ok(SinkChange::TooMany);
        }
        let insert = "/* sink.create */ INSERT INTO duly.sink
                (name, subscriptions, window_ms, created_at, put_at, seen, low, high, seen_at)
            SELECT $1, $2, $3, $4, $4, pg_current_snapshot(), $5, s.last_value, $4
            FROM duly.event_number s";
        let (name, now) = (self.sink.name.as_str(), scope.now.millis());
        scope.execute(insert, &[&name, &text, &window, &now, &self.low]).await?;
        write_wanted(scope, &self.sink.name, &self.sink.subscriptions).await?;
        Ok(SinkChange::Done { created: true })
    }
}

fn millis(window: Duration) -> i64 {
    i64::try_from(window.as_millis()).unwrap_or(i64::MAX / 2)
}

/// Lets a suspended sink receive again. `low` was read before this transaction.
pub(in crate::postgres) struct Resume<'a> {
    pub(in crate::postgres) name: &'a SinkName,
    pub(in crate::postgres) low: i64,
}

impl Verb for Resume<'_> {
    type Answer = bool;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<bool> {
        hold_wanted(scope).await?;
        let name = self.name.as_str();
        let update = "/* sink.resume */ UPDATE duly.sink
            SET suspended_at = NULL, suspended_reason = NULL, trouble = NULL, number = 0, index = 0,
                seen = pg_current_snapshot(), low = $2, seen_at = $3,
                high = (SELECT last_value FROM duly.event_number),
                next_seen = NULL, next_low = NULL, next_high = NULL, next_at = NULL
            WHERE name = $1 AND suspended_at IS NOT NULL
            RETURNING name, subscriptions";
        let now = scope.now.millis();
        let resumed = scope.query(update, &[&name, &self.low, &now]).await?;
        if let Some(resumed) = resumed.first() {
            write_wanted(scope, self.name, &subscriptions(resumed, 0, 1)?).await?;
            return Ok(true);
        }
        let select = "/* sink.exists */ SELECT FROM duly.sink WHERE name = $1";
        Ok(!scope.query(select, &[&name]).await?.is_empty())
    }
}

/// Removes a sink.
pub(in crate::postgres) struct Remove<'a>(pub(in crate::postgres) &'a SinkName);

impl Verb for Remove<'_> {
    type Answer = bool;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<bool> {
        hold_wanted(scope).await?;
        let name = self.0.as_str();
        let delete = "/* sink.remove */ DELETE FROM duly.sink WHERE name = $1";
        let removed = scope.execute(delete, &[&name]).await?;
        forget_wanted(scope, &[name]).await?;
        Ok(removed > 0)
    }
}

/// Serves sinks.
pub(in crate::postgres) struct Hold(pub(in crate::postgres) HoldSinks);

impl Verb for Hold {
    type Answer = Vec<HeldSink>;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<Vec<HeldSink>> {
        let HoldSinks { node, ttl, names, most } = &self.0;
        let (node, now) = (Uuid::from_bytes(*node.as_bytes()), scope.now);
        let names: Vec<_> = names.iter().map(SinkName::as_str).collect();
        // Who finds nothing to take or to renew writes nothing.
        let select = "/* sink.free */ SELECT name, held_until > $2 FROM duly.sink
            WHERE name = ANY($3) AND window_ms IS NULL AND suspended_at IS NULL
              AND (node = $1 OR held_until <= $2)
            ORDER BY name";
        let (mut chosen, mut free) = (Vec::new(), Vec::new());
        for found in scope.query(select, &[&node, &now.millis(), &names]).await? {
            let name: String = found.try_get(0)?;
            if found.try_get(1)? { &mut chosen } else { &mut free }.push(name);
        }
        chosen.extend(free.into_iter().take(most.saturating_sub(chosen.len())));
        if chosen.is_empty() {
            return Ok(Vec::new());
        }
        let hold = format!(
            "/* sink.hold */ UPDATE duly.sink SET node = $1, held_until = $4,
                term = CASE WHEN held_until > $2 THEN term ELSE term + 1 END
             WHERE name = ANY($3) AND window_ms IS NULL AND suspended_at IS NULL
               AND (node = $1 OR held_until <= $2)
             RETURNING name, term, {PLACE}"
        );
        let until = now.plus(*ttl).millis();
        let rows = scope.query(&hold, &[&node, &now.millis(), &chosen, &until]).await?;
        let mut held = rows.iter().map(read_held).collect::<Result<Vec<_>>>()?;
        held.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(held)
    }
}

fn read_held(found: &Row) -> Result<HeldSink> {
    Ok(HeldSink {
        name: sink_name(found, 0)?,
        term: found.try_get::<_, i64>(1)?.unsigned_abs(),
        position: Place::read(found, 2)?.position(),
    })
}

impl Verb for PassEvents {
    type Answer = bool;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<bool> {
        let Self { sink, node, term, position, trouble } = self;
        let node = Uuid::from_bytes(*node.as_bytes());
        let term = i64::try_from(*term).unwrap_or(i64::MAX);
        let select = format!(
            "/* sink.served */ SELECT trouble, {PLACE} FROM duly.sink
             WHERE name = $1 AND node = $2 AND term = $3 AND suspended_at IS NULL
             FOR NO KEY UPDATE"
        );
        let rows = scope.query(&select, &[&sink.as_str(), &node, &term]).await?;
        let Some(found) = rows.first() else { return Ok(false) };
        let (known, place): (Option<&str>, _) = (found.try_get(0)?, Place::read(found, 1)?);
        let passed = position.as_ref().and_then(Place::of);
        let passed = passed.filter(|it| it.covers(&place) && *it != place);
        if passed.is_some() || known != trouble.as_deref() {
            let place = passed.unwrap_or(place);
            place.keep(scope, sink, trouble.as_deref()).await?;
        }
        Ok(true)
    }
}

impl Place {
    async fn keep(&self, scope: &Scope<'_>, sink: &SinkName, trouble: Option<&str>) -> Result<()> {
        let update = "/* sink.pass */ UPDATE duly.sink
            SET trouble = $2, seen = $3::text::pg_snapshot, low = $4, high = $5, seen_at = $6,
                next_seen = $7::text::pg_snapshot, next_low = $8, next_high = $9, next_at = $10,
                number = $11, index = $12
            WHERE name = $1";
        let to = self.to.as_ref();
        scope
            .execute(
                update,
                &[
                    &sink.as_str(),
                    &trouble,
                    &self.from.seen.to_string(),
                    &self.from.low,
                    &self.from.high,
                    &self.from.at.millis(),
                    &to.map(|to| to.seen.to_string()),
                    &to.map(|to| to.low),
                    &to.map(|to| to.high),
                    &to.map(|to| to.at.millis()),
                    &self.number,
                    &i32::try_from(self.index).unwrap_or(i32::MAX),
                ],
            )
            .await?;
        Ok(())
    }
}
