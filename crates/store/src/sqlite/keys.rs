//! API keys: queries, and the port.

use async_trait::async_trait;
use duly_core::access::TenantGrant;
use duly_core::id::KeyId;
use duly_core::key::{ApiKey, KeyHash};
use duly_core::ports::store::{self, Keys, ListKeys, NewKey};
use duly_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::SqliteStore;
use super::error::{Fault, Result};
use super::verb::keys::{NoteKeyUses, RevokeKey};
use crate::key_text::{decode_names, decode_roles};

#[async_trait]
impl Keys for SqliteStore {
    async fn create_key(&self, new: NewKey) -> store::Result<ApiKey> {
        self.ask(new).await?
    }

    async fn find_key(&self, hash: KeyHash) -> store::Result<Option<ApiKey>> {
        self.readers.query(move |connection| by_hash(connection, &hash)).await
    }

    async fn keys(&self, page: ListKeys) -> store::Result<Vec<ApiKey>> {
        self.readers.query(move |connection| list(connection, &page)).await
    }

    async fn revoke_key(
        &self,
        tenant: Option<TenantGrant>,
        id: KeyId,
    ) -> store::Result<Option<ApiKey>> {
        self.ask(RevokeKey { tenant, id }).await
    }

    async fn note_key_uses(&self, keys: Vec<KeyId>) -> store::Result<()> {
        self.ask(NoteKeyUses(keys)).await
    }
}

/// A query for keys, for [`decode`].
macro_rules! select {
    ($name:literal, $condition:literal) => {
        concat!(
            "/* key.",
            $name,
            " */ SELECT id, name, tenant, roles, queues, types, created_at, expires_at, revoked_at,
                last_used_at
             FROM api_key WHERE ",
            $condition
        )
    };
}

fn by_hash(connection: &Connection, hash: &KeyHash) -> Result<Option<ApiKey>> {
    let mut statement = connection.prepare_cached(select!("find", "hash = ?"))?;
    statement.query_row([hash], |row| Ok(decode(row))).optional()?.transpose()
}

pub(super) fn by_id(connection: &Connection, id: KeyId) -> Result<Option<ApiKey>> {
    let mut statement = connection.prepare_cached(select!("get", "id = ?"))?;
    statement.query_row([id.as_bytes()], |row| Ok(decode(row))).optional()?.transpose()
}

fn list(connection: &Connection, page: &ListKeys) -> Result<Vec<ApiKey>> {
    let after = page.after.map_or([0; 16], |after| *after.as_bytes());
    let all = select!("list", "id > ?1 ORDER BY id LIMIT ?2");
    let own = select!("list_of", "tenant = ?3 AND id > ?1 ORDER BY id LIMIT ?2");
    let mut statement = connection.prepare_cached(page.tenant.as_ref().map_or(all, |_| own))?;
    let mut rows = match &page.tenant {
        None => statement.query(params![after, page.limit])?,
        Some(tenant) => statement.query(params![after, page.limit, tenant.as_str()])?,
    };
    let mut keys = Vec::new();
    while let Some(row) = rows.next()? {
        match decode(row) {
            Ok(key) => keys.push(key),
            // One damaged row must not hide the others.
            Err(fault) if fault.is_bad_row() => tracing::error!(%fault, "a key cannot be shown"),
            Err(fault) => return Err(fault),
        }
    }
    Ok(keys)
}

fn decode(row: &Row<'_>) -> Result<ApiKey> {
    let id = KeyId::from_bytes(row.get(0)?);
    let damaged = |column| Fault::Corrupt { table: "api_key", column, id: id.to_string() };
    let text = |index| -> Result<String> { Ok(row.get(index)?) };
    let instant = |index| -> Result<Option<Timestamp>> {
        Ok(row.get::<_, Option<i64>>(index)?.map(Timestamp::clamped))
    };
    Ok(ApiKey {
        id,
        name: text(1)?,
        tenant: text(2)?.parse().map_err(|_| damaged("tenant"))?,
        roles: decode_roles(&text(3)?).ok_or_else(|| damaged("roles"))?,
        queues: decode_names(&text(4)?).ok_or_else(|| damaged("queues"))?,
        types: decode_names(&text(5)?).ok_or_else(|| damaged("types"))?,
        created_at: Timestamp::clamped(row.get(6)?),
        expires_at: instant(7)?,
        revoked_at: instant(8)?,
        last_used_at: instant(9)?,
    })
}
