//! The reference model's API keys.

use std::collections::BTreeMap;

use async_trait::async_trait;
use duly_core::access::TenantGrant;
use duly_core::id::KeyId;
use duly_core::key::{ApiKey, KeyHash};
use duly_core::limits::API_KEYS;
use duly_core::ports::store::{Error, Keys, ListKeys, NewKey, Result};
use duly_core::time::Timestamp;

use super::MemoryStore;
use super::model::Model;
use crate::audited::{self, Audited as _};

/// All keys, by id.
pub(super) type ApiKeys = BTreeMap<KeyId, NewKey>;

#[async_trait]
impl Keys for MemoryStore {
    async fn create_key(&self, new: NewKey) -> Result<ApiKey> {
        let audited = new.audited();
        self.order(|| audited, |model, now| create(&mut model.api_keys, new, now))
    }

    async fn find_key(&self, hash: KeyHash) -> Result<Option<ApiKey>> {
        let keys = &self.model.lock().api_keys;
        Ok(keys.values().find(|it| it.hash == hash).map(|it| it.key.clone()))
    }

    async fn keys(&self, page: ListKeys) -> Result<Vec<ApiKey>> {
        let keys = &self.model.lock().api_keys;
        let wanted = |key: &&ApiKey| {
            page.tenant.as_ref().is_none_or(|tenant| *tenant == key.tenant)
                && page.after.is_none_or(|after| key.id > after)
        };
        let all = keys.values().map(|it| &it.key).filter(wanted);
        Ok(all.take(page.limit as usize).cloned().collect())
    }

    async fn revoke_key(&self, tenant: Option<TenantGrant>, id: KeyId) -> Result<Option<ApiKey>> {
        let revoke = |model: &mut Model, now| {
            let found = model.api_keys.get_mut(&id).map(|it| &mut it.key);
            let own = found.filter(|key| tenant.is_none_or(|tenant| tenant == key.tenant));
            own.map(|key| {
                key.revoked_at.get_or_insert(now);
                key.clone()
            })
        };
        Ok(self.order(|| audited::revoke_key(id), revoke))
    }

    async fn note_key_uses(&self, used: Vec<KeyId>) -> Result<()> {
        let now = self.clock.now();
        let keys = &mut self.model.lock().api_keys;
        for id in used {
            if let Some(stored) = keys.get_mut(&id) {
                stored.key.last_used_at = Some(now);
            }
        }
        Ok(())
    }
}

fn create(keys: &mut ApiKeys, new: NewKey, now: Timestamp) -> Result<ApiKey> {
    let id = new.key.id;
    let alike = keys.values().filter(|it| it.key.tenant == new.key.tenant).count();
    if !keys.contains_key(&id) && alike >= API_KEYS as usize {
        return Err(Error::TooLarge { what: "the number of keys", limit: API_KEYS as usize });
    }
    let stored = keys.entry(id).or_insert(NewKey {
        key: ApiKey { created_at: now, revoked_at: None, last_used_at: None, ..new.key },
        hash: new.hash,
    });
    Ok(stored.key.clone())
}
