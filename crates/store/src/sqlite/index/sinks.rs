//! What the sinks of events want.

use duly_core::event::{Event, EventKind, Kinds, Subscription};
use duly_core::name::Lane;
use rusqlite::Connection;

use crate::sqlite::error::Result;
use crate::sqlite::outbox::subscriptions;

/// What any sink wants that is not suspended.
#[derive(Debug, Default)]
pub(in crate::sqlite) struct Sinks {
    kinds: Kinds,
    wanted: Vec<Subscription>,
}

impl Sinks {
    pub(super) fn load(connection: &Connection) -> Result<Self> {
        let mut statement = connection.prepare_cached(
            "/* sink.wanted */ SELECT name, subscriptions FROM sink WHERE suspended_at IS NULL",
        )?;
        let mut rows = statement.query([])?;
        let mut wanted = Vec::new();
        while let Some(row) = rows.next()? {
            wanted.extend(subscriptions(row, 0, 1)?);
        }
        let kinds = wanted.iter().fold(Kinds::NONE, |kinds, it| kinds.and(it.kinds));
        Ok(Self { kinds, wanted })
    }

    /// Whether events of this kind may be wanted.
    pub(in crate::sqlite) fn want(&self, kind: EventKind) -> bool {
        self.kinds.has(kind)
    }

    /// Whether this kind of event is wanted about tasks of this lane.
    pub(in crate::sqlite) fn want_of(&self, kind: EventKind, lane: &Lane) -> bool {
        !lane.queue.is_reserved() && self.wanted.iter().any(|it| it.wants(kind, lane))
    }

    /// Whether this event is wanted.
    pub(in crate::sqlite) fn want_event(&self, event: &Event) -> bool {
        self.want(event.kind) && self.wanted.iter().any(|it| it.matches(event))
    }
}
