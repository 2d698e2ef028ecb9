//! Read what a task has logged, and wait for more.

use std::time::Duration;

use duly_core::ports::store::{self, LogPage, ReadLogs};
use tokio::time::Instant;

use super::wait::SAFETY_POLL;
use crate::engine::Engine;

impl Engine {
    /// What a task has logged. Where that is nothing and more may come, as soon as there is
    /// something, the run has ended, or `patience` is over.
    pub async fn logs(&self, read: ReadLogs, patience: Duration) -> store::Result<Option<LogPage>> {
        let watch = self.outcomes().watch(read.task);
        let deadline = Instant::now() + patience;
        loop {
            // Armed before the look, so that nothing in between is missed.
            let (ended, reported) = (watch.next(), watch.next_report());
            let page = self.store().logs(read.clone()).await?;
            let waits = page.as_ref().is_some_and(|page| page.parts.is_empty() && page.live);
            if !waits || Instant::now() >= deadline || self.is_closing() {
                return Ok(page);
            }
            tokio::select! {
                () = ended => {}
                () = reported => {}
                () = tokio::time::sleep_until(deadline.min(Instant::now() + SAFETY_POLL)) => {}
                () = self.closing() => {}
            }
        }
    }
}
