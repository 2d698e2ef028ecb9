//! Follows a tenant's events from a place on.
//!
//! A reader from an older place reads the store until it has caught up, and the ring of the
//! [`Tail`] from then on. Between the two it has to know what it has read already, since
//! the order of its own reads and the order of the ring may differ. It asks the tail to catch up, which
//! names a number: all that was committed before is in the ring before that number. Then it reads the store
//! to its end, and remembers what it reads. From that number on, the ring has what was committed later, and
//! no more of what was read than what is remembered.
//!
//! A reader that falls behind the ring starts over from its place. So nothing is kept for a reader that
//! does not read, and nothing is lost until the store keeps it no longer.

use std::collections::HashSet;
use std::sync::Arc;

use duly_core::event::Position;
use duly_core::filter::EventFilter;
use duly_core::limits::EVENT_ROWS;
use duly_core::name::TenantName;
use duly_core::ports::event_sink::{Delivery, Details};
use duly_core::ports::store::{self, EventPage, Events, ReadEvents};
use duly_core::time::Timestamp;

use super::tail::{End, Tail, Tails, stream};
use super::with_details;

/// Events that are given at once.
const AT_ONCE: usize = 500;

/// Where to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begin {
    /// With what is committed from now on.
    Now,
    /// With the oldest event that is kept.
    Oldest,
    /// With what is kept of the events since this time.
    Since(Timestamp),
    /// Behind this place.
    After(Position),
}

/// What a reader of events gets.
#[derive(Clone, Debug, PartialEq)]
pub enum Fed {
    /// Events, in the order of the changes of each task.
    Events(Vec<Delivery>),
    /// What followed the reader's place is not kept any more; it goes on with the present.
    Reset,
}

/// The events of a tenant, from a place on.
pub struct EventFeed {
    tails: Arc<Tails>,
    tail: Arc<Tail>,
    tenant: TenantName,
    filter: EventFilter,
    source: Source,
    /// What was stored before is given from this time on.
    since: Option<Timestamp>,
    /// Up to where events were given, if any were.
    place: Option<Position>,
}

/// Where the next events come from.
enum Source {
    /// Nowhere yet: it begins with the present.
    Present,
    /// The store, behind the reader's place.
    Store,
    /// The same; everything that was read before is in the ring before this number.
    StoreBefore { number: u64, read: HashSet<Key> },
    /// The ring, from this number on, but for what was read already.
    Ring { number: u64, read: HashSet<Key> },
}

/// What tells events apart.
type Key = (u64, u32);

fn key(position: &Position) -> Key {
    (position.number, position.index)
}

impl EventFeed {
    pub(crate) fn new(
        tails: Arc<Tails>,
        tenant: TenantName,
        filter: EventFilter,
        begin: Begin,
    ) -> Self {
        let since = match begin {
            Begin::Since(since) => Some(since),
            Begin::Now | Begin::Oldest | Begin::After(_) => None,
        };
        let (source, place) = match begin {
            Begin::Now => (Source::Present, None),
            Begin::Oldest | Begin::Since(_) => (Source::Store, None),
            Begin::After(place) => (Source::Store, Some(place)),
        };
        let tail = tails.join(&tenant);
        Self { tails, tail, tenant, filter, source, since, place }
    }

    /// Waits until the reader's place is found, so that everything counts that is committed after this.
    pub async fn open(&mut self) -> store::Result<()> {
        let End { number, place } = self.tail.caught_up().await?;
        if let Source::Present = self.source {
            self.source = Source::Ring { number, read: HashSet::new() };
            self.place = Some(place);
        }
        Ok(())
    }

    /// A place up to which there is nothing more to give: a reader that comes back after it misses nothing.
    pub fn place(&self) -> Option<Position> {
        let number = match &self.source {
            Source::Ring { number, read } if read.is_empty() => Some(*number),
            Source::Ring { .. } | Source::Present | Source::Store | Source::StoreBefore { .. } => {
                None
            }
        };
        // While nothing of the tenant changes, the end of the events moves on.
        let end = number.and_then(|number| self.tail.place_at(number));
        end.or_else(|| self.place.clone())
    }

    /// The next events that the filter means, perhaps none of those that were looked at. Dropping the call
    /// loses nothing.
    pub async fn next(&mut self) -> store::Result<Fed> {
        loop {
            let fed = match &self.source {
                Source::Present => {
                    self.open().await?;
                    continue;
                }
                Source::Ring { number, .. } => {
                    let number = *number;
                    self.read_ring(number).await
                }
                Source::Store | Source::StoreBefore { .. } => Some(self.read_store().await?),
            };
            match fed {
                Some(Fed::Events(events)) if events.is_empty() => {}
                Some(fed) => return Ok(fed),
                None => {}
            }
        }
    }

    /// Events of the ring; nothing if the reader has to look in the store.
    async fn read_ring(&mut self, number: u64) -> Option<Fed> {
        self.tail.grown(number).await;
        let Some(events) = self.tail.from(number, AT_ONCE) else {
            self.source = Source::Store;
            return None;
        };
        if let Source::Ring { number, read } = &mut self.source {
            *number += events.len() as u64;
            let is_new = |it: &Delivery| !read.remove(&key(&it.position));
            let events = events.into_iter().filter(is_new).collect();
            return Some(Fed::Events(self.give(events)));
        }
        None
    }

    /// Events of the store.
    async fn read_store(&mut self) -> store::Result<Fed> {
        let sink = stream(&self.tenant).name;
        let read = ReadEvents { sink, after: self.place.clone(), rows: EVENT_ROWS };
        if self.place.is_none() {
            // The sink may not be there yet.
            self.tail.caught_up().await?;
        }
        let store = self.tails.store();
        let EventPage { events, next, more } = match store.events(read).await? {
            Events::Page(page) => page,
            Events::Gone | Events::Closed => {
                (self.source, self.place) = (Source::Present, None);
                self.open().await?;
                return Ok(Fed::Reset);
            }
        };
        let keys: Vec<_> = events.iter().map(|it| key(&it.position)).collect();
        let mut events = with_details(&**store, events, Details::Tasks).await?;
        let caught_up = match (&self.source, more) {
            (Source::Store, false) => Some(self.tail.caught_up().await?),
            _ => None,
        };
        // Nothing waits from here on: a dropped call has changed nothing.
        if let (Source::Store, Some(since)) = (&self.source, self.since) {
            events.retain(|it| it.event.at >= since);
        }
        self.source = match std::mem::replace(&mut self.source, Source::Store) {
            Source::StoreBefore { number, mut read } => {
                read.extend(keys);
                if more {
                    Source::StoreBefore { number, read }
                } else {
                    Source::Ring { number, read }
                }
            }
            source => match caught_up {
                Some(End { number, .. }) => Source::StoreBefore { number, read: HashSet::new() },
                None => source,
            },
        };
        let events = self.give(events);
        self.place = Some(next);
        Ok(Fed::Events(events))
    }

    /// What the filter means of events that come next.
    fn give(&mut self, events: Vec<Delivery>) -> Vec<Delivery> {
        if let Some(last) = events.last() {
            self.place = Some(last.position.clone());
        }
        let is_meant = |it: &Delivery| self.filter.matches(&it.event, it.task.as_deref());
        events.into_iter().filter(is_meant).collect()
    }
}
