//! The events of a transaction, until they are written with it.

use std::cell::{Cell, RefCell};

use duly_core::event::{Event, EventKind};
use duly_core::id::TaskId;
use duly_core::limits::EVENTS_PER_ROW;
use duly_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::packed::{pack_other, pack_task};
use crate::sqlite::error::Result;
use crate::sqlite::index::lanes::LaneId;
use crate::sqlite::verb::Scope;

/// What the jobs of a transaction have to tell, packed in rows.
#[derive(Debug, Default)]
pub(in crate::sqlite) struct Events {
    waiting: RefCell<Vec<Row>>,
    written: Cell<bool>,
}

#[derive(Debug, Default)]
struct Row {
    events: usize,
    body: Vec<u8>,
}

impl Events {
    fn append(&self, pack: impl FnOnce(&mut Vec<u8>)) {
        let mut rows = self.waiting.borrow_mut();
        if rows.last().is_none_or(|row| row.events == EVENTS_PER_ROW) {
            rows.push(Row::default());
        }
        let row = rows.last_mut().expect("there is one");
        row.events += 1;
        pack(&mut row.body);
    }

    /// Writes what waits to be written, in the transaction. Whether it has any events by now.
    pub(in crate::sqlite) fn write(&self, connection: &Connection, now: Timestamp) -> Result<bool> {
        for row in self.waiting.take() {
            self.written.set(true);
            connection
                .prepare_cached("/* outbox.write */ INSERT INTO outbox (at, body) VALUES (?, ?)")?
                .execute(params![now.millis(), row.body])?;
        }
        Ok(self.written.get())
    }
}

/// An event about a task whose row may be gone when it is told.
pub(in crate::sqlite) struct Foretold((EventKind, Timestamp), (TaskId, LaneId, u32, u32));

impl Scope<'_> {
    /// Writes what the transaction has to tell so far.
    pub(in crate::sqlite) fn flush_events(&self) -> Result<()> {
        self.events.write(self.connection, self.now).map(|_| ())
    }

    /// Tells of a task whose lane, run and epoch are at hand.
    pub(in crate::sqlite) fn tell_known(
        &self,
        kind: EventKind,
        (task, lane, run, epoch): (TaskId, LaneId, u32, u32),
    ) -> Result<()> {
        if self.index.sinks.want(kind)
            && self.index.sinks.want_of(kind, self.index.lanes.get(lane)?)
        {
            self.events.append(|body| pack_task(body, (kind, self.now), (task, lane, run, epoch)));
        }
        Ok(())
    }

    /// Tells of a task, which is already as it is after the change. Nothing is read unless a sink wants this
    /// kind of event.
    pub(in crate::sqlite) fn tell(&self, kind: EventKind, task: TaskId) -> Result<()> {
        let foretold = self.foretell(kind, task)?;
        self.tell_foretold(foretold);
        Ok(())
    }

    /// Tells of several tasks.
    pub(in crate::sqlite) fn tell_all(
        &self,
        kind: EventKind,
        tasks: impl Iterator<Item = TaskId>,
    ) -> Result<()> {
        if self.index.sinks.want(kind) {
            for task in tasks {
                self.tell(kind, task)?;
            }
        }
        Ok(())
    }

    /// The event about a task as it is now, if a sink wants it.
    pub(in crate::sqlite) fn foretell(
        &self,
        kind: EventKind,
        task: TaskId,
    ) -> Result<Option<Foretold>> {
        if !self.index.sinks.want(kind) {
            return Ok(None);
        }
        let mut statement = self
            .connection
            .prepare_cached("/* outbox.task */ SELECT lane, run, epoch FROM task WHERE id = ?")?;
        let found = statement
            .query_row([task.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
        let Some((lane, run, epoch)) = found.optional()? else { return Ok(None) };
        let is_wanted = self.index.sinks.want_of(kind, self.index.lanes.get(lane)?);
        Ok(is_wanted.then_some(Foretold((kind, self.now), (task, lane, run, epoch))))
    }

    pub(in crate::sqlite) fn tell_foretold(&self, foretold: Option<Foretold>) {
        if let Some(Foretold(what, task)) = foretold {
            self.events.append(|body| pack_task(body, what, task));
        }
    }

    /// Tells of anything else.
    pub(in crate::sqlite) fn emit(&self, event: &Event) {
        if self.index.sinks.want_event(event) {
            self.events.append(|body| pack_other(body, event));
        }
    }
}
