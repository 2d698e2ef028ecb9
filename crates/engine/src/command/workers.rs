//! List workers, and drain them.

use duly_core::id::SessionId;
use duly_core::name::TenantName;
use duly_core::ports::store::{self, WorkerState};
use duly_core::time::Timestamp;

use crate::command::worker::Error;
use crate::engine::Engine;

/// All workers that a tenant may see, at one time.
#[derive(Clone, Debug)]
pub struct Workers {
    /// Those that are open, by name.
    pub workers: Vec<WorkerState>,
    /// The store's time, against which to read their last heartbeats.
    pub now: Timestamp,
}

impl Engine {
    /// The workers in nodes and the tenant's remote workers, without those that run system tasks.
    pub async fn workers(&self, tenant: &TenantName) -> store::Result<Workers> {
        let mut workers = self.store().workers().await?;
        workers.retain(|worker| is_visible(worker, tenant));
        workers.sort_by(|a, b| (&a.opened.name, a.opened.id).cmp(&(&b.opened.name, b.opened.id)));
        Ok(Workers { workers, now: self.store().now().await? })
    }

    /// Starts or ends a worker's drain: it finishes what it holds and claims nothing more. After
    /// the answer this node grants it nothing; other nodes stop when they next read the sessions,
    /// which they do more often than a worker sends heartbeats.
    pub async fn drain_worker(
        &self,
        tenant: &TenantName,
        id: SessionId,
        draining: bool,
    ) -> Result<Workers, Error> {
        let found = self.store().workers().await?;
        let known = found.iter().any(|it| it.opened.id == id && is_visible(it, tenant));
        if !known || !self.store().drain(id, draining).await? {
            return Err(Error::UnknownSession);
        }
        self.sessions().set_draining(id, draining);
        self.sessions().wait_for_taken_claims(id).await;
        let mut now = self.workers(tenant).await?;
        now.workers.retain(|worker| worker.opened.id == id);
        if now.workers.is_empty() { Err(Error::UnknownSession) } else { Ok(now) }
    }
}

fn is_visible(worker: &WorkerState, tenant: &TenantName) -> bool {
    let is_system = worker.opened.types.iter().all(|name| name.is_reserved());
    !is_system && worker.opened.tenant.as_ref().is_none_or(|own| own == tenant)
}
