//! API keys: queries, and the port.

use async_trait::async_trait;
use duly_core::access::TenantGrant;
use duly_core::id::KeyId;
use duly_core::key::{ApiKey, KeyHash};
use duly_core::ports::store::{self, Keys, ListKeys, NewKey};
use tokio_postgres::Row;
use uuid::Uuid;

use super::PostgresStore;
use super::error::{Fault, Result};
use super::row;
use super::verb::api_keys::RevokeKey;
use crate::key_text::{decode_names, decode_roles};

#[async_trait]
impl Keys for PostgresStore {
    async fn create_key(&self, new: NewKey) -> store::Result<ApiKey> {
        self.run(&new).await?
    }

    async fn find_key(&self, hash: KeyHash) -> store::Result<Option<ApiKey>> {
        let found = self.pool.query(&select("find", "k.hash = $1"), &[&&hash[..]]).await?;
        Ok(found.first().map(decode).transpose()?)
    }

    async fn keys(&self, page: ListKeys) -> store::Result<Vec<ApiKey>> {
        let after = page.after.map_or(Uuid::nil(), uuid);
        let limit = i64::from(page.limit);
        let found = match &page.tenant {
            None => {
                let select = select("list", "k.id > $1 ORDER BY k.id LIMIT $2");
                self.pool.query(&select, &[&after, &limit]).await?
            }
            Some(tenant) => {
                let condition = "k.tenant = $3 AND k.id > $1 ORDER BY k.id LIMIT $2";
                let select = select("list_of", condition);
                self.pool.query(&select, &[&after, &limit, &tenant.as_str()]).await?
            }
        };
        let mut keys = Vec::new();
        for row in &found {
            match decode(row) {
                Ok(key) => keys.push(key),
                // One damaged row must not hide the others.
                Err(fault @ Fault::Corrupt { .. }) => {
                    tracing::error!(%fault, "a key cannot be shown");
                }
                Err(fault) => return Err(fault.into()),
            }
        }
        Ok(keys)
    }

    async fn revoke_key(
        &self,
        tenant: Option<TenantGrant>,
        id: KeyId,
    ) -> store::Result<Option<ApiKey>> {
        Ok(self.run(&RevokeKey { tenant, id }).await?)
    }

    async fn note_key_uses(&self, keys: Vec<KeyId>) -> store::Result<()> {
        let keys: Vec<_> = keys.into_iter().map(uuid).collect();
        // In one order, so that two nodes do not wait for each other.
        let upsert = "/* key.use */ INSERT INTO duly.api_key_use (key, last_used_at)
            SELECT k.id, duly.now() FROM duly.api_key k WHERE k.id = ANY($1) ORDER BY k.id
            ON CONFLICT (key) DO UPDATE
            SET last_used_at = greatest(api_key_use.last_used_at, excluded.last_used_at)";
        self.pool.query(upsert, &[&keys]).await?;
        Ok(())
    }
}

/// A query for keys, for [`decode`].
pub(super) fn select(name: &str, condition: &str) -> String {
    format!(
        "/* key.{name} */ SELECT k.id, k.name, k.tenant, k.roles, k.queues, k.types, k.created_at,
                k.expires_at, k.revoked_at, u.last_used_at
         FROM duly.api_key k LEFT JOIN duly.api_key_use u ON u.key = k.id WHERE {condition}"
    )
}

pub(super) fn decode(found: &Row) -> Result<ApiKey> {
    let id: Uuid = found.try_get(0)?;
    let damaged = |column| row::corrupt("api_key", column, id);
    let text = |index| Ok::<_, Fault>(found.try_get::<_, &str>(index)?);
    let instant = |index| Ok::<_, Fault>(found.try_get::<_, Option<i64>>(index)?.map(row::instant));
    Ok(ApiKey {
        id: KeyId::from_bytes(id.into_bytes()),
        name: text(1)?.to_owned(),
        tenant: text(2)?.parse().map_err(|_| damaged("tenant"))?,
        roles: decode_roles(text(3)?).ok_or_else(|| damaged("roles"))?,
        queues: decode_names(text(4)?).ok_or_else(|| damaged("queues"))?,
        types: decode_names(text(5)?).ok_or_else(|| damaged("types"))?,
        created_at: row::instant(found.try_get(6)?),
        expires_at: instant(7)?,
        revoked_at: instant(8)?,
        last_used_at: instant(9)?,
    })
}

pub(super) fn uuid(id: KeyId) -> Uuid {
    Uuid::from_bytes(*id.as_bytes())
}
