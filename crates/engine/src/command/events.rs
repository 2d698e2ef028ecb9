//! Events: sinks that receive them, and readers that follow them.

use std::sync::Arc;

use duly_core::event::{SinkName, Subscription};
use duly_core::filter::EventFilter;
use duly_core::limits::SUBSCRIPTIONS;
use duly_core::name::TenantName;
use duly_core::ports::event_sink::EventSink;
use duly_core::ports::store::{self, PutSink, SinkChange, SinkState};

use crate::engine::Engine;
use crate::events::{Begin, EventFeed};

/// A sink was not added.
#[derive(Debug, thiserror::Error)]
pub enum AddSinkError {
    /// Subscriptions are limited.
    #[error("a sink has at most {SUBSCRIPTIONS} subscriptions")]
    TooManySubscriptions,
    /// So are sinks.
    #[error("there are too many sinks of events; remove one first")]
    TooManySinks,
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl Engine {
    /// Adds a sink, or changes what it wants. One of the nodes that have added it delivers to it at a time,
    /// from its creation on, until it is removed. After a restart a sink goes on where it was, once it is
    /// added again.
    pub async fn add_sink(
        &self,
        name: SinkName,
        subscriptions: Vec<Subscription>,
        sink: Arc<dyn EventSink>,
    ) -> Result<(), AddSinkError> {
        if subscriptions.len() > SUBSCRIPTIONS {
            return Err(AddSinkError::TooManySubscriptions);
        }
        let put = PutSink { name: name.clone(), subscriptions, window: None };
        match self.store().put_sink(put).await? {
            SinkChange::TooMany => Err(AddSinkError::TooManySinks),
            SinkChange::Done { .. } => {
                self.sinks().add(name, sink);
                Ok(())
            }
        }
    }

    /// Removes a sink, on every node. Whether there was one.
    pub async fn remove_sink(&self, name: &SinkName) -> store::Result<bool> {
        let removed = self.store().remove_sink(name).await?;
        self.sinks().remove(name);
        Ok(removed)
    }

    /// Lets a suspended sink receive again, from the present on. Whether there is such a sink.
    pub async fn resume_sink(&self, name: &SinkName) -> store::Result<bool> {
        let resumed = self.store().resume_sink(name).await?;
        self.sinks().note_stored();
        Ok(resumed)
    }

    /// All sinks, by name: where they are, and how far behind.
    pub async fn list_sinks(&self) -> store::Result<Vec<SinkState>> {
        self.store().sinks().await
    }

    /// Follows the events of a tenant, and those of the installation.
    pub fn follow_events(
        &self,
        tenant: TenantName,
        filter: EventFilter,
        begin: Begin,
    ) -> EventFeed {
        EventFeed::new(Arc::clone(self.tails()), tenant, filter, begin)
    }
}
