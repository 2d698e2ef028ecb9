//! The audit log.

use duly_core::audit::AuditEntry;
use duly_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A change that a user or a key has made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditEntryView {
    /// Counts the entries of the installation; a later one is higher.
    #[cfg_attr(feature = "openapi", schema(example = 4711))]
    pub number: u64,
    /// When.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "date-time"))]
    pub at: Timestamp,
    /// Who: `key:` and the id of an API key, `token:` and the subject of a token, or `anonymous`.
    #[cfg_attr(feature = "openapi", schema(example = "token:jane"))]
    pub actor: String,
    /// Whose object it is; of the installation if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = "default"))]
    pub tenant: Option<String>,
    /// What was done.
    #[cfg_attr(feature = "openapi", schema(example = "queue.pause"))]
    pub action: String,
    /// To what: the id or name of a task, queue, schedule and so on.
    #[cfg_attr(feature = "openapi", schema(example = "mail"))]
    pub target: String,
    /// What has changed, as it was before: without payloads. Absent if there was nothing before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// What has changed, as it was made: without payloads. Absent if the object is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
    /// The request that did it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = "5c2f9a01-2f"))]
    pub request_id: Option<String>,
}

impl From<AuditEntry> for AuditEntryView {
    fn from(entry: AuditEntry) -> Self {
        let json = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| text.into());
        Self {
            number: entry.number,
            at: entry.at,
            actor: entry.actor,
            tenant: entry.tenant.map(String::from),
            action: entry.action,
            target: entry.target,
            before: entry.before.as_deref().map(json),
            after: entry.after.as_deref().map(json),
            request_id: entry.request_id,
        }
    }
}

/// One page of the audit log, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditPage {
    /// The entries.
    pub items: Vec<AuditEntryView>,
    /// Where the next page starts; null on the last page.
    pub next_cursor: Option<String>,
}
