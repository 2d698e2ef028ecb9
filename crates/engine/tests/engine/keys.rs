//! API keys: who finds them, how soon a revocation counts, and what they cost the store.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::time::Duration;

use duly_core::access::{AccessRole, TenantGrant};
use duly_core::key::ApiKey;
use duly_core::name::TenantName;
use duly_engine::command::keys::{CreatedKey, Giver, KeyOrder};

use crate::world::{World, pass};

const SECOND: Duration = Duration::from_secs(1);

async fn create(world: &World, lifetime: Option<Duration>) -> CreatedKey {
    let order = KeyOrder {
        name: "mailer".to_owned(),
        tenant: TenantGrant::One(TenantName::default_tenant()),
        roles: [AccessRole::Submitter].into_iter().collect(),
        queues: Vec::new(),
        types: Vec::new(),
        lifetime,
    };
    world.engine.create_key(&Giver::of_installation(), order).await.unwrap()
}

async fn is_found(world: &World, key: &CreatedKey) -> bool {
    let found = world.engine.find_key(key.text.hash()).await.unwrap();
    assert!(found.as_ref().is_none_or(|found| found.id == key.key.id));
    found.is_some()
}

async fn stored(world: &World, key: &CreatedKey) -> ApiKey {
    world.store.find_key(key.text.hash()).await.unwrap().unwrap()
}

#[tokio::test(start_paused = true)]
async fn many_callers_with_one_key_cause_few_reads() {
    let world = World::new().await;
    let key = create(&world, None).await;
    for _ in 0..3 {
        let before = world.faults.calls("find_key");
        let all = (0..1_000).map(|_| is_found(&world, &key));
        assert!(futures_util::future::join_all(all).await.into_iter().all(|found| found));
        let reads = world.faults.calls("find_key") - before;
        assert!((1..=4).contains(&reads), "{reads}");
        pass(5 * SECOND).await;
    }
}

#[tokio::test(start_paused = true)]
async fn s08_a_revocation_counts_on_every_node_within_five_seconds() {
    let world = World::new().await;
    let (own, other) = (create(&world, None).await, create(&world, None).await);
    assert!(is_found(&world, &own).await && is_found(&world, &other).await);
    // Here it counts at once.
    let tenant = TenantName::default_tenant();
    let giver = Giver::of_installation();
    let revoked = world.engine.revoke_key(&giver, &tenant, own.key.id).await.unwrap();
    assert!(revoked.unwrap().revoked_at.is_some());
    assert!(!is_found(&world, &own).await);
    // As another node does it.
    world.store.revoke_key(None, other.key.id).await.unwrap();
    assert!(is_found(&world, &other).await, "else this test shows nothing");
    pass(4 * SECOND).await;
    assert!(!is_found(&world, &other).await);
}

#[tokio::test(start_paused = true)]
async fn a_key_expires_to_the_millisecond() {
    let world = World::new().await;
    let key = create(&world, Some(10 * SECOND)).await;
    pass(Duration::from_millis(9_900)).await;
    assert!(is_found(&world, &key).await);
    pass(Duration::from_millis(200)).await;
    assert!(!is_found(&world, &key).await, "although what is known of it is not 4 seconds old");
}

#[tokio::test(start_paused = true)]
async fn one_wrong_key_again_and_again_is_read_once() {
    let world = World::new().await;
    for _ in 0..1_000 {
        assert!(world.engine.find_key([7; 32]).await.unwrap().is_none());
    }
    assert_eq!(world.faults.calls("find_key"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_key_works_among_a_flood_of_wrong_ones() {
    let world = World::new().await;
    let key = create(&world, None).await;
    assert!(is_found(&world, &key).await);
    // More than the cache has room for.
    for number in 0..20_000_u32 {
        let mut hash = [7; 32];
        hash[..4].copy_from_slice(&number.to_be_bytes());
        assert!(world.engine.find_key(hash).await.unwrap().is_none());
    }
    assert!(is_found(&world, &key).await);
}

#[tokio::test(start_paused = true)]
async fn uses_are_noted_once_a_minute_and_nothing_is_written_when_idle() {
    let world = World::new().await;
    let key = create(&world, None).await;
    assert_eq!(stored(&world, &key).await.last_used_at, None);
    for _ in 0..120 {
        assert!(is_found(&world, &key).await);
        pass(SECOND).await;
    }
    assert_eq!(world.faults.calls("note_key_uses"), 2);
    pass(120 * SECOND).await;
    let noted = world.faults.calls("note_key_uses");
    assert!(stored(&world, &key).await.last_used_at.is_some());
    pass(3600 * SECOND).await;
    assert_eq!(world.faults.calls("note_key_uses"), noted);
}

#[tokio::test(start_paused = true)]
async fn a_use_just_before_the_end_is_noted() {
    let world = World::new().await;
    let key = create(&world, None).await;
    assert!(is_found(&world, &key).await);
    world.engine.close().await;
    assert!(stored(&world, &key).await.last_used_at.is_some());
}
