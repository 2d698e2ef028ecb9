//! Whether a connection is in use: how the server tells a request that takes long from a peer that
//! is gone or does not read its answer.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;

/// What one connection does.
#[derive(Default)]
pub(super) struct ConnectionActivity(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    /// Requests that began and pieces of streamed answers, together.
    events: u64,
    /// The events at the last check.
    checked: u64,
    /// Requests whose answer has not ended.
    active: usize,
    /// Those of them that have a piece of their answer waiting to be sent.
    unsent: usize,
}

/// The use of a connection since the last check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Usage {
    /// The peer has never sent a request.
    Unused,
    /// No request began and no piece was sent. Either no request is active, or the peer does not
    /// read the answers of those that are.
    Idle,
    Busy,
}

impl ConnectionActivity {
    pub(super) fn check(&self) -> Usage {
        let mut counts = self.0.lock();
        let is_new = counts.events != counts.checked;
        counts.checked = counts.events;
        if counts.events == 0 {
            Usage::Unused
        } else if is_new || counts.active > counts.unsent {
            Usage::Busy
        } else {
            Usage::Idle
        }
    }
}

/// One request; it is active until this is dropped, also if it is given up.
pub(super) struct ActiveRequest(Arc<ConnectionActivity>);

impl ActiveRequest {
    pub(super) fn begin(activity: &Arc<ConnectionActivity>) -> Self {
        let mut counts = activity.0.lock();
        counts.events += 1;
        counts.active += 1;
        drop(counts);
        Self(Arc::clone(activity))
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.0.0.lock().active -= 1;
    }
}

/// A body whose request is active until the body ends.
///
/// HTTP asks a body for its next piece only once it can send it. So a body that was asked and has
/// nothing yet is one that the server must fill, and a body that is not asked again after a piece is
/// one that the peer does not read.
pub(super) struct StreamedBody {
    body: Body,
    request: ActiveRequest,
    is_unsent: bool,
}

impl StreamedBody {
    pub(super) fn new(body: Body, request: ActiveRequest) -> Self {
        let mut streamed = Self { body, request, is_unsent: false };
        // Nothing has asked for the first piece yet.
        streamed.set_unsent(true);
        streamed
    }

    fn set_unsent(&mut self, is_unsent: bool) {
        let mut counts = self.request.0.0.lock();
        counts.unsent -= usize::from(self.is_unsent);
        counts.unsent += usize::from(is_unsent);
        counts.events += u64::from(is_unsent);
        self.is_unsent = is_unsent;
    }
}

impl HttpBody for StreamedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        self.set_unsent(frame.is_ready());
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for StreamedBody {
    fn drop(&mut self) {
        self.set_unsent(false);
    }
}

#[cfg(test)]
mod tests;
