//! The settings that this node goes by.

use std::sync::Arc;

use duly_core::ports::store::{self, Error, Store, VersionedSettings};
use duly_core::settings::{Retention, Settings};
use tokio::sync::watch;

/// The newest settings that this node knows. It learns of a change by making it, and of those that
/// other nodes make when it gives its next sign of life.
pub(crate) struct Current {
    store: Arc<dyn Store>,
    known: watch::Sender<Option<Arc<VersionedSettings>>>,
}

impl Current {
    /// Nothing is known yet; the first who asks reads the store.
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, known: watch::Sender::new(None) }
    }

    /// The newest settings that are known; some that are safe where the store's are damaged.
    pub(crate) async fn get(&self) -> store::Result<Arc<VersionedSettings>> {
        if let Some(known) = &*self.known.borrow() {
            return Ok(Arc::clone(known));
        }
        let read = match self.store.settings().await {
            Err(error @ Error::Corrupt { .. }) => {
                tracing::error!(
                    %error,
                    "the settings cannot be read; until they are set again the defaults hold, and \
                     no task is deleted"
                );
                stand_in()
            }
            answer => answer?,
        };
        Ok(self.learn(read))
    }

    /// The settings as the store has them now. Whoever goes by them does something that cannot be
    /// undone, so damaged ones are a fault here.
    pub(crate) async fn read(&self) -> store::Result<Arc<VersionedSettings>> {
        let read = self.store.settings().await?;
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

/// What holds where nobody can read what was set: with it tasks go on, and none is lost that
/// somebody wanted to keep.
fn stand_in() -> VersionedSettings {
    let settings = Settings { retention: Retention::FOREVER, ..Settings::default() };
    VersionedSettings { settings, ..VersionedSettings::default() }
}
