//! The full stream of a tenant's events.

use std::vec;

use bytes::Bytes;
use duly_client::wire::CloudEvent;
use duly_core::event::Position;
use duly_core::ports::event_sink::Delivery;
use duly_core::ports::store;
use duly_engine::events::{EventFeed, Fed};
use serde_json::json;
use tokio::time::Interval;

use super::{Source, heartbeats, rest_after};
use crate::stream::ending::Closed;
use crate::stream::frame::{EVENT, Frame};

/// Bytes after which a piece is long enough.
const PIECE: usize = 16 * 1024;

/// Events, and signs of life with the place up to which all was told: so a reader whose filter means few
/// events resumes without a gap however long it has heard of none.
pub(crate) struct EventSource {
    feed: EventFeed,
    /// What was read and not sent yet.
    read: vec::IntoIter<Delivery>,
    heartbeats: Interval,
}

impl EventSource {
    /// Finds the place where the feed begins.
    pub(crate) async fn open(mut feed: EventFeed) -> store::Result<Self> {
        feed.open().await?;
        Ok(Self { feed, read: Vec::new().into_iter(), heartbeats: heartbeats() })
    }

    pub(super) fn place(&self) -> Option<Position> {
        self.feed.place()
    }

    /// The first of what was read, as much as fits into a piece.
    fn piece(&mut self) -> Option<Bytes> {
        let mut frame = Frame::default();
        while frame.len() < PIECE
            && let Some(delivery) = self.read.next()
        {
            frame.push(EVENT, Some(&delivery.position), &CloudEvent::of(&delivery));
        }
        (frame.len() > 0).then(|| frame.into())
    }
}

impl Source for EventSource {
    async fn next(&mut self) -> Result<Option<Bytes>, Closed> {
        loop {
            if let Some(piece) = self.piece() {
                return Ok(Some(piece));
            }
            tokio::select! {
                fed = self.feed.next() => match fed {
                    Ok(Fed::Events(events)) => self.read = events.into_iter(),
                    Ok(Fed::Reset) => {
                        let mut frame = Frame::default();
                        frame.push("reset", self.place().as_ref(), &json!({}));
                        return Ok(Some(frame.into()));
                    }
                    Err(error) => rest_after(error).await?,
                },
                _ = self.heartbeats.tick() => {
                    return Ok(Some(Frame::heartbeat(self.place().as_ref())));
                }
            }
        }
    }
}
