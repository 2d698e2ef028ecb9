//! Wait for a task to end.

use std::time::Duration;

use duly_core::id::TaskId;
use duly_core::name::TenantName;
use duly_core::ports::store;
use duly_core::task::Task;

use crate::engine::Engine;

/// How long a wake-up may be lost: the outcome may be committed by another process.
pub(super) const SAFETY_POLL: Duration = Duration::from_secs(1);

impl Engine {
    /// One task, once its run has ended or `patience` is over, whichever comes first.
    pub async fn wait(
        &self,
        tenant: &TenantName,
        id: TaskId,
        patience: Duration,
    ) -> store::Result<Option<Task>> {
        let watch = self.outcomes().watch(id);
        let deadline = tokio::time::Instant::now() + patience;
        loop {
            // Armed before the look, so that an outcome in between is not missed.
            let news = watch.next();
            let task = self.get(tenant, id).await?;
            let open = task.as_ref().is_some_and(|task| !task.status.is_terminal());
            if !open || tokio::time::Instant::now() >= deadline || self.is_closing() {
                return Ok(task);
            }
            let poll = deadline.min(tokio::time::Instant::now() + SAFETY_POLL);
            tokio::select! {
                () = news => {}
                () = tokio::time::sleep_until(poll) => {}
                () = self.closing() => {}
            }
        }
    }
}
