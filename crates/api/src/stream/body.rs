//! The body of a stream: what its sources give, until something ends it.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::ending::{Closed, Ending};
use super::frame::Frame;
use super::places::StreamPlace;
use super::sources::Sources;

/// A peer that takes nothing for so long is cut off. Its connection is closed without a word if it goes on
/// so: see [`crate::server`].
const SLOW: Duration = Duration::from_secs(30);

/// A stream under way.
pub(crate) struct EventStream {
    open: Option<Open>,
}

struct Open {
    sources: Sources,
    ending: BoxFuture<'static, Closed>,
    /// When the last piece was given, if nobody has asked for another one since.
    given_at: Option<Instant>,
    _place: StreamPlace,
}

impl EventStream {
    pub(crate) fn new(sources: Sources, ending: Ending, place: StreamPlace) -> Self {
        let ending = Box::pin(ending.comes());
        Self { open: Some(Open { sources, ending, given_at: None, _place: place }) }
    }
}

impl Open {
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Result<Bytes, Closed>> {
        // HTTP asks for the next piece once there is room for it.
        if self.given_at.take().is_some_and(|at| at.elapsed() >= SLOW) {
            return Poll::Ready(Err(Closed::SlowReader));
        }
        if let Poll::Ready(closed) = self.ending.as_mut().poll(context) {
            return Poll::Ready(Err(closed));
        }
        let piece = ready!(self.sources.poll_piece(context));
        self.given_at = Some(Instant::now());
        Poll::Ready(piece)
    }
}

impl Stream for EventStream {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(open) = &mut self.open else { return Poll::Ready(None) };
        let piece = ready!(open.poll_piece(context)).unwrap_or_else(|closed| {
            self.open = None;
            Frame::message("closed", &closed.view())
        });
        Poll::Ready(Some(Ok(piece)))
    }
}
