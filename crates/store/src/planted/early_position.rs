//! [`PlantedBug::PositionBeforeDelivery`](super::PlantedBug::PositionBeforeDelivery): whatever a relay reads
//! counts as received.

use std::any::Any;
use std::sync::Arc;

use duly_core::ports::store::{Events, PassEvents, ReadEvents, Result, Store};

use crate::layer::{BoxFuture, Call, Layer, Layered};

/// A store with this bug.
pub fn with_early_positions(store: Arc<dyn Store>) -> Arc<dyn Store> {
    Arc::new(Layered::new(EarlyPositions(Arc::clone(&store)), store))
}

struct EarlyPositions(Arc<dyn Store>);

impl EarlyPositions {
    async fn save(&self, read: &ReadEvents, found: &Events) -> Result<()> {
        let Events::Page(page) = found else { return Ok(()) };
        let sinks = self.0.sinks().await?;
        let Some(sink) = sinks.into_iter().find(|it| it.sink.name == read.sink) else {
            return Ok(());
        };
        let Some(relay) = sink.relay else { return Ok(()) };
        let pass = PassEvents {
            sink: read.sink.clone(),
            node: relay.node,
            term: relay.term,
            position: Some(page.next.clone()),
            trouble: None,
        };
        self.0.pass_events(pass).await.map(drop)
    }
}

impl Layer for EarlyPositions {
    async fn call<'a, T, F>(&'a self, call: Call<'a>, inner: F) -> Result<T>
    where
        T: Send + 'static,
        F: Fn() -> BoxFuture<'a, Result<T>> + Send + Sync + 'a,
    {
        let answer = inner().await?;
        let found: &dyn Any = &answer;
        if let (Some(read), Some(found)) = (call.argument::<ReadEvents>(), found.downcast_ref()) {
            self.save(read, found).await?;
        }
        Ok(answer)
    }
}
