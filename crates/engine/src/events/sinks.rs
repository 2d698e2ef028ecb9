//! The sinks that this node can serve: their code is in this process.

use std::collections::HashMap;
use std::sync::Arc;

use duly_core::event::SinkName;
use duly_core::ports::event_sink::EventSink;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Sinks by name.
#[derive(Default)]
pub(crate) struct Sinks {
    known: Mutex<HashMap<SinkName, Arc<dyn EventSink>>>,
    changed: Notify,
    stored: Notify,
}

impl Sinks {
    /// From now on this node can serve the sink.
    pub(crate) fn add(&self, name: SinkName, sink: Arc<dyn EventSink>) {
        self.known.lock().insert(name, sink);
        self.note_stored();
    }

    /// The sink was removed.
    pub(crate) fn remove(&self, name: &SinkName) {
        self.known.lock().remove(name);
        self.note_stored();
    }

    pub(crate) fn names(&self) -> Vec<SinkName> {
        self.known.lock().keys().cloned().collect()
    }

    pub(crate) fn get(&self, name: &SinkName) -> Option<Arc<dyn EventSink>> {
        self.known.lock().get(name).cloned()
    }

    /// This node has changed a sink in the store: it may have to be served, or its events be removed.
    pub(crate) fn note_stored(&self) {
        self.changed.notify_one();
        self.stored.notify_one();
    }

    /// Waits until this node can serve more or fewer sinks than before.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Waits until this node has changed a sink in the store.
    pub(crate) async fn stored(&self) {
        self.stored.notified().await;
    }
}
