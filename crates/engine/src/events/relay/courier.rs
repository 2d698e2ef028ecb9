//! Delivers the events of one sink, under one term. It saves the sink's position after a delivery, never
//! before: what was delivered and not saved is delivered again, with the same id.

use std::sync::Arc;
use std::time::Duration;

use duly_core::event::{Position, SinkName};
use duly_core::ports::event_sink::EventSink;
use duly_core::ports::store::{EventPage, Events, PassEvents, ReadEvents, Store, StoredEvent};

use crate::events::with_details;
use crate::events::written::Listener;

/// Stored rows that are read at once; each has all events of a transaction.
const ROWS: u32 = 50;
/// Events that are delivered at once.
const AT_ONCE: usize = 1_000;
/// How long to wait after a sink did not take events, at first and at the most.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));

pub(super) struct Courier {
    pub(super) store: Arc<dyn Store>,
    pub(super) sink: Arc<dyn EventSink>,
    pub(super) listener: Listener,
    pub(super) name: SinkName,
    pub(super) term: u64,
    /// What the sink has received.
    pub(super) position: Position,
}

/// What becomes of the courier after a page.
enum Next {
    /// There is more to read.
    Read,
    /// Everything was delivered.
    Wait,
    /// Another node serves the sink, or it is suspended or removed.
    End,
}

impl Courier {
    /// Delivers until the sink is not this node's any more.
    pub(super) async fn run(mut self) {
        let (mut pause, longest) = BACK_OFF;
        loop {
            self.listener.forget();
            match self.run_once().await {
                Ok(Next::End) => return,
                Ok(next) => {
                    pause = BACK_OFF.0;
                    if let Next::Wait = next {
                        self.listener.heard().await;
                    }
                }
                Err(trouble) => {
                    tracing::warn!(sink = %self.name, trouble, "a sink receives no events for now");
                    if !self.save(None, Some(trouble)).await.unwrap_or(true) {
                        return;
                    }
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(longest);
                }
            }
        }
    }

    /// Delivers a page.
    async fn run_once(&mut self) -> Result<Next, String> {
        let after = Some(self.position.clone());
        let read = ReadEvents { sink: self.name.clone(), after, rows: ROWS };
        let EventPage { events, next, more } = match self.store.events(read).await {
            Ok(Events::Page(page)) => page,
            Ok(Events::Closed) => return Ok(Next::End),
            // The sink was removed and created again: the next round begins at its new position.
            Ok(Events::Gone) => return Ok(Next::End),
            Err(error) => return Err(error.to_string()),
        };
        let has_moved = next != self.position;
        if let Err((delivered, trouble)) = self.deliver(events).await {
            if let Some(position) = delivered {
                self.save(Some(position.clone()), Some(trouble.clone())).await?;
                self.position = position;
            }
            return Err(trouble);
        }
        if has_moved && !self.save(Some(next.clone()), None).await? {
            return Ok(Next::End);
        }
        self.position = next;
        Ok(if more { Next::Read } else { Next::Wait })
    }

    /// Delivers events. On failure, it says up to where it came, and why no further.
    async fn deliver(&self, events: Vec<StoredEvent>) -> Result<(), (Option<Position>, String)> {
        let mut delivered = None;
        let mut left = events.into_iter();
        loop {
            let part: Vec<_> = left.by_ref().take(AT_ONCE).collect();
            let Some(last) = part.last().map(|it| it.position.clone()) else { return Ok(()) };
            let part = with_details(&*self.store, part, self.sink.details()).await;
            let part = part.map_err(|error| (delivered.clone(), error.to_string()))?;
            let taken = self.sink.take(&part).await;
            taken.map_err(|error| (delivered.clone(), error.to_string()))?;
            delivered = Some(last);
        }
    }

    /// Moves the sink, or notes why it stands. Whether this node still serves it.
    async fn save(
        &self,
        position: Option<Position>,
        trouble: Option<String>,
    ) -> Result<bool, String> {
        let pass = PassEvents {
            sink: self.name.clone(),
            node: self.store.node(),
            term: self.term,
            position,
            trouble,
        };
        self.store.pass_events(pass).await.map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests;
