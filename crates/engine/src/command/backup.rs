//! Copy the whole store while it is in use.

use duly_core::ports::store::{self, CopyProgress, Snapshot};

use crate::engine::Engine;

impl Engine {
    /// A consistent copy of the store; `None` if its backend has backup tools of its own.
    pub async fn snapshot(&self) -> store::Result<Option<Snapshot>> {
        self.store().snapshot().await
    }

    /// The progress of the copy that is being made.
    pub fn copy_progress(&self) -> Option<CopyProgress> {
        self.store().copy_progress()
    }
}
