//! Copies of the whole store, made while it works.

use std::fmt;
use std::io::Read;

use async_trait::async_trait;

use super::Result;

/// A consistent copy of everything that was committed at one moment.
pub struct Snapshot {
    /// How long it is.
    pub bytes: u64,
    /// The copy, in the store's own format.
    pub content: Box<dyn Read + Send>,
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// How far a copy is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyProgress {
    /// What was copied so far.
    pub copied_bytes: u64,
    /// What there is to copy; it grows with the store.
    pub total_bytes: u64,
}

/// Copying the store.
#[async_trait]
pub trait Snapshots {
    /// Copies the store, in steps that other calls pass between. The copy holds what was committed when
    /// its last step was made. Nothing if the store is copied with tools of its own. One copy is made at
    /// a time. Dropping the call gives it up.
    async fn snapshot(&self) -> Result<Option<Snapshot>> {
        Ok(None)
    }

    /// How far the copy is that is being made, if one is.
    fn copy_progress(&self) -> Option<CopyProgress> {
        None
    }
}
