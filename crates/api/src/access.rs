//! Who may call a route.

use serde::{Deserialize, Serialize};
use utoipa::openapi::path::Operation;

/// The extension of an operation that declares its access, in `#[utoipa::path]` beside its path:
/// `extensions(("x-duly-access" = json!(Access::Viewer)))`.
const EXTENSION: &str = "x-duly-access";

/// Who may call a route: every caller, or callers with one of the roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Access {
    /// Every caller: health and documentation.
    Public,
    /// Reads.
    Viewer,
    /// Submits tasks.
    Submitter,
    /// Opens sessions, claims leases and finishes them.
    Worker,
    /// Controls tasks, queues and workers.
    Operator,
    /// Changes the settings and makes backups.
    Admin,
}

impl Access {
    /// What an operation declares, if it does.
    pub(crate) fn declared(operation: &Operation) -> Option<Self> {
        let declared = operation.extensions.as_ref()?.get(EXTENSION)?;
        serde_json::from_value(declared.clone()).ok()
    }
}
