//! What a server says of itself.

use serde::{Deserialize, Serialize};

/// Which server this is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Version {
    /// Always `duly`.
    #[cfg_attr(feature = "openapi", schema(example = "duly"))]
    pub name: String,
    /// The release.
    #[cfg_attr(feature = "openapi", schema(example = "0.1.0"))]
    pub version: String,
    /// The version of the interface: the first part of its paths.
    #[cfg_attr(feature = "openapi", schema(example = "v1"))]
    pub api: String,
}

/// That the process answers, whatever its store does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Liveness {
    /// Always `live`.
    #[cfg_attr(feature = "openapi", schema(example = "live"))]
    pub status: String,
}

/// Whether a server should get requests. The HTTP status, 200 or 503, says the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Readiness {
    /// `ready` or `notReady`.
    #[cfg_attr(feature = "openapi", schema(example = "ready"))]
    pub status: String,
    /// Why it is not ready, for people.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub reasons: Vec<String>,
    /// Each check by itself, with `?verbose`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
}

/// One condition of readiness.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Check {
    /// What was looked at.
    #[cfg_attr(feature = "openapi", schema(example = "store"))]
    pub name: String,
    /// Whether it is well.
    pub ok: bool,
}

impl Readiness {
    /// Whether the server should get requests.
    pub fn is_ready(&self) -> bool {
        self.reasons.is_empty()
    }
}
