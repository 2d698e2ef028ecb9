//! The audit log: append-only, written in the commits of the changes that it is about.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Result, Store};
use crate::audit::{AuditEntry, Author};
use crate::name::TenantName;
use crate::time::Timestamp;

/// Which part of the audit log, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListAudit {
    /// Only entries about this tenant's objects; all entries, also those of the installation, if absent.
    pub tenant: Option<TenantName>,
    /// Only those of this actor.
    pub actor: Option<String>,
    /// Only those whose action is this one, or begins with it and a dot: `task` stands for `task.cancel`.
    pub action: Option<String>,
    /// Only those about this object.
    pub target: Option<String>,
    /// Only those made since then.
    pub since: Option<Timestamp>,
    /// Only entries with a lower number.
    pub before: Option<u64>,
    /// How many.
    pub limit: u32,
}

/// Writing and reading the audit log.
#[async_trait]
pub trait AuditLog {
    /// The same store, whose changes are written to the audit log as this author's, one entry per changed
    /// object, in the commit of the change. A call that changes nothing writes no entry. What loops and
    /// workers do is not a user's change and goes through the store itself.
    fn on_behalf_of(&self, author: Author) -> Arc<dyn Store>;

    /// One page of the log.
    async fn audit_log(&self, page: ListAudit) -> Result<Vec<AuditEntry>>;

    /// Deletes entries made before then, oldest first, at most `limit` of them; answers how many. Those of
    /// the last [`crate::limits::AUDIT_FLOOR`] stay in any case.
    async fn forget_audit(&self, before: Timestamp, limit: u32) -> Result<u32>;
}
