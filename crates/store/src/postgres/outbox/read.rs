//! Reads events, page by page.

use deadpool_postgres::{Client, GenericClient as _};
use duly_core::event::{Event, EventKind, Position, SinkName, Subscription};
use duly_core::ports::store::{EventPage, Events, ReadEvents, StoredEvent};
use tokio_postgres::Row;
use uuid::Uuid;

use super::place::{COLUMNS, Place, View};
use super::subscriptions;
use crate::other_event;
use crate::postgres::error::{Fault, Result};
use crate::postgres::{PostgresStore, row};

/// How often a reader begins again whose sink moves while it reads.
const TRIES: u32 = 5;

/// Rows of a step, by their numbers: those with low ones are of transactions that were open when it began.
/// A step that has no end yet ends with what this statement sees. The conditions leave the planner one index
/// for each part.
const PAGE: &str = "/* outbox.page */ WITH v AS MATERIALIZED (
        SELECT coalesce($5::text::pg_snapshot, pg_current_snapshot()) AS seen
    )
    SELECT v.seen::text, s.last_value, duly.now(), r.number, r.at, r.kinds, r.tasks, r.lanes, r.runs,
           r.epochs, r.others
    FROM v CROSS JOIN duly.event_number s LEFT JOIN LATERAL (
        SELECT * FROM (
            (SELECT o.* FROM unnest($1::text[]) x(id), LATERAL (
                 SELECT * FROM duly.outbox o
                 WHERE o.made_in >= x.id::xid8 AND o.made_in <= x.id::xid8
                   AND o.number > $4 AND o.number <= $2
                   AND pg_visible_in_snapshot(o.made_in, v.seen)
                 ORDER BY o.made_in, o.number LIMIT $7) o
             ORDER BY o.number LIMIT $7)
            UNION ALL
            (SELECT * FROM duly.outbox o
             WHERE o.number > greatest($2, $4) AND o.number <= $6
               AND NOT pg_visible_in_snapshot(o.made_in, $3::text::pg_snapshot)
               AND pg_visible_in_snapshot(o.made_in, v.seen)
             ORDER BY o.number LIMIT $7)) u
        ORDER BY u.number LIMIT $7) r ON true
    ORDER BY r.number";

/// A sink that is not suspended.
struct Sink {
    wanted: Vec<Subscription>,
    place: Place,
    /// What there is at all.
    xmax: u64,
    newest: i64,
}

impl PostgresStore {
    pub(super) async fn read_events(&self, read: &ReadEvents) -> Result<Events> {
        let client = self.pool.get().await?;
        for _ in 0..TRIES {
            let Some(sink) = open_sink(&client, &read.sink).await? else {
                return Ok(Events::Closed);
            };
            let from = match &read.after {
                None => sink.place.clone(),
                Some(after) => match Place::of(after) {
                    Some(place) if place.covers(&sink.place) => place,
                    _ => return Ok(Events::Gone),
                },
            };
            if from.is_beyond(sink.xmax, sink.newest) {
                return Ok(Events::Gone);
            }
            let page = self.page(&client, &sink.wanted, from.clone(), read.rows as usize).await?;
            if page.events.is_empty() && !page.more && page.next == from.position() {
                return Ok(Events::Page(page));
            }
            // What the sink has passed meanwhile may have been removed before it was read.
            match open_sink(&client, &read.sink).await? {
                None => return Ok(Events::Closed),
                Some(sink) if from.covers(&sink.place) => return Ok(Events::Page(page)),
                Some(_) if read.after.is_some() => return Ok(Events::Gone),
                Some(_) => {}
            }
        }
        Err(Fault::Raced)
    }

    async fn page(
        &self,
        client: &Client,
        wanted: &[Subscription],
        from: Place,
        most: usize,
    ) -> Result<EventPage> {
        let mut page = EventPage { events: Vec::new(), next: from.position(), more: false };
        let (mut place, mut room) = (from, most);
        loop {
            let is_open_end = place.to.is_none();
            if (is_open_end || room == 0) && !has_more(client, &place).await? {
                return Ok(page);
            }
            if room == 0 {
                page.more = true;
                return Ok(page);
            }
            let low = if is_open_end { event_low(client).await? } else { 0 };
            let partly = usize::from(place.index > 0);
            let planted = self.reads_events_by_number().then(|| place.by_number());
            let start = planted.as_ref().unwrap_or(&place);
            let step = Step::read(client, start, low, room + partly + 1).await?;
            let is_whole = step.rows.len() <= room + partly;
            let within = Place { to: Some(step.to.clone()), ..place.clone() };
            let view = within.view();
            let rows: Vec<_> = step.rows.iter().take(room + partly).collect();
            for row in &rows {
                let number: i64 = row.try_get(3)?;
                let seen = if number == place.number { place.index } else { 0 };
                let position = Position {
                    view: view.clone(),
                    number: number.unsigned_abs(),
                    ..within.position()
                };
                page.events.extend(self.events_of(client, row, seen, &position, wanted).await?);
                place.number = number;
            }
            room -= rows.len().min(room);
            place = match is_whole {
                true => Place::at(step.to),
                false => Place { to: Some(step.to), index: 0, ..place },
            };
            page.next = place.position();
            if !is_whole {
                page.more = true;
                return Ok(page);
            }
            if is_open_end {
                return Ok(page);
            }
        }
    }

    /// The events of a row behind the first ones that were seen, with their places.
    async fn events_of(
        &self,
        client: &Client,
        row: &Row,
        seen: u32,
        position: &Position,
        wanted: &[Subscription],
    ) -> Result<Vec<StoredEvent>> {
        let at = row::instant(row.try_get(4)?);
        let about_tasks = read_tasks(row)?;
        let others: Vec<String> = row.try_get::<_, Option<_>>(10)?.unwrap_or_default();
        let count = u32::try_from(about_tasks.len() + others.len()).expect("bounded by the writer");
        let mut events = Vec::new();
        let mut add = |index: u32, event: Event| {
            if index > seen && wanted.iter().any(|it| it.matches(&event)) {
                // A place behind the last event of a row is one behind the row.
                let index = if index == count { 0 } else { index };
                events
                    .push(StoredEvent { position: Position { index, ..position.clone() }, event });
            }
        };
        let mut index = 0;
        for (kind, id, lane, run, epoch) in about_tasks {
            index += 1;
            match (EventKind::from_number(kind), self.lanes.fetch(client, lane).await) {
                (Some(kind), Ok(lane)) => {
                    add(index, Event::of_task(kind, &lane, (row::task_id(id), run, epoch), at));
                }
                (_, Err(fault @ Fault::Postgres(_))) => return Err(fault),
                _ => is_left_out(position),
            }
        }
        for text in others {
            index += 1;
            match other_event::decode(&text, at) {
                Some(event) => add(index, event),
                None => is_left_out(position),
            }
        }
        Ok(events)
    }
}

/// One that cannot be read must not hold back those behind it.
fn is_left_out(position: &Position) {
    tracing::error!(number = position.number, "a stored event cannot be read and is left out");
}

type AboutTask = (u8, Uuid, i32, u32, u32);

fn read_tasks(row: &Row) -> Result<Vec<AboutTask>> {
    let Some(kinds) = row.try_get::<_, Option<Vec<i16>>>(5)? else { return Ok(Vec::new()) };
    let tasks: Vec<Uuid> = row.try_get(6)?;
    let [lanes, runs, epochs]: [Vec<i32>; 3] = [row.try_get(7)?, row.try_get(8)?, row.try_get(9)?];
    let columns = kinds.into_iter().zip(tasks).zip(lanes).zip(runs.into_iter().zip(epochs));
    let read = columns.map(|(((kind, task), lane), (run, epoch))| {
        (
            u8::try_from(kind).unwrap_or(u8::MAX),
            task,
            lane,
            run.unsigned_abs(),
            epoch.unsigned_abs(),
        )
    });
    Ok(read.collect())
}

/// Rows of a step, and where it ends.
struct Step {
    rows: Vec<Row>,
    to: View,
}

impl Step {
    /// Reads on in the step of a place, or in the one that begins there and for whose end `low` is.
    async fn read(client: &Client, place: &Place, low: i64, limit: usize) -> Result<Self> {
        let (seen, high) = match &place.to {
            Some(to) => (Some(to.seen.to_string()), to.high),
            None => (None, i64::MAX),
        };
        let statement = client.prepare_cached(PAGE).await?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = client
            .query(
                &statement,
                &[
                    &place.from.seen.open(),
                    &place.from.low,
                    &place.from.seen.to_string(),
                    &place.whole(),
                    &seen,
                    &high,
                    &limit,
                ],
            )
            .await?;
        let first = rows.first().expect("there is a row without events at least");
        let to = match &place.to {
            Some(to) => to.clone(),
            None => View {
                seen: first.try_get::<_, &str>(0)?.parse().expect("the server wrote it"),
                low,
                high: first.try_get(1)?,
                at: row::instant(first.try_get(2)?),
            },
        };
        let is_event = |row: &Row| row.try_get::<_, Option<i64>>(3).is_ok_and(|it| it.is_some());
        Ok(Self { rows: rows.into_iter().filter(is_event).collect(), to })
    }
}

/// A number below those of transactions that a later snapshot does not know.
pub(super) async fn event_low(client: &Client) -> Result<i64> {
    let statement = client.prepare_cached("/* outbox.low */ SELECT duly.event_low()").await?;
    Ok(client.query_one(&statement, &[]).await?.try_get(0)?)
}

/// Behind everything that is committed by now.
pub(super) async fn present(client: &Client) -> Result<Place> {
    let low = event_low(client).await?;
    let select =
        "/* outbox.end */ SELECT pg_current_snapshot()::text, $1::bigint, s.last_value, duly.now(),
            NULL::text, NULL::bigint, NULL::bigint, NULL::bigint, 0::bigint, 0
        FROM duly.event_number s";
    let statement = client.prepare_cached(select).await?;
    Place::read(&client.query_one(&statement, &[&low]).await?, 0)
}

/// Whether anything lies behind a place.
async fn has_more(client: &Client, place: &Place) -> Result<bool> {
    let select = "/* outbox.more */ SELECT FROM duly.unseen_events(
        $1::text::pg_snapshot, $2, $3::text::pg_snapshot, $4, $5, $6, $7, '{0,1,2,3}', 1) LIMIT 1";
    let statement = client.prepare_cached(select).await?;
    let Place { from, to, number, index } = place;
    let index = i32::try_from(*index).unwrap_or(i32::MAX);
    let found = client
        .query_opt(
            &statement,
            &[
                &from.seen.to_string(),
                &from.low,
                &to.as_ref().map(|to| to.seen.to_string()),
                &to.as_ref().map(|to| to.low),
                &to.as_ref().map(|to| to.high),
                number,
                &index,
            ],
        )
        .await?;
    Ok(found.is_some())
}

async fn open_sink(client: &Client, name: &SinkName) -> Result<Option<Sink>> {
    let select = format!(
        "/* outbox.sink */ SELECT name, subscriptions,
                pg_snapshot_xmax(pg_current_snapshot())::text,
                (SELECT last_value FROM duly.event_number), {COLUMNS}
         FROM duly.sink WHERE name = $1 AND suspended_at IS NULL"
    );
    let statement = client.prepare_cached(&select).await?;
    let Some(found) = client.query_opt(&statement, &[&name.as_str()]).await? else {
        return Ok(None);
    };
    Ok(Some(Sink {
        wanted: subscriptions(&found, 0, 1)?,
        place: Place::read(&found, 4)?,
        xmax: found.try_get::<_, &str>(2)?.parse().expect("the server wrote it"),
        newest: found.try_get(3)?,
    }))
}
