//! Events and their sinks on PostgreSQL. Writers insert rows in the transactions of the changes; readers
//! must find each of them, although transactions do not commit in the order of anything they write.
//!
//! **Order.** A row gets its number when it is inserted, and it is inserted once its transaction holds the
//! locks of the tasks that it tells of. The transaction that changes one of them next gets that lock after
//! the commit, and its number after that. So the events of a task are in the order of their numbers, whichever
//! transactions wrote them. The ids of transactions say nothing: a batch that waited for a lock may have
//! the lower one.
//!
//! **Steps.** Numbers are not committed in their order, so no reader goes by the last number that it has
//! seen. It goes from one snapshot of the server to a later one. A step has the rows that the second one
//! sees and the first one does not, in the order of their numbers, and the next step begins with the second
//! snapshot. A row is in exactly one step. A transaction that takes long hides no other: its rows are in the
//! step in which it has ended, the others in theirs. Between steps the order holds too: a transaction that
//! waited for a lock commits later than the one that held it.
//!
//! **Finding them.** Rows that a snapshot does not see are those of transactions that were open then, which
//! it lists, and those of transactions from its `xmax` on. The first are found by the transaction, the
//! second by their numbers, which must be above some `low`. A number that is merely read before the
//! snapshot is not: a transaction may have an id from `xmax` on and a number from long before, if none with
//! a higher id has ended yet. So `duly.event_low` reads the number and then takes an id of its own, which
//! ends before the snapshot is taken: `xmax` is above that id, and a transaction with an id from `xmax` on
//! gets that id, and its numbers, later. This costs an id for each step that has rows, and nothing while there are none.
//!
//! **Removal.** Rows go by whole segments of the table, see `duly.empty_segment`. That looks at no
//! snapshot: a reader that has begun may find less than its snapshot has. So a reader looks at its sink
//! once more when it has read. Only what every sink has passed is ever gone, and positions do not go back.

mod place;
mod read;
mod tidy;
mod told;

use async_trait::async_trait;
use duly_core::event::{Position, SinkName, Subscription};
use duly_core::id::{NodeId, TaskId};
use duly_core::limits::SINK_ROWS;
use duly_core::ports::store::{
    self, Events, HeldSink, HoldSinks, Lag, Outbox, PassEvents, PutSink, ReadEvents, Relay,
    SinkChange, SinkState, Suspension, Tidied, TidyEvents,
};
use duly_core::task::Task;
use foldhash::HashMap;
use tokio_postgres::Row;
use uuid::Uuid;

pub(super) use self::place::{COLUMNS as PLACE, Place};
pub(super) use self::told::{Told, ToldTask};
use super::error::{Fault, Result};
use super::links::{self, Linked};
use super::verb::sinks::{Hold, PutSinkVerb, Remove, Resume};
use super::{PostgresStore, row};

#[async_trait]
impl Outbox for PostgresStore {
    async fn put_sink(&self, sink: PutSink) -> store::Result<SinkChange> {
        let low = self.event_low().await?;
        Ok(self.run(&PutSinkVerb { sink, low }).await?)
    }

    async fn resume_sink(&self, name: &SinkName) -> store::Result<bool> {
        let low = self.event_low().await?;
        Ok(self.run(&Resume { name, low }).await?)
    }

    async fn remove_sink(&self, name: &SinkName) -> store::Result<bool> {
        Ok(self.run(&Remove(name)).await?)
    }

    async fn sinks(&self) -> store::Result<Vec<SinkState>> {
        Ok(self.sink_states().await?)
    }

    async fn hold_sinks(&self, order: HoldSinks) -> store::Result<Vec<HeldSink>> {
        Ok(self.run(&Hold(order)).await?)
    }

    async fn release_sinks(&self, node: NodeId) -> store::Result<()> {
        let update = "/* sink.release */ UPDATE duly.sink SET node = NULL, held_until = 0
            WHERE node = $1";
        self.pool.query(update, &[&Uuid::from_bytes(*node.as_bytes())]).await?;
        Ok(())
    }

    async fn events(&self, read: ReadEvents) -> store::Result<Events> {
        Ok(self.read_events(&read).await?)
    }

    async fn end_of_events(&self) -> store::Result<Position> {
        Ok(self.present().await?.position())
    }

    async fn pass_events(&self, order: PassEvents) -> store::Result<bool> {
        Ok(self.run(&order).await?)
    }

    async fn tidy_events(&self, order: TidyEvents) -> store::Result<Tidied> {
        Ok(self.tidy(order).await?)
    }

    async fn event_rows(&self) -> store::Result<u64> {
        let count = "/* outbox.count */ SELECT count(*) FROM (
                SELECT FROM duly.outbox ORDER BY number LIMIT $1) o";
        let rows = self.pool.query(count, &[&most_rows()]).await?;
        let count = rows.first().map(|row| row.try_get::<_, i64>(0)).transpose();
        Ok(count.map_err(Fault::from)?.unwrap_or_default().unsigned_abs())
    }

    async fn tasks_of(&self, ids: Vec<TaskId>, payloads: bool) -> store::Result<Vec<Task>> {
        Ok(self.tasks_by_id(&ids, payloads).await?)
    }

    async fn event_hint(&self) {
        self.events_written.notified().await;
    }
}

fn most_rows() -> i64 {
    i64::try_from(SINK_ROWS).expect("a million")
}

/// What lies behind the position of a sink `s`; takes the most rows that are counted.
const LAG: &str = "(SELECT count(*) AS rows, min(u.at) AS since FROM duly.unseen_events(
        s.seen, s.low, s.next_seen, s.next_low, s.next_high, s.number, s.index, '{0,1,2,3}', $1) u
    WHERE s.suspended_at IS NULL)";

impl PostgresStore {
    async fn event_low(&self) -> Result<i64> {
        read::event_low(&self.pool.get().await?).await
    }

    async fn sink_states(&self) -> Result<Vec<SinkState>> {
        let select = format!(
            "/* sink.list */ SELECT name, subscriptions, window_ms, created_at, node, term, held_until,
                    held_until > duly.now(), suspended_at, suspended_reason, trouble, lag.rows,
                    lag.since, {PLACE}
             FROM duly.sink s, LATERAL {LAG} lag ORDER BY name"
        );
        self.pool.query(&select, &[&most_rows()]).await?.iter().map(read_state).collect()
    }

    /// Behind everything that is committed by now.
    async fn present(&self) -> Result<Place> {
        let client = self.pool.get().await?;
        read::present(&client).await
    }

    async fn tasks_by_id(&self, ids: &[TaskId], payloads: bool) -> Result<Vec<Task>> {
        let (all, tables) = (row::TASK_COLUMNS, row::TASK_TABLES);
        let columns = if payloads { all.into() } else { all.replace("task.payload", "'null'") };
        let select =
            format!("/* outbox.tasks */ SELECT {columns} FROM {tables} WHERE task.id = ANY($1)");
        let uuids: Vec<_> = ids.iter().map(|id| row::uuid(*id)).collect();
        let client = self.pool.get().await?;
        let statement = client.prepare_cached(&select).await?;
        let (mut tasks, mut linked) = (Vec::new(), Vec::new());
        for found in client.query(&statement, &[&uuids]).await? {
            match row::task(&found) {
                Ok(task) => {
                    tasks.push(task);
                    linked.push(Linked::read(&found)?);
                }
                // One damaged row must not hide the others.
                Err(fault @ Fault::Corrupt { .. }) => {
                    tracing::error!(%fault, "a task cannot be read");
                }
                Err(fault) => return Err(fault),
            }
        }
        links::fill(&client, &mut tasks, &linked).await?;
        let mut by_id: HashMap<_, _> = tasks.into_iter().map(|task| (task.id, task)).collect();
        Ok(ids.iter().filter_map(|id| by_id.remove(id)).collect())
    }
}

fn read_state(found: &Row) -> Result<SinkState> {
    let until = row::instant(found.try_get(6)?);
    let term: i64 = found.try_get(5)?;
    let relay = |node: Uuid| Relay {
        node: NodeId::from_bytes(node.into_bytes()),
        term: term.unsigned_abs(),
        until,
    };
    let is_held: bool = found.try_get(7)?;
    let reason: Option<String> = found.try_get(9)?;
    let suspended = |at| Suspension { at: row::instant(at), reason: reason.unwrap_or_default() };
    let window: Option<i64> = found.try_get(2)?;
    let rows: i64 = found.try_get(11)?;
    Ok(SinkState {
        sink: PutSink {
            name: sink_name(found, 0)?,
            subscriptions: subscriptions(found, 0, 1)?,
            window: window.map(|ms| std::time::Duration::from_millis(ms.unsigned_abs())),
        },
        created_at: row::instant(found.try_get(3)?),
        position: Place::read(found, 13)?.position(),
        lag: Lag {
            rows: rows.unsigned_abs(),
            since: found.try_get::<_, Option<i64>>(12)?.map(row::instant),
        },
        relay: found.try_get::<_, Option<Uuid>>(4)?.filter(|_| is_held).map(relay),
        suspended: found.try_get::<_, Option<i64>>(8)?.map(suspended),
        trouble: found.try_get(10)?,
    })
}

pub(super) fn sink_name(found: &Row, column: usize) -> Result<SinkName> {
    let name: &str = found.try_get(column)?;
    let damaged = |_| Fault::Corrupt { table: "sink", column: "name", id: name.to_owned() };
    SinkName::new(name).map_err(damaged)
}

/// What a sink subscribes to.
pub(super) fn subscriptions(found: &Row, name: usize, at: usize) -> Result<Vec<Subscription>> {
    let id: String = found.try_get(name)?;
    let damaged = |_| Fault::Corrupt { table: "sink", column: "subscriptions", id };
    serde_json::from_str(found.try_get(at)?).map_err(damaged)
}
