//! The settings that this node goes by.

use std::sync::Arc;

use duly_core::ports::store::{self, Error, Store, VersionedSettings};
use tokio::sync::watch;

/// The newest settings that this node knows. It learns of a change by making it: a store that
/// several nodes share has to tell the others.
pub(crate) struct Current {
    store: Arc<dyn Store>,
    known: watch::Sender<Option<Arc<VersionedSettings>>>,
}

impl Current {
    /// Nothing is known yet; the first who asks reads the store.
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, known: watch::Sender::new(None) }
    }

    /// The newest settings that are known.
    pub(crate) async fn get(&self) -> store::Result<Arc<VersionedSettings>> {
        if let Some(known) = &*self.known.borrow() {
            return Ok(Arc::clone(known));
        }
        let read = match self.store.settings().await {
            Err(error @ Error::Corrupt { .. }) => {
                // They can be set again; until then tasks go on.
                tracing::error!(%error, "the settings cannot be read; the defaults hold");
                VersionedSettings::default()
            }
            answer => answer?,
        };
        Ok(self.learn(read))
    }

    /// Takes note of settings, unless newer ones are known. Returns the newest.
    pub(crate) fn learn(&self, read: VersionedSettings) -> Arc<VersionedSettings> {
        let read = Arc::new(read);
        self.known.send_if_modified(|known| {
            let news = known.as_ref().is_none_or(|known| known.version < read.version);
            if news {
                *known = Some(Arc::clone(&read));
            }
            news
        });
        self.known.borrow().as_ref().map_or(read, Arc::clone)
    }

    /// Waits for settings that are newer than this version.
    pub(crate) async fn after(&self, version: u64) -> Arc<VersionedSettings> {
        let mut known = self.known.subscribe();
        let is_newer = |known: &Option<Arc<VersionedSettings>>| {
            known.as_ref().is_some_and(|known| known.version > version)
        };
        let newer = known.wait_for(is_newer).await.expect("the sender is in the same value");
        newer.as_ref().map(Arc::clone).expect("it was waited for")
    }
}
