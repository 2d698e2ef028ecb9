//! Events and their sinks in the file: written by the writer, with the changes they tell of, and read beside
//! it. There is one writer, so rows are committed in the order of their numbers.

mod packed;
mod written;

use async_trait::async_trait;
use duly_core::event::{Event, Position, SinkName, Subscription};
use duly_core::id::{NodeId, TaskId};
use duly_core::limits::SINK_ROWS;
use duly_core::ports::store::{
    self, EventPage, Events as Found, HeldSink, HoldSinks, Lag, Outbox, PassEvents, PutSink,
    ReadEvents, Relay, SinkChange, SinkState, StoredEvent, Suspension, Tidied, TidyEvents,
};
use duly_core::task::Task;
use duly_core::time::Timestamp;
use foldhash::HashMap;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

pub(super) use self::written::Events;
use super::SqliteStore;
use super::error::{Fault, Result};
use super::index::lanes::{LaneId, lane_from};
use super::verb::sinks::{Hold, PutSinkVerb, Release, Remove, Resume};
use super::{links, row};

#[async_trait]
impl Outbox for SqliteStore {
    async fn put_sink(&self, sink: PutSink) -> store::Result<SinkChange> {
        self.ask(PutSinkVerb(sink)).await
    }

    async fn resume_sink(&self, name: &SinkName) -> store::Result<bool> {
        self.ask(Resume(name.clone())).await
    }

    async fn remove_sink(&self, name: &SinkName) -> store::Result<bool> {
        self.ask(Remove(name.clone())).await
    }

    async fn sinks(&self) -> store::Result<Vec<SinkState>> {
        let now = self.clock.now();
        self.readers.query(move |connection| states(connection, now)).await
    }

    async fn hold_sinks(&self, order: HoldSinks) -> store::Result<Vec<HeldSink>> {
        self.ask(Hold(order)).await
    }

    async fn release_sinks(&self, node: NodeId) -> store::Result<()> {
        self.ask(Release(node)).await
    }

    async fn events(&self, read: ReadEvents) -> store::Result<Found> {
        self.readers.query(move |connection| page(connection, &read)).await
    }

    async fn end_of_events(&self) -> store::Result<Position> {
        self.readers.query(|connection| Ok(place(newest(connection)?, 0))).await
    }

    async fn pass_events(&self, order: PassEvents) -> store::Result<bool> {
        self.ask(order).await
    }

    async fn tidy_events(&self, order: TidyEvents) -> store::Result<Tidied> {
        self.ask(order).await
    }

    async fn event_rows(&self) -> store::Result<u64> {
        self.readers.query(|connection| Ok(lag(connection, &place(0, 0))?.rows)).await
    }

    async fn tasks_of(&self, ids: Vec<TaskId>, payloads: bool) -> store::Result<Vec<Task>> {
        self.readers.query(move |connection| tasks(connection, &ids, payloads)).await
    }

    async fn event_hint(&self) {
        self.events_written.notified().await;
    }
}

/// The columns that [`read_state`] reads.
const STATE: &str = "name, subscriptions, window_ms, created_at, position, position_index, node, term, \
    held_until, suspended_at, suspended_reason, trouble";

fn states(connection: &Connection, now: Timestamp) -> Result<Vec<SinkState>> {
    let snapshot = connection.unchecked_transaction()?;
    let select = format!("/* sink.list */ SELECT {STATE} FROM sink ORDER BY name");
    let mut statement = snapshot.prepare_cached(&select)?;
    let mut rows = statement.query([])?;
    let mut states = Vec::new();
    while let Some(row) = rows.next()? {
        let state = read_state(row, now)?;
        let lag = match state.suspended {
            None => lag(&snapshot, &state.position)?,
            Some(_) => Lag::default(),
        };
        states.push(SinkState { lag, ..state });
    }
    Ok(states)
}

fn read_state(row: &Row<'_>, now: Timestamp) -> Result<SinkState> {
    let window: Option<i64> = row.get(2)?;
    let until = Timestamp::clamped(row.get(8)?);
    let relay = |node| Relay { node: NodeId::from_bytes(node), term: 0, until };
    let relay = row.get::<_, Option<[u8; 16]>>(6)?.map(relay).filter(|_| until > now);
    let term: u64 = row.get(7)?;
    let reason: Option<String> = row.get(10)?;
    let suspended =
        |at| Suspension { at: Timestamp::clamped(at), reason: reason.unwrap_or_default() };
    Ok(SinkState {
        sink: PutSink {
            name: sink_name(row, 0)?,
            subscriptions: subscriptions(row, 0, 1)?,
            window: row::decode_duration(window),
        },
        created_at: Timestamp::clamped(row.get(3)?),
        position: place(row.get(4)?, row.get(5)?),
        lag: Lag::default(),
        relay: relay.map(|relay| Relay { term, ..relay }),
        suspended: row.get::<_, Option<i64>>(9)?.map(suspended),
        trouble: row.get(11)?,
    })
}

/// What is stored behind a position.
pub(super) fn lag(connection: &Connection, position: &Position) -> Result<Lag> {
    let mut statement = connection.prepare_cached(
        "/* outbox.lag */ SELECT count(*), min(at) FROM (
             SELECT at FROM outbox WHERE number > ? ORDER BY number LIMIT ?)",
    )?;
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get::<_, Option<i64>>(1)?));
    let (rows, since) = statement.query_row(params![position.number, SINK_ROWS], read)?;
    Ok(Lag { rows, since: since.map(Timestamp::clamped) })
}

/// A position in the file.
pub(super) fn place(number: u64, index: u32) -> Position {
    Position { view: "".into(), at: Timestamp::EPOCH, number, index }
}

pub(super) fn sink_name(row: &Row<'_>, column: usize) -> Result<SinkName> {
    let name: String = row.get(column)?;
    SinkName::new(&name).map_err(|_| Fault::Corrupt { table: "sink", column: "name", id: name })
}

/// What a sink subscribes to.
pub(super) fn subscriptions(row: &Row<'_>, name: usize, at: usize) -> Result<Vec<Subscription>> {
    let text: String = row.get(at)?;
    let id = row.get(name)?;
    let damaged = |_| Fault::Corrupt { table: "sink", column: "subscriptions", id };
    serde_json::from_str(&text).map_err(damaged)
}

/// The number of the newest row there ever was.
pub(super) fn newest(connection: &Connection) -> Result<u64> {
    let select = "/* outbox.newest */ SELECT seq FROM sqlite_sequence WHERE name = 'outbox'";
    let newest = connection.query_row(select, [], |row| row.get(0)).optional()?;
    Ok(newest.unwrap_or(0))
}

fn page(connection: &Connection, read: &ReadEvents) -> Result<Found> {
    let snapshot = connection.unchecked_transaction()?;
    let mut find = snapshot.prepare_cached(
        "/* outbox.sink */ SELECT name, subscriptions, position, position_index
         FROM sink WHERE name = ? AND suspended_at IS NULL",
    )?;
    let found = find.query_row([read.sink.as_str()], |row| {
        Ok((subscriptions(row, 0, 1), place(row.get(2)?, row.get(3)?)))
    });
    let Some((wanted, position)) = found.optional()? else { return Ok(Found::Closed) };
    let (wanted, newest) = (wanted?, newest(&snapshot)?);
    let after = read.after.clone().unwrap_or_else(|| position.clone());
    let order = |place: &Position| (place.number, place.index);
    if order(&after) < order(&position) || after.number > newest {
        return Ok(Found::Gone);
    }
    let mut select = snapshot.prepare_cached(
        "/* outbox.read */ SELECT number, body FROM outbox WHERE number >= ? ORDER BY number LIMIT ?",
    )?;
    // The row that was seen in part counts beside those that were asked for, and so does one that tells
    // whether there are more.
    let mut rows = select.query(params![after.number, read.rows + 2])?;
    let mut lanes = Lanes { connection: &snapshot, known: HashMap::default() };
    let mut page = EventPage { events: Vec::new(), next: after.clone(), more: false };
    let mut looked_at = 0;
    while let Some(row) = rows.next()? {
        let number: i64 = row.get(0)?;
        let events = unpacked(&mut lanes, number, row.get_ref(1)?.as_blob().unwrap_or_default())?;
        let count = u32::try_from(events.len()).expect("bounded by the writer");
        let number = number.unsigned_abs();
        let seen = if number == after.number { after.index.min(count) } else { 0 };
        if number == after.number && (seen == count || after.index == 0) {
            continue;
        }
        if looked_at == read.rows {
            page.more = true;
            break;
        }
        looked_at += 1;
        let indexed = (1..).zip(events).skip(usize::try_from(seen).unwrap_or(usize::MAX));
        let matching = indexed.filter(|(_, event)| wanted.iter().any(|it| it.matches(event)));
        page.events.extend(matching.map(|(index, event)| {
            // A position behind the last event of a row is one behind the row.
            let index = if index == count { 0 } else { index };
            StoredEvent { position: place(number, index), event }
        }));
        page.next = place(number, 0);
    }
    Ok(Found::Page(page))
}

/// Lanes by their numbers.
struct Lanes<'a> {
    connection: &'a Connection,
    known: HashMap<LaneId, duly_core::name::Lane>,
}

impl Lanes<'_> {
    fn find(&mut self, id: LaneId) -> Result<duly_core::name::Lane> {
        if let Some(lane) = self.known.get(&id) {
            return Ok(lane.clone());
        }
        let mut statement = self.connection.prepare_cached(
            "/* outbox.lane */ SELECT tenant, queue, type FROM lane WHERE id = ?",
        )?;
        let mut rows = statement.query([id])?;
        let damaged = || Fault::Corrupt { table: "outbox", column: "lane", id: id.to_string() };
        let row = rows.next()?.ok_or_else(damaged)?;
        let lane = lane_from(id, row.get_ref(0)?, row.get_ref(1)?, row.get_ref(2)?)?;
        self.known.insert(id, lane.clone());
        Ok(lane)
    }
}

/// The events of a row. One that cannot be read must not hold back those behind it.
fn unpacked(lanes: &mut Lanes<'_>, number: i64, body: &[u8]) -> Result<Vec<Event>> {
    match packed::unpack(number, body, |id| lanes.find(id)) {
        Err(fault) if fault.is_bad_row() => {
            tracing::error!(%fault, "stored events cannot be read and are left out");
            Ok(Vec::new())
        }
        events => events,
    }
}

fn tasks(connection: &Connection, ids: &[TaskId], payloads: bool) -> Result<Vec<Task>> {
    let snapshot = connection.unchecked_transaction()?;
    let all = row::TASK_COLUMNS;
    let columns = if payloads { all.into() } else { all.replace(row::PAYLOAD_COLUMN, "'null'") };
    let tables = row::TASK_TABLES;
    let select = format!("/* outbox.tasks */ SELECT {columns} FROM {tables} WHERE task.id = ?");
    let mut statement = snapshot.prepare_cached(&select)?;
    let mut tasks = Vec::with_capacity(ids.len());
    for id in ids {
        let mut rows = statement.query([id.as_bytes()])?;
        let Some(row) = rows.next()? else { continue };
        let mut task = row::task(row)?;
        links::fill(&snapshot, &mut task)?;
        tasks.push(task);
    }
    Ok(tasks)
}
