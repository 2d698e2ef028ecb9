//! What feeds a stream: one source for each topic, and one for heartbeats.

mod events;
mod objects;
mod stats;

use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use duly_core::name::TenantName;
use duly_core::ports::store;
use duly_engine::Engine;
use futures_util::stream::{self, BoxStream, SelectAll, StreamExt};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

pub(crate) use self::events::EventSource;
use self::objects::{TaskSource, WorkflowSource};
use self::stats::StatsSource;
use super::ending::Closed;
use super::frame::Frame;

/// From one sign of life to the next.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long to wait after the store did not answer.
const BACK_OFF: Duration = Duration::from_secs(1);

/// Gives pieces of a stream.
trait Source: Send + 'static {
    /// The next piece; `None` if there will be none.
    fn next(&mut self) -> impl Future<Output = Result<Option<Bytes>, Closed>> + Send;
}

/// All sources of one stream, which take turns.
pub(crate) struct Sources {
    engine: Engine,
    tenant: TenantName,
    opening: Option<Bytes>,
    all: SelectAll<BoxStream<'static, Result<Bytes, Closed>>>,
}

impl Sources {
    /// Those of a stream that has the full stream of events in it, or only signs of life so far.
    pub(crate) fn new(engine: &Engine, tenant: &TenantName, events: Option<EventSource>) -> Self {
        let place = events.as_ref().and_then(EventSource::place);
        let (engine, tenant) = (engine.clone(), tenant.clone());
        let opening = Some(Frame::opening(place.as_ref()));
        let mut sources = Self { engine, tenant, opening, all: SelectAll::new() };
        match events {
            Some(events) => sources.add(events),
            None => sources.add(Heartbeats(heartbeats())),
        }
        sources
    }

    /// Adds the figures of all queues, once a second.
    pub(crate) fn add_stats(&mut self) {
        self.add(StatsSource(self.engine.samples(&self.tenant)));
    }

    /// Adds the task with this id, whenever it has changed.
    pub(crate) fn add_task(&mut self, topic: String, id: &str) {
        match id.parse() {
            Ok(id) => {
                let feed = self.engine.watch_task(self.tenant.clone(), id);
                self.add(TaskSource { topic: Some(topic), feed });
            }
            Err(_) => self.add_gone(topic),
        }
    }

    /// Adds the workflow with this id, whenever it has changed.
    pub(crate) fn add_workflow(&mut self, topic: String, id: &str) {
        match id.parse() {
            Ok(id) => {
                let feed = self.engine.watch_workflow(self.tenant.clone(), id);
                self.add(WorkflowSource { topic: Some(topic), feed });
            }
            Err(_) => self.add_gone(topic),
        }
    }

    fn add_gone(&mut self, topic: String) {
        self.all.push(stream::iter([Ok(objects::gone(topic))]).boxed());
    }

    fn add(&mut self, source: impl Source) {
        let pieces = stream::unfold(Some(source), async |source| {
            let mut source = source?;
            let piece = source.next().await.transpose()?;
            let is_last = piece.is_err();
            Some((piece, (!is_last).then_some(source)))
        });
        self.all.push(pieces.boxed());
    }

    /// The next piece. There always is one, since heartbeats do not end.
    pub(super) fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Result<Bytes, Closed>> {
        if let Some(opening) = self.opening.take() {
            return Poll::Ready(Ok(opening));
        }
        match ready!(self.all.poll_next_unpin(context)) {
            Some(piece) => Poll::Ready(piece),
            None => Poll::Pending,
        }
    }
}

/// Signs of life, where nothing else has them.
struct Heartbeats(Interval);

impl Source for Heartbeats {
    async fn next(&mut self) -> Result<Option<Bytes>, Closed> {
        self.0.tick().await;
        Ok(Some(Frame::heartbeat(None)))
    }
}

fn heartbeats() -> Interval {
    let mut interval = interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
    // A peer that reads late gets one, not all that it has missed.
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

/// Waits until the store may be asked again, if that can help.
async fn rest_after(error: store::Error) -> Result<(), Closed> {
    if !error.is_retryable() {
        tracing::error!(%error, "a stream of events has to end");
        return Err(Closed::Internal);
    }
    tracing::debug!(%error, "a stream of events waits for the store");
    tokio::time::sleep(BACK_OFF).await;
    Ok(())
}
