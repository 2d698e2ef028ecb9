//! Calls about events.

use async_trait::async_trait;
use duly_core::event::{Position, SinkName};
use duly_core::id::{NodeId, TaskId};
use duly_core::ports::store::{
    Events, HeldSink, HoldSinks, Outbox, PassEvents, PutSink, ReadEvents, Result, SinkChange,
    SinkState, Tidied, TidyEvents,
};
use duly_core::task::Task;

use super::{Call, Layer, Layered};

#[async_trait]
impl<L: Layer + 'static> Outbox for Layered<L> {
    async fn put_sink(&self, sink: PutSink) -> Result<SinkChange> {
        self.layer.call(Call::new("put_sink", &sink), || self.inner.put_sink(sink.clone())).await
    }

    async fn resume_sink(&self, name: &SinkName) -> Result<bool> {
        self.layer.call(Call::named("resume_sink"), || self.inner.resume_sink(name)).await
    }

    async fn remove_sink(&self, name: &SinkName) -> Result<bool> {
        self.layer.call(Call::named("remove_sink"), || self.inner.remove_sink(name)).await
    }

    async fn sinks(&self) -> Result<Vec<SinkState>> {
        self.layer.call(Call::named("sinks"), || self.inner.sinks()).await
    }

    async fn hold_sinks(&self, order: HoldSinks) -> Result<Vec<HeldSink>> {
        let call = Call::new("hold_sinks", &order);
        self.layer.call(call, || self.inner.hold_sinks(order.clone())).await
    }

    async fn release_sinks(&self, node: NodeId) -> Result<()> {
        self.layer.call(Call::named("release_sinks"), || self.inner.release_sinks(node)).await
    }

    async fn events(&self, read: ReadEvents) -> Result<Events> {
        self.layer.call(Call::new("events", &read), || self.inner.events(read.clone())).await
    }

    async fn end_of_events(&self) -> Result<Position> {
        self.layer.call(Call::named("end_of_events"), || self.inner.end_of_events()).await
    }

    async fn pass_events(&self, order: PassEvents) -> Result<bool> {
        let call = Call::new("pass_events", &order);
        self.layer.call(call, || self.inner.pass_events(order.clone())).await
    }

    async fn tidy_events(&self, order: TidyEvents) -> Result<Tidied> {
        self.layer.call(Call::new("tidy_events", &order), || self.inner.tidy_events(order)).await
    }

    async fn event_rows(&self) -> Result<u64> {
        self.layer.call(Call::named("event_rows"), || self.inner.event_rows()).await
    }

    async fn tasks_of(&self, ids: Vec<TaskId>, payloads: bool) -> Result<Vec<Task>> {
        let call = Call::new("tasks_of", &ids);
        self.layer.call(call, || self.inner.tasks_of(ids.clone(), payloads)).await
    }

    async fn event_hint(&self) {
        self.layer.event_hint(&*self.inner).await;
    }
}
