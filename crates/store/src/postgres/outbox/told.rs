//! What a verb has to tell, until it is written with its changes: one statement, and only if a sink wants
//! something of that kind.

use duly_core::event::{Event, EventKind, Kinds};
use uuid::Uuid;

use crate::other_event;
use crate::postgres::error::Result;
use crate::postgres::task_state::state::{TaskState, each};
use crate::postgres::verb::Scope;

/// A task of which something is told: as it is after the change.
#[derive(Clone, Copy, Debug)]
pub(in crate::postgres) struct ToldTask {
    pub(in crate::postgres) id: Uuid,
    pub(in crate::postgres) lane: i32,
    pub(in crate::postgres) run: i32,
    pub(in crate::postgres) epoch: i32,
}

impl From<&TaskState> for ToldTask {
    fn from(state: &TaskState) -> Self {
        Self { id: state.id, lane: state.lane, run: state.run, epoch: state.epoch }
    }
}

/// The events of a transaction that are not written yet.
#[derive(Debug, Default)]
pub(in crate::postgres) struct Told {
    /// What a sink may want.
    wanted: Kinds,
    tasks: Vec<(EventKind, ToldTask)>,
    others: Vec<String>,
}

impl Told {
    /// Nothing yet, in a transaction that has read duly.wanted_kinds.
    pub(in crate::postgres) fn new(wanted: Option<i32>) -> Self {
        let wanted = Kinds::from_bits(wanted.unwrap_or_default().cast_unsigned());
        Self { wanted, ..Self::default() }
    }

    /// Whether a sink may want this kind of event.
    pub(in crate::postgres) fn wants(&self, kind: EventKind) -> bool {
        self.wanted.has(kind)
    }

    /// Something has happened to a task.
    pub(in crate::postgres) fn tell(&mut self, kind: EventKind, task: impl Into<ToldTask>) {
        if self.wants(kind) {
            self.tasks.push((kind, task.into()));
        }
    }

    /// The same, in the order of another list.
    pub(in crate::postgres) fn tell_all(&mut self, told: Vec<(EventKind, ToldTask)>) {
        told.into_iter().for_each(|(kind, task)| self.tell(kind, task));
    }

    /// Something else has happened.
    pub(in crate::postgres) fn emit(&mut self, event: &Event) {
        if self.wants(event.kind) {
            self.others.extend(other_event::encode(event));
        }
    }

    /// The same, as the server has written it.
    pub(in crate::postgres) fn emit_all(&mut self, texts: Vec<String>) {
        self.others.extend(texts);
    }
}

impl Scope<'_> {
    /// Writes what there is to tell so far. The rows that have changed are locked by now, so that the
    /// numbers of events follow the order of the changes.
    pub(in crate::postgres) async fn write_events(&mut self) -> Result<()> {
        let Told { tasks, others, .. } = &mut self.told;
        let (tasks, others) = (std::mem::take(tasks), std::mem::take(others));
        if tasks.is_empty() && others.is_empty() {
            return Ok(());
        }
        let tell = "/* outbox.tell */ SELECT duly.tell($1, $2, $3, $4, $5, $6, $7)";
        let rows = self
            .query(
                tell,
                &[
                    &self.now.millis(),
                    &each(&tasks, |(kind, _)| i16::from(kind.number())),
                    &each(&tasks, |(_, it)| it.id),
                    &each(&tasks, |(_, it)| it.lane),
                    &each(&tasks, |(_, it)| it.run),
                    &each(&tasks, |(_, it)| it.epoch),
                    &others,
                ],
            )
            .await?;
        if rows.first().map(|row| row.try_get(0)).transpose()?.unwrap_or(false) {
            self.wakes.tell();
        }
        Ok(())
    }
}
