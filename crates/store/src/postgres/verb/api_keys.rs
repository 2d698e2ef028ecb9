//! Create and revoke API keys.

use duly_core::access::TenantGrant;
use duly_core::id::KeyId;
use duly_core::key::ApiKey;
use duly_core::limits::API_KEYS;
use duly_core::ports::store::{self, Error, NewKey};

use super::{Scope, Verb};
use crate::audited::{self, Audited, Subject};
use crate::key_text::{encode_names, encode_roles};
use crate::postgres::error::Result;
use crate::postgres::keys::{decode, select, uuid};

impl Verb for NewKey {
    type Answer = store::Result<ApiKey>;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<Self::Answer> {
        let Self { key, hash } = self;
        let id = uuid(key.id);
        // Two calls of one id have one winner.
        let insert = "/* key.create */ INSERT INTO duly.api_key
                (id, hash, name, tenant, roles, queues, types, created_at, expires_at)
            SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9
            WHERE (SELECT count(*) FROM duly.api_key WHERE tenant = $4) < $10
            ON CONFLICT (id) DO NOTHING";
        let tenant = key.tenant.as_str();
        let expires_at = key.expires_at.map(|it| it.millis());
        let (roles, queues, types) =
            (encode_roles(key.roles), encode_names(&key.queues), encode_names(&key.types));
        let (hash, now, most) = (&hash[..], scope.now.millis(), i64::from(API_KEYS));
        scope
            .execute(
                insert,
                &[
                    &id,
                    &hash,
                    &key.name,
                    &tenant,
                    &roles,
                    &queues,
                    &types,
                    &now,
                    &expires_at,
                    &most,
                ],
            )
            .await?;
        match scope.query(&select("get", "k.id = $1"), &[&id]).await?.first() {
            Some(stored) => Ok(Ok(decode(stored)?)),
            None => {
                let limit = API_KEYS as usize;
                Ok(Err(Error::TooLarge { what: "the number of keys", limit }))
            }
        }
    }

    fn audited(&self) -> Vec<Subject> {
        Audited::audited(self)
    }
}

/// A key that is not to count any more.
pub(in crate::postgres) struct RevokeKey {
    pub(in crate::postgres) tenant: Option<TenantGrant>,
    pub(in crate::postgres) id: KeyId,
}

impl Verb for RevokeKey {
    type Answer = Option<ApiKey>;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<Option<ApiKey>> {
        let (id, tenant) = (uuid(self.id), self.tenant.as_ref().map(TenantGrant::as_str));
        let update = "/* key.revoke */ UPDATE duly.api_key SET revoked_at = $3
            WHERE id = $1 AND ($2::text IS NULL OR tenant = $2) AND revoked_at IS NULL";
        scope.execute(update, &[&id, &tenant, &scope.now.millis()]).await?;
        let select = select("get_of", "k.id = $1 AND ($2::text IS NULL OR k.tenant = $2)");
        scope.query(&select, &[&id, &tenant]).await?.first().map(decode).transpose()
    }

    fn audited(&self) -> Vec<Subject> {
        audited::revoke_key(self.id)
    }
}
