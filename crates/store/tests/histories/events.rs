//! Events: each change of the model has its event in both stores, and there is none without a change. Those
//! of a task are in the order of its changes; all others are compared as a set.

use std::collections::BTreeMap;
use std::time::Duration;

use duly_core::event::{About, Event, EventKind, Kinds, Position, SinkName, Subscription};
use duly_core::id::{NodeId, TaskId};
use duly_core::limits::{SINK_AGE, SINK_ROWS};
use duly_core::ports::store::{
    Events, HoldSinks, PassEvents, PutSink, ReadEvents, Store, TidyEvents,
};
use serde_json::Value;

/// How often the sink says what it has received.
const PASSES: u64 = 8;
/// So few that most calls take several pages.
const ROWS: u32 = 2;

fn name() -> SinkName {
    SinkName::new("all").unwrap()
}

/// A sink of all events, or of all but one kind: a store may delete many tasks at once if no sink wants to be
/// told of each.
pub(crate) fn sink(deleted: bool) -> PutSink {
    let wanted = |kind: &EventKind| deleted || *kind != EventKind::TaskDeleted;
    let kinds: Kinds = EventKind::ALL.into_iter().filter(wanted).collect();
    PutSink { name: name(), subscriptions: vec![Subscription::to(kinds)], window: None }
}

/// Where the reader of a store is.
#[derive(Default)]
pub(crate) struct Reader {
    place: Option<Position>,
}

/// What was told, as far as it means anything: what has no order is sorted.
#[derive(Debug, PartialEq)]
pub(crate) struct Told {
    tasks: BTreeMap<TaskId, Vec<Event>>,
    others: Vec<(Event, String)>,
}

impl Told {
    pub(crate) fn kinds(&self) -> impl Iterator<Item = EventKind> {
        let others = self.others.iter().map(|(event, _)| event);
        self.tasks.values().flatten().chain(others).map(|event| event.kind)
    }
}

impl Reader {
    /// Everything that was told since.
    pub(crate) async fn read(&mut self, store: &dyn Store) -> Told {
        let mut told = Told { tasks: BTreeMap::new(), others: Vec::new() };
        loop {
            let read = ReadEvents { sink: name(), after: self.place.take(), rows: ROWS };
            let found = store.events(read).await.unwrap();
            let Events::Page(page) = found else { panic!("{found:?}") };
            for event in page.events.into_iter().map(|it| it.event) {
                told.add(event);
            }
            self.place = Some(page.next);
            if !page.more {
                told.others.sort_by_key(|(event, text)| (event.kind, text.clone()));
                return told;
            }
        }
    }

    /// The sink has received everything so far, and what nobody needs is removed.
    pub(crate) async fn pass(&self, store: &dyn Store) {
        let (node, ttl) = (NodeId::ONLY, Duration::from_secs(60));
        let hold = HoldSinks { node, ttl, names: vec![name()], most: 1 };
        let held = store.hold_sinks(hold).await.unwrap().remove(0);
        let (sink, term, position) = (held.name, held.term, self.place.clone());
        let order = PassEvents { sink, node, term, position, trouble: None };
        assert!(store.pass_events(order).await.unwrap());
        let order = TidyEvents { rows: SINK_ROWS, age: SINK_AGE };
        assert!(store.tidy_events(order).await.unwrap().suspended.is_empty());
    }

    /// Whether it is time to.
    pub(crate) const fn passes(step: u64) -> bool {
        step.is_multiple_of(PASSES)
    }
}

impl Told {
    fn add(&mut self, event: Event) {
        match &event.about {
            About::Task { id, .. } => self.tasks.entry(*id).or_default().push(event),
            About::Other { subject, data } => {
                // Stores may write the fields in any order.
                let data: Value = serde_json::from_str(data).unwrap();
                let text = format!("{subject} {data}");
                let about = About::Other { subject: subject.clone(), data: "".into() };
                self.others.push((Event { about, ..event }, text));
            }
        }
    }
}
