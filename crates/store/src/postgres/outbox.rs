//! Events are not kept by this store yet.

use async_trait::async_trait;
use duly_core::event::{Position, SinkName};
use duly_core::id::{NodeId, TaskId};
use duly_core::ports::store::{
    Error, Events, HeldSink, HoldSinks, Outbox, PassEvents, PutSink, ReadEvents, Result,
    SinkChange, SinkState, Tidied, TidyEvents,
};
use duly_core::task::Task;

use super::PostgresStore;

fn not_yet<T>() -> Result<T> {
    Err(Error::Unavailable { reason: "this store keeps no events yet".to_owned() })
}

#[async_trait]
impl Outbox for PostgresStore {
    async fn put_sink(&self, _: PutSink) -> Result<SinkChange> {
        not_yet()
    }

    async fn resume_sink(&self, _: &SinkName) -> Result<bool> {
        not_yet()
    }

    async fn remove_sink(&self, _: &SinkName) -> Result<bool> {
        not_yet()
    }

    async fn sinks(&self) -> Result<Vec<SinkState>> {
        not_yet()
    }

    async fn hold_sinks(&self, _: HoldSinks) -> Result<Vec<HeldSink>> {
        not_yet()
    }

    async fn release_sinks(&self, _: NodeId) -> Result<()> {
        not_yet()
    }

    async fn events(&self, _: ReadEvents) -> Result<Events> {
        not_yet()
    }

    async fn end_of_events(&self) -> Result<Position> {
        not_yet()
    }

    async fn pass_events(&self, _: PassEvents) -> Result<bool> {
        not_yet()
    }

    async fn tidy_events(&self, _: TidyEvents) -> Result<Tidied> {
        not_yet()
    }

    async fn event_rows(&self) -> Result<u64> {
        not_yet()
    }

    async fn tasks_of(&self, _: Vec<TaskId>, _: bool) -> Result<Vec<Task>> {
        not_yet()
    }

    async fn event_hint(&self) {
        std::future::pending().await
    }
}
