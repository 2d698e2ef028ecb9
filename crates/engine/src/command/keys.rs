//! Create, list and revoke API keys.

use std::sync::Arc;
use std::time::Duration;

use duly_core::access::{AccessRoles, TenantGrant};
use duly_core::id::KeyId;
use duly_core::key::{ApiKey, KeyHash};
use duly_core::name::{QueueName, TenantName, TypeName};
use duly_core::ports::store::{self, ListKeys, NewKey};

use crate::engine::Engine;
use crate::key_text::KeyText;
use crate::key_watches::KeyWatch;

/// What the caller holds who gives a key: it gives nothing else.
#[derive(Clone, Debug)]
pub struct Giver {
    /// The tenants for which it holds its roles.
    pub tenant: TenantGrant,
    /// Its roles.
    pub roles: AccessRoles,
    /// The queues that it is restricted to; none when empty.
    pub queues: Vec<QueueName>,
    /// The types that it is restricted to; none when empty.
    pub types: Vec<TypeName>,
}

impl Giver {
    /// Who may do anything.
    pub fn of_installation() -> Self {
        Self {
            tenant: TenantGrant::Installation,
            roles: AccessRoles::all(),
            queues: Vec::new(),
            types: Vec::new(),
        }
    }

    fn may_give(&self, order: &KeyOrder) -> Result<(), Error> {
        let reaches = self.tenant == TenantGrant::Installation || self.tenant == order.tenant;
        if !reaches {
            return Err(Error::ForeignTenant);
        }
        if !self.roles.include(order.roles) {
            return Err(Error::ForeignRoles);
        }
        let are_within = within(&self.queues, &order.queues) && within(&self.types, &order.types);
        if are_within { Ok(()) } else { Err(Error::Wider) }
    }
}

/// Whether one restriction allows nothing that the other does not; an empty one allows everything.
fn within<T: PartialEq>(outer: &[T], inner: &[T]) -> bool {
    outer.is_empty() || !inner.is_empty() && inner.iter().all(|name| outer.contains(name))
}

/// A key to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyOrder {
    /// What it is for.
    pub name: String,
    /// For which tenants.
    pub tenant: TenantGrant,
    /// Its roles.
    pub roles: AccessRoles,
    /// The queues that it is restricted to; none when empty.
    pub queues: Vec<QueueName>,
    /// The types that it is restricted to; none when empty.
    pub types: Vec<TypeName>,
    /// After how long it is refused; never if absent.
    pub lifetime: Option<Duration>,
}

/// A key that was just created.
#[derive(Clone, Debug)]
pub struct CreatedKey {
    /// All but the secret.
    pub key: ApiKey,
    /// The secret, which nobody can read again.
    pub text: KeyText,
}

/// Why a key was not created.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It has roles that the giver does not hold.
    #[error("you can give only roles that you hold")]
    ForeignRoles,
    /// It is for a tenant for which the giver holds nothing.
    #[error("you can give keys only for your own tenant")]
    ForeignTenant,
    /// It is less restricted than the giver.
    #[error("you can give only keys that are restricted to your own queues and types")]
    Wider,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl Engine {
    /// The key with this hash, if it may be used now: it exists, has not expired and was not revoked.
    /// What other nodes have changed counts here after 4 seconds at the most. Notes that it was used.
    pub async fn find_key(&self, hash: KeyHash) -> store::Result<Option<Arc<ApiKey>>> {
        self.key_cache().find(hash).await
    }

    /// Watches a key that a request uses which goes on for long. What other nodes have changed counts here
    /// after 5 seconds at the most.
    pub fn watch_key(&self, hash: KeyHash) -> KeyWatch {
        self.key_watches().watch(hash)
    }

    /// Creates a key.
    pub async fn create_key(&self, giver: &Giver, order: KeyOrder) -> Result<CreatedKey, Error> {
        giver.may_give(&order)?;
        let text = KeyText::generate(self.random());
        let now = self.store().now().await?;
        let KeyOrder { name, tenant, roles, queues, types, lifetime } = order;
        let key = ApiKey {
            id: KeyId::mint(now, self.random().next()),
            name,
            tenant,
            roles,
            queues,
            types,
            created_at: now,
            expires_at: lifetime.map(|lifetime| now.plus(lifetime)),
            revoked_at: None,
            last_used_at: None,
        };
        let key = self.store().create_key(NewKey { key, hash: text.hash() }).await?;
        Ok(CreatedKey { key, text })
    }

    /// One page of keys, oldest first.
    pub async fn keys(&self, page: ListKeys) -> store::Result<Vec<ApiKey>> {
        self.store().keys(page).await
    }

    /// Revokes a key of this tenant or, if the giver reaches all tenants, any key. Nothing if there is no
    /// such key. It counts at once on this node, and within 4 seconds on all others.
    pub async fn revoke_key(
        &self,
        giver: &Giver,
        tenant: &TenantName,
        id: KeyId,
    ) -> store::Result<Option<ApiKey>> {
        let tenant = match giver.tenant {
            TenantGrant::Installation => None,
            TenantGrant::One(_) => Some(TenantGrant::One(tenant.clone())),
        };
        let revoked = self.store().revoke_key(tenant, id).await?;
        self.key_cache().forget(id);
        Ok(revoked)
    }
}

#[cfg(test)]
mod tests {
    use duly_core::access::AccessRole;

    use super::*;

    fn roles(roles: &[AccessRole]) -> AccessRoles {
        roles.iter().copied().collect()
    }

    fn queues(names: &[&str]) -> Vec<QueueName> {
        names.iter().map(|name| QueueName::new(name).unwrap()).collect()
    }

    fn order(tenant: &str, of: &[AccessRole], in_queues: &[&str]) -> KeyOrder {
        KeyOrder {
            name: "key".to_owned(),
            tenant: tenant.parse().unwrap(),
            roles: roles(of),
            queues: queues(in_queues),
            types: Vec::new(),
            lifetime: None,
        }
    }

    #[test]
    fn nobody_gives_more_than_they_hold() {
        use AccessRole::{Admin, Operator, Viewer, Worker};
        let admin = Giver {
            tenant: "acme".parse().unwrap(),
            roles: roles(&[Admin]),
            ..Giver::of_installation()
        };
        assert!(admin.may_give(&order("acme", &[Operator, Viewer], &[])).is_ok());
        let foreign = admin.may_give(&order("other", &[Viewer], &[]));
        assert!(matches!(foreign, Err(Error::ForeignTenant)));
        let higher = admin.may_give(&order("*", &[Viewer], &[]));
        assert!(matches!(higher, Err(Error::ForeignTenant)));
        let more = admin.may_give(&order("acme", &[Worker], &[]));
        assert!(matches!(more, Err(Error::ForeignRoles)));
        let narrow = Giver { queues: queues(&["mail", "print"]), ..admin };
        assert!(narrow.may_give(&order("acme", &[Viewer], &["mail"])).is_ok());
        for wider in [&[][..], &["mail", "other"]] {
            let wider = narrow.may_give(&order("acme", &[Viewer], wider));
            assert!(matches!(wider, Err(Error::Wider)));
        }
    }
}
