//! Create and revoke API keys, and note that they were used.

use duly_core::access::TenantGrant;
use duly_core::id::KeyId;
use duly_core::key::ApiKey;
use duly_core::limits::API_KEYS;
use duly_core::ports::store::{self, Error, NewKey};
use rusqlite::params;

use super::{Scope, Verb};
use crate::audited::{self, Audited, Subject};
use crate::key_text::{encode_names, encode_roles};
use crate::sqlite::error::Result;
use crate::sqlite::keys::by_id;

impl Verb for NewKey {
    type Answer = store::Result<ApiKey>;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<Self::Answer> {
        let Self { key, hash } = self;
        if let Some(stored) = by_id(scope.connection, key.id)? {
            return Ok(Ok(stored));
        }
        let count = "/* key.count */ SELECT count(*) FROM api_key WHERE tenant = ?";
        let count: u32 =
            scope.connection.query_row(count, [key.tenant.as_str()], |row| row.get(0))?;
        if count >= API_KEYS {
            let limit = API_KEYS as usize;
            return Ok(Err(Error::TooLarge { what: "the number of keys", limit }));
        }
        scope.connection.execute(
            "/* key.create */ INSERT INTO api_key (id, hash, name, tenant, roles, queues, types,
                created_at, expires_at)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            params![
                key.id.as_bytes(),
                hash,
                key.name,
                key.tenant.as_str(),
                encode_roles(key.roles),
                encode_names(&key.queues),
                encode_names(&key.types),
                scope.now.millis(),
                key.expires_at.map(|it| it.millis()),
            ],
        )?;
        let created_at = scope.now;
        Ok(Ok(ApiKey { created_at, revoked_at: None, last_used_at: None, ..key.clone() }))
    }

    fn audited(&self) -> Vec<Subject> {
        Audited::audited(self)
    }
}

/// A key that is not to count any more.
pub(in crate::sqlite) struct RevokeKey {
    pub(in crate::sqlite) tenant: Option<TenantGrant>,
    pub(in crate::sqlite) id: KeyId,
}

impl Verb for RevokeKey {
    type Answer = Option<ApiKey>;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<Option<ApiKey>> {
        let Some(key) = by_id(scope.connection, self.id)? else { return Ok(None) };
        if self.tenant.as_ref().is_some_and(|tenant| *tenant != key.tenant) {
            return Ok(None);
        }
        if key.revoked_at.is_some() {
            return Ok(Some(key));
        }
        scope.connection.execute(
            "/* key.revoke */ UPDATE api_key SET revoked_at = ? WHERE id = ?",
            params![scope.now.millis(), self.id.as_bytes()],
        )?;
        Ok(Some(ApiKey { revoked_at: Some(scope.now), ..key }))
    }

    fn audited(&self) -> Vec<Subject> {
        audited::revoke_key(self.id)
    }
}

/// Keys that were used.
pub(in crate::sqlite) struct NoteKeyUses(pub(in crate::sqlite) Vec<KeyId>);

impl Verb for NoteKeyUses {
    type Answer = ();

    fn apply(&self, scope: &mut Scope<'_>) -> Result<()> {
        let mut statement = scope
            .connection
            .prepare_cached("/* key.use */ UPDATE api_key SET last_used_at = ? WHERE id = ?")?;
        for id in &self.0 {
            statement.execute(params![scope.now.millis(), id.as_bytes()])?;
        }
        Ok(())
    }
}
