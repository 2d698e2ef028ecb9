//! How far a backup is.

use serde::{Deserialize, Serialize};

/// Whether a backup is being made, and how far it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BackupState {
    /// Whether one is being made.
    pub running: bool,
    /// What was copied so far; null if none is being made.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub copied_bytes: Option<u64>,
    /// What there is to copy; it grows with the store. Null if none is being made.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub total_bytes: Option<u64>,
}
