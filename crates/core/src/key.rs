//! API keys: long-lived secrets with roles, for programs.

use crate::access::{AccessRoles, TenantGrant};
use crate::id::KeyId;
use crate::name::{QueueName, TypeName};
use crate::time::Timestamp;

/// The SHA-256 of a key's secret: all that a store keeps of it. The secret has 256 random bits, so no
/// slower hash is needed.
pub type KeyHash = [u8; 32];

/// An API key, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// Its id, which is no secret.
    pub id: KeyId,
    /// What it is for.
    pub name: String,
    /// The tenants that it holds its roles for.
    pub tenant: TenantGrant,
    /// Its roles.
    pub roles: AccessRoles,
    /// The queues that it may submit to and work on; all of them when empty.
    pub queues: Vec<QueueName>,
    /// The types that it may submit and run; all of them when empty.
    pub types: Vec<TypeName>,
    /// When it was created.
    pub created_at: Timestamp,
    /// From when on it is refused.
    pub expires_at: Option<Timestamp>,
    /// Since when it is revoked.
    pub revoked_at: Option<Timestamp>,
    /// When it was used last, to about a minute.
    pub last_used_at: Option<Timestamp>,
}
