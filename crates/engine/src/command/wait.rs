//! Wait for a task to end.

use std::time::Duration;

use duly_core::id::TaskId;
use duly_core::name::TenantName;
use duly_core::ports::store;
use duly_core::task::Task;

use crate::engine::Engine;

/// How often to look without a wake-up: another process may have committed the outcome.
pub(super) const SAFETY_POLL: Duration = Duration::from_secs(1);

impl Engine {
    /// One task, as soon as its run has ended, at the latest after `wait`.
    pub async fn wait(
        &self,
        tenant: &TenantName,
        id: TaskId,
        wait: Duration,
    ) -> store::Result<Option<Task>> {
        let watch = self.task_waiters().watch(id);
        let deadline = tokio::time::Instant::now() + wait;
        loop {
            // Created before the read, so that an outcome in between is not missed.
            let changed = watch.changed();
            let task = self.get(tenant, id).await?;
            let open = task.as_ref().is_some_and(|task| !task.status.is_terminal());
            if !open || tokio::time::Instant::now() >= deadline || self.is_closing() {
                return Ok(task);
            }
            let poll = deadline.min(tokio::time::Instant::now() + SAFETY_POLL);
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep_until(poll) => {}
                () = self.closing() => {}
            }
        }
    }
}
