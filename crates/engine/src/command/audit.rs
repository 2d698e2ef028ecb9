//! Read the audit log.

use duly_core::audit::AuditEntry;
use duly_core::ports::store::{self, ListAudit};

use crate::engine::Engine;

impl Engine {
    /// One page of the audit log, newest first.
    pub async fn audit_log(&self, page: ListAudit) -> store::Result<Vec<AuditEntry>> {
        self.store().audit_log(page).await
    }
}
