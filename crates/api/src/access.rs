//! Who may call a route.

use duly_core::access::{AccessRole, AccessRoles, TenantGrant};
use serde::{Deserialize, Serialize};
use utoipa::openapi::path::Operation;

/// The extension of an operation that declares its access, in `#[utoipa::path]` beside its path:
/// `extensions(("x-duly-access" = json!(Access::Viewer)))`.
const EXTENSION: &str = "x-duly-access";

/// Who may call a route: every caller, or callers with one of the roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Access {
    /// Every caller: health, documentation and sign-in.
    Public,
    /// Every caller with a valid token or key, whatever its roles.
    SignedIn,
    /// Reads.
    Viewer,
    /// Submits and cancels tasks.
    Submitter,
    /// Opens sessions, claims leases and finishes them.
    Worker,
    /// Controls tasks, queues, workers, schedules and workflows.
    Operator,
    /// Manages the keys of a tenant, and reads its audit log.
    Admin,
    /// Changes the settings, makes backups and manages tenants: an admin of the installation, not of
    /// one tenant.
    InstallationAdmin,
}

impl Access {
    /// What an operation declares, if it does.
    pub(crate) fn declared(operation: &Operation) -> Option<Self> {
        let declared = operation.extensions.as_ref()?.get(EXTENSION)?;
        serde_json::from_value(declared.clone()).ok()
    }

    /// The role that a caller needs; none if there is no certain one.
    pub const fn role(self) -> Option<AccessRole> {
        match self {
            Self::Public | Self::SignedIn => None,
            Self::Viewer => Some(AccessRole::Viewer),
            Self::Submitter => Some(AccessRole::Submitter),
            Self::Worker => Some(AccessRole::Worker),
            Self::Operator => Some(AccessRole::Operator),
            Self::Admin | Self::InstallationAdmin => Some(AccessRole::Admin),
        }
    }

    /// Whether the role must be held for the whole installation.
    pub const fn is_for_installation(self) -> bool {
        matches!(self, Self::InstallationAdmin)
    }

    /// Whether these roles, held for these tenants, suffice.
    pub fn allows(self, roles: AccessRoles, grant: &TenantGrant) -> bool {
        let is_held = self.role().is_none_or(|role| roles.allow(role));
        is_held && (!self.is_for_installation() || *grant == TenantGrant::Installation)
    }

    /// The roles that suffice, each by itself.
    pub fn roles(self) -> impl Iterator<Item = AccessRole> {
        let suffices = move |held: &AccessRole| {
            let held: AccessRoles = [*held].into_iter().collect();
            self.allows(held, &TenantGrant::Installation)
        };
        AccessRole::ALL.into_iter().filter(suffices)
    }
}
