//! API keys.

use async_trait::async_trait;

use super::Result;
use crate::access::TenantGrant;
use crate::id::KeyId;
use crate::key::{ApiKey, KeyHash};

/// A key to store. Its `created_at` is the store's own time.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// All but the secret.
    pub key: ApiKey,
    /// The hash of the secret.
    pub hash: KeyHash,
}

/// Which keys, by id, oldest first.
#[derive(Clone, Debug)]
pub struct ListKeys {
    /// Only keys for this tenant, or only those for the installation; all keys if absent.
    pub tenant: Option<TenantGrant>,
    /// Only those with a higher id.
    pub after: Option<KeyId>,
    /// How many.
    pub limit: u32,
}

/// Keys and their use.
#[async_trait]
pub trait Keys {
    /// Stores a key. Repeated with the same id it changes nothing. Answers with the key as it is stored.
    /// One beyond [`crate::limits::API_KEYS`] is too large.
    async fn create_key(&self, new: NewKey) -> Result<ApiKey>;

    /// The key with this hash, also one that has expired or was revoked.
    async fn find_key(&self, hash: KeyHash) -> Result<Option<ApiKey>>;

    /// One page of keys, also those that have expired or were revoked.
    async fn keys(&self, page: ListKeys) -> Result<Vec<ApiKey>>;

    /// Revokes a key for this tenant, or any key if `tenant` is absent. Answers with the key; nothing if
    /// there is no such key. A key that is revoked stays so.
    async fn revoke_key(&self, tenant: Option<TenantGrant>, id: KeyId) -> Result<Option<ApiKey>>;

    /// Notes that keys were used now. Not audited, and lost in a crash without harm.
    async fn note_key_uses(&self, keys: Vec<KeyId>) -> Result<()>;
}
