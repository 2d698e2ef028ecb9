//! Read a task's logs, and wait for more.

use std::time::Duration;

use duly_core::ports::store::{self, LogPage, ReadLogs};
use tokio::time::Instant;

use super::wait::SAFETY_POLL;
use crate::engine::Engine;

impl Engine {
    /// A task's logs. If there are none yet, waits for lines, the end of the run, or `wait`.
    pub async fn logs(&self, read: ReadLogs, wait: Duration) -> store::Result<Option<LogPage>> {
        let watch = self.task_waiters().watch(read.task);
        let deadline = Instant::now() + wait;
        loop {
            // Created before the read, so that no line in between is missed.
            let (changed, reported) = (watch.changed(), watch.reported());
            let page = self.store().logs(read.clone()).await?;
            let waits = page.as_ref().is_some_and(|page| page.parts.is_empty() && page.live);
            if !waits || Instant::now() >= deadline || self.is_closing() {
                return Ok(page);
            }
            tokio::select! {
                () = changed => {}
                () = reported => {}
                () = tokio::time::sleep_until(deadline.min(Instant::now() + SAFETY_POLL)) => {}
                () = self.closing() => {}
            }
        }
    }
}
