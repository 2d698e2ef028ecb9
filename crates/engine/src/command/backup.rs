//! Copy the whole store while it works.

use duly_core::ports::store::{self, CopyProgress, Snapshot};

use crate::engine::Engine;

impl Engine {
    /// A consistent copy of the store; nothing if it is copied with tools of its own.
    pub async fn snapshot(&self) -> store::Result<Option<Snapshot>> {
        self.store().snapshot().await
    }

    /// How far the copy is that is being made, if one is.
    pub fn copy_progress(&self) -> Option<CopyProgress> {
        self.store().copy_progress()
    }
}
