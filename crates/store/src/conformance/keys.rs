//! API keys.

use std::time::Duration;

use duly_core::access::{AccessRole, AccessRoles, TenantGrant};
use duly_core::id::KeyId;
use duly_core::key::{ApiKey, KeyHash};
use duly_core::name::{QueueName, TypeName};
use duly_core::ports::store::{ListKeys, NewKey};

use super::Harness;

fn hash(number: u8) -> KeyHash {
    [number; 32]
}

pub(super) fn grant(name: &str) -> TenantGrant {
    name.parse().unwrap()
}

/// A key for a tenant, whose id and hash this number tells from others.
pub(super) fn key(harness: &Harness, number: u8, tenant: &str) -> NewKey {
    let key = ApiKey {
        id: KeyId::mint(harness.now().plus(Duration::from_secs(number.into())), 7),
        name: format!("key {number}"),
        tenant: grant(tenant),
        roles: [AccessRole::Submitter].into_iter().collect(),
        queues: Vec::new(),
        types: Vec::new(),
        created_at: harness.now(),
        expires_at: None,
        revoked_at: None,
        last_used_at: None,
    };
    NewKey { key, hash: hash(number) }
}

async fn create(harness: &Harness, new: NewKey) -> ApiKey {
    harness.store().create_key(new).await.unwrap()
}

async fn find(harness: &Harness, number: u8) -> Option<ApiKey> {
    harness.store().find_key(hash(number)).await.unwrap()
}

pub async fn a_key_reads_back_as_it_was(harness: Harness) {
    let plain = key(&harness, 1, "acme");
    let other = key(&harness, 2, "*");
    let full = NewKey {
        key: ApiKey {
            roles: AccessRoles::all(),
            queues: vec![QueueName::new("mail").unwrap(), QueueName::new("Print").unwrap()],
            types: vec![TypeName::new("email").unwrap()],
            expires_at: Some(harness.now().plus(Duration::from_secs(60))),
            ..other.key
        },
        ..other
    };
    for (number, new) in [(1, plain), (2, full)] {
        assert_eq!(create(&harness, new.clone()).await, new.key);
        assert_eq!(find(&harness, number).await, Some(new.key));
    }
    assert_eq!(find(&harness, 3).await, None);
}

pub async fn its_time_is_the_stores_own(harness: Harness) {
    let mut new = key(&harness, 1, "acme");
    let now = harness.now();
    new.key.created_at = now.minus(Duration::from_secs(5));
    assert_eq!(create(&harness, new).await.created_at, now);
    assert_eq!(find(&harness, 1).await.unwrap().created_at, now);
}

pub async fn a_repeated_key_is_created_once(harness: Harness) {
    let new = key(&harness, 1, "acme");
    let first = create(&harness, new.clone()).await;
    harness.advance(Duration::from_secs(1));
    let again = NewKey { key: ApiKey { name: "other".to_owned(), ..new.key }, ..new };
    assert_eq!(create(&harness, again).await, first);
    assert_eq!(find(&harness, 1).await, Some(first));
}

pub async fn they_are_listed_by_id(harness: Harness) {
    let mut all = Vec::new();
    for (number, tenant) in [(1, "acme"), (2, "*"), (3, "acme"), (4, "other")] {
        all.push(create(&harness, key(&harness, number, tenant)).await);
    }
    let list = async |tenant: Option<&str>, after: Option<KeyId>, limit| {
        let page = ListKeys { tenant: tenant.map(grant), after, limit };
        harness.store().keys(page).await.unwrap()
    };
    assert_eq!(list(None, None, 10).await, all);
    assert_eq!(list(None, Some(all[0].id), 2).await, all[1..3]);
    assert_eq!(list(Some("acme"), None, 10).await, [all[0].clone(), all[2].clone()]);
    assert_eq!(list(Some("acme"), Some(all[0].id), 1).await, all[2..3]);
    assert_eq!(list(Some("*"), None, 10).await, all[1..2]);
    assert!(list(Some("unknown"), None, 10).await.is_empty());
}

pub async fn a_revoked_key_stays_so(mut harness: Harness) {
    let id = create(&harness, key(&harness, 1, "acme")).await.id;
    let revoked_at = Some(harness.now());
    let revoked = harness.store().revoke_key(Some(grant("acme")), id).await.unwrap();
    assert_eq!(revoked.map(|key| key.revoked_at), Some(revoked_at));
    harness.advance(Duration::from_secs(1));
    let again = harness.store().revoke_key(None, id).await.unwrap();
    assert_eq!(again.map(|key| key.revoked_at), Some(revoked_at), "twice is the same as once");
    harness.crash().await;
    assert_eq!(find(&harness, 1).await.unwrap().revoked_at, revoked_at);
}

pub async fn that_of_another_tenant_is_out_of_reach(harness: Harness) {
    let id = create(&harness, key(&harness, 1, "acme")).await.id;
    for tenant in ["other", "*"] {
        assert_eq!(harness.store().revoke_key(Some(grant(tenant)), id).await.unwrap(), None);
    }
    assert_eq!(find(&harness, 1).await.unwrap().revoked_at, None);
    let unknown = KeyId::mint(harness.now(), 99);
    assert_eq!(harness.store().revoke_key(None, unknown).await.unwrap(), None);
}

pub async fn its_uses_show(mut harness: Harness) {
    let mut ids = Vec::new();
    for number in 1..=2 {
        ids.push(create(&harness, key(&harness, number, "acme")).await.id);
    }
    harness.advance(Duration::from_secs(1));
    let used_at = harness.now();
    let unknown = KeyId::mint(used_at, 99);
    harness.store().note_key_uses(vec![ids[0], unknown]).await.unwrap();
    assert_eq!(find(&harness, 1).await.unwrap().last_used_at, Some(used_at));
    assert_eq!(find(&harness, 2).await.unwrap().last_used_at, None);
    harness.advance(Duration::from_secs(1));
    harness.store().note_key_uses(ids).await.unwrap();
    harness.crash().await;
    for number in 1..=2 {
        let last = find(&harness, number).await.unwrap().last_used_at;
        assert_eq!(last, Some(used_at.plus(Duration::from_secs(1))));
    }
}
