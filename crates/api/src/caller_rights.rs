//! What a caller may do beside calling a route.

use duly_core::access::TenantGrant;
use duly_engine::command::keys::Giver;

use crate::caller::{Caller, Identity};
use crate::error::{ApiError, Code};

impl Caller {
    /// What it holds, and may therefore give on.
    pub(crate) fn giver(&self) -> Giver {
        let (queues, types) = match &self.identity {
            Identity::Anonymous | Identity::Token { .. } => (Vec::new(), Vec::new()),
            Identity::Key(key) => (key.queues.clone(), key.types.clone()),
        };
        Giver { tenant: self.grant.clone(), roles: self.roles, queues, types }
    }

    /// Refuses callers that hold their roles for one tenant alone.
    pub(crate) fn require_installation(&self) -> Result<(), ApiError> {
        match self.grant {
            TenantGrant::Installation => Ok(()),
            TenantGrant::One(_) => {
                let detail = "only admins of the installation, whose tenant is *, may do this";
                Err(ApiError::new(Code::Forbidden, detail))
            }
        }
    }
}
