//! API keys.

use duly_core::key::ApiKey;
use duly_core::time::Timestamp;
use serde::{Deserialize, Serialize};

/// A key to create.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(example = key_request_example))]
pub struct KeyRequest {
    /// What it is for.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 200))]
    pub name: String,
    /// Its roles: viewer, submitter, worker, operator, admin.
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 5))]
    pub roles: Vec<String>,
    /// The tenant that it is for, or `*` for all of them; that of the request if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The queues that it may submit to and work on; all of them if absent or empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(max_items = 100))]
    pub queues: Vec<String>,
    /// The types that it may submit and run; all of them if absent or empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(max_items = 100))]
    pub types: Vec<String>,
    /// After how long it is refused; never if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 315_360_000))]
    pub expires_in_seconds: Option<f64>,
}

/// A key, without its secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KeyView {
    /// Names the key; no secret.
    pub key_id: String,
    /// What it is for.
    #[cfg_attr(feature = "openapi", schema(example = "mailer"))]
    pub name: String,
    /// The tenant that it is for; `*` stands for all of them.
    #[cfg_attr(feature = "openapi", schema(example = "default"))]
    pub tenant: String,
    /// Its roles.
    pub roles: Vec<String>,
    /// The queues that it is restricted to; none if empty.
    pub queues: Vec<String>,
    /// The types that it is restricted to; none if empty.
    pub types: Vec<String>,
    /// When it was created.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    /// From when on it is refused; `null` for never.
    #[cfg_attr(
        feature = "openapi",
        schema(required = true, value_type = Option<String>, format = DateTime)
    )]
    pub expires_at: Option<Timestamp>,
    /// Since when it is revoked; `null` if it is not.
    #[cfg_attr(
        feature = "openapi",
        schema(required = true, value_type = Option<String>, format = DateTime)
    )]
    pub revoked_at: Option<Timestamp>,
    /// When it was used last, to about a minute; `null` for never.
    #[cfg_attr(
        feature = "openapi",
        schema(required = true, value_type = Option<String>, format = DateTime)
    )]
    pub last_used_at: Option<Timestamp>,
}

/// A key that was just created.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreatedKeyView {
    /// The key.
    #[serde(flatten)]
    pub key: KeyView,
    /// What to send as `Authorization: Bearer …`. Nobody can read it again.
    pub secret: String,
}

/// Some keys, oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KeyPage {
    /// The keys.
    pub items: Vec<KeyView>,
    /// Give it as `cursor` to get the next page; `null` on the last one.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub next_cursor: Option<String>,
}

impl From<ApiKey> for KeyView {
    fn from(key: ApiKey) -> Self {
        Self {
            key_id: key.id.to_string(),
            name: key.name,
            tenant: key.tenant.to_string(),
            roles: key.roles.iter().map(|role| role.to_string()).collect(),
            queues: key.queues.iter().map(ToString::to_string).collect(),
            types: key.types.iter().map(ToString::to_string).collect(),
            created_at: key.created_at,
            expires_at: key.expires_at,
            revoked_at: key.revoked_at,
            last_used_at: key.last_used_at,
        }
    }
}

#[cfg(feature = "openapi")]
fn key_request_example() -> serde_json::Value {
    serde_json::json!({
        "name": "mailer", "roles": ["submitter"], "queues": ["mail"],
        "expiresInSeconds": 7_776_000
    })
}
