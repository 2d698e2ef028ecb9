//! Sign-in.

use duly_core::time::Timestamp;
use serde::{Deserialize, Serialize};

/// A token that an API key was exchanged for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TokenAnswer {
    /// What to send as `Authorization: Bearer …`.
    pub token: String,
    /// Always `Bearer`.
    #[cfg_attr(feature = "openapi", schema(example = "Bearer"))]
    pub token_type: String,
    /// Until when it may be used.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub expires_at: Timestamp,
}
