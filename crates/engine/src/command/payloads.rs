//! What a tenant's payloads may be, and what of them is shown.

use duly_core::name::TenantName;
use duly_core::ports::store;
use duly_core::redact::Redaction;
use duly_core::task::Task;

use crate::engine::Engine;

/// Why a payload is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPayload {
    /// It is larger than the tenant's quota.
    #[error("the quota `payloadBytes` of the tenant is {limit}; store large data outside Duly")]
    TooLarge {
        /// The quota.
        limit: u32,
    },
    /// It holds the mask where a part is masked: it was read masked.
    #[error("holds *** where the setting `redact` masks it; send the value, or leave it out")]
    Masked,
}

/// The rules of one tenant.
pub(crate) struct PayloadRules {
    limit: Option<u32>,
    redaction: Redaction,
}

impl PayloadRules {
    /// Refuses JSON text that the tenant may not store.
    pub(crate) fn check(&self, payload: &str) -> Result<(), BadPayload> {
        let bytes = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        if let Some(limit) = self.limit.filter(|limit| bytes > *limit) {
            return Err(BadPayload::TooLarge { limit });
        }
        if !self.redaction.is_empty() && self.redaction.holds_mask(payload) {
            return Err(BadPayload::Masked);
        }
        Ok(())
    }
}

impl Engine {
    /// What is masked in payloads of this tenant.
    pub async fn redaction(&self, tenant: &TenantName) -> store::Result<Redaction> {
        let installation = self.settings_in_effect().await?;
        let tenants = self.known_tenants().all().await?;
        let own = tenants.redact(tenant);
        Ok(Redaction::new(own.unwrap_or(&installation.settings.redact)))
    }

    pub(crate) async fn payload_rules(&self, tenant: &TenantName) -> store::Result<PayloadRules> {
        let limit = self.quotas_of(tenant).await?.payload_bytes;
        Ok(PayloadRules { limit, redaction: self.redaction(tenant).await? })
    }
}

/// The task as it is shown. Those of the system have no payload of a user's.
#[must_use]
pub fn masked(task: Task, redaction: &Redaction) -> Task {
    if redaction.is_empty() || task.lane.queue.is_reserved() {
        return task;
    }
    let payload = redaction.mask(&task.payload).into();
    Task { payload, ..task }
}
