//! The settings in effect on this node.

use std::sync::Arc;

use duly_core::ports::store::{self, Error, Store, VersionedSettings};
use duly_core::settings::{Retention, Settings};
use tokio::sync::watch;

/// The newest settings that this node knows. It learns of its own changes at once, and of those of
/// other nodes with its next sign of life.
pub(crate) struct CurrentSettings {
    store: Arc<dyn Store>,
    known: watch::Sender<Option<Arc<VersionedSettings>>>,
}

impl CurrentSettings {
    /// Knows nothing yet: the first call of [`Self::get`] reads the store.
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, known: watch::Sender::new(None) }
    }

    /// The newest known settings; safe defaults if the stored ones are damaged.
    pub(crate) async fn get(&self) -> store::Result<Arc<VersionedSettings>> {
        if let Some(known) = &*self.known.borrow() {
            return Ok(Arc::clone(known));
        }
        let read = match self.store.settings().await {
            Err(error @ Error::Corrupt { .. }) => {
                tracing::error!(
                    %error,
                    "the settings cannot be read; until they are set again the defaults apply, and \
                     no task is deleted"
                );
                safe_defaults()
            }
            answer => answer?,
        };
        Ok(self.update(read))
    }

    /// The settings as the store has them now. Damaged settings are an error here: the caller
    /// does something that cannot be undone.
    pub(crate) async fn read(&self) -> store::Result<Arc<VersionedSettings>> {
        let read = self.store.settings().await?;
        Ok(self.update(read))
    }

    /// Remembers settings, unless newer ones are known. Returns the newest.
    pub(crate) fn update(&self, read: VersionedSettings) -> Arc<VersionedSettings> {
        let read = Arc::new(read);
        self.known.send_if_modified(|known| {
            let is_newer = known.as_ref().is_none_or(|known| known.version < read.version);
            if is_newer {
                *known = Some(Arc::clone(&read));
            }
            is_newer
        });
        self.known.borrow().as_ref().map_or(read, Arc::clone)
    }

    /// Waits for settings newer than this version.
    pub(crate) async fn after(&self, version: u64) -> Arc<VersionedSettings> {
        let mut known = self.known.subscribe();
        let is_newer = |known: &Option<Arc<VersionedSettings>>| {
            known.as_ref().is_some_and(|known| known.version > version)
        };
        let newer = known.wait_for(is_newer).await.expect("the sender is in the same value");
        newer.as_ref().map(Arc::clone).expect("newer settings are some")
    }
}

/// What applies while the stored settings cannot be read: tasks run, and none is deleted that the
/// stored settings may keep.
fn safe_defaults() -> VersionedSettings {
    let settings = Settings { retention: Retention::FOREVER, ..Settings::default() };
    VersionedSettings { settings, ..VersionedSettings::default() }
}
