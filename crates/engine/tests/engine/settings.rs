//! Settings that hold as soon as they are changed.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::time::Duration;

use duly_core::back_off::{BackOff, Strategy};
use duly_core::id::TaskId;
use duly_core::name::TenantName;
use duly_core::ports::store::{Expected, PutSettings, PutTenant, VersionedSettings};
use duly_core::settings::{Kept, OwnRetention, Retention, Settings, SettingsChange};
use duly_core::submit::{BackOffDraft, Draft};
use duly_core::tenant::{Quotas, TenantSettings};
use duly_engine::command::settings::Error;
use duly_engine::command::tenants::{TenantDraft, TenantOrder};

use crate::world::{World, draft, finish, pass, success};

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

const SHORT: Retention = Retention { success: Some(Duration::from_secs(1)), ..Retention::FOREVER };

async fn change(world: &World, settings: Settings) -> VersionedSettings {
    let change = SettingsChange { settings, comment: None };
    world.engine.put_settings(None, change).await.unwrap()
}

/// Runs a task to its success.
async fn done(world: &World) -> TaskId {
    let id = world.submit(draft("echo")).await.task.id;
    let lease = world.source.claim(1).await.unwrap().remove(0);
    world.source.finish(vec![finish(&lease, success())]).await.unwrap();
    id
}

async fn is_there(world: &World, id: TaskId) -> bool {
    world.engine.get(&TenantName::default_tenant(), id).await.unwrap().is_some()
}

#[tokio::test(start_paused = true)]
async fn a_task_that_does_not_say_gets_the_defaults_of_now() {
    let world = World::new().await;
    let before = world.submit(draft("echo")).await.task;
    assert_eq!((before.retries, before.back_off), (3, BackOff::default()));
    let base = Duration::from_secs(20);
    let back_off = BackOff { strategy: Strategy::Fixed, base, ..BackOff::default() };
    change(&world, Settings { retries: 7, back_off, ..Settings::default() }).await;
    let after = world.submit(draft("echo")).await.task;
    assert_eq!((after.retries, after.back_off), (7, back_off));
    assert_eq!(world.get(after.id).await.back_off, back_off, "it is stored so");
    assert_eq!(world.get(before.id).await.retries, 3, "tasks from before keep theirs");

    let linear = BackOffDraft { strategy: Some("linear".to_owned()), ..BackOffDraft::default() };
    let says = Draft { retries: Some(1.0), back_off: Some(linear), ..draft("echo") };
    let own = world.submit(says).await.task;
    let expected = BackOff { strategy: Strategy::Linear, ..back_off };
    assert_eq!((own.retries, own.back_off), (1, expected), "what it leaves out is the default");
}

#[tokio::test(start_paused = true)]
async fn a_repeated_submit_is_the_same_after_the_defaults_changed() {
    let world = World::new().await;
    let keyed = || Draft { idempotency_key: Some("k".to_owned()), ..draft("echo") };
    let first = world.submit(keyed()).await;
    change(&world, Settings { retries: 9, ..Settings::default() }).await;
    let again = world.submit(keyed()).await;
    assert_eq!((again.replayed, again.task.id), (true, first.task.id));
}

#[tokio::test(start_paused = true)]
async fn a_change_must_be_based_on_the_newest_version() {
    let world = World::new().await;
    let numbered = |retries| SettingsChange {
        settings: Settings { retries, ..Settings::default() },
        comment: None,
    };
    assert_eq!(world.engine.put_settings(Some(0), numbered(1)).await.unwrap().version, 1);
    assert_eq!(world.engine.put_settings(Some(1), numbered(2)).await.unwrap().version, 2);
    let stale = world.engine.put_settings(Some(1), numbered(5)).await;
    assert!(matches!(stale, Err(Error::VersionMismatch { current: 2 })), "{stale:?}");
    assert_eq!(world.engine.put_settings(None, numbered(3)).await.unwrap().version, 3);
    let back = world.engine.roll_back_settings(Some(3), 1, None).await.unwrap();
    assert_eq!((back.version, back.settings.retries), (4, 1));
    let unknown = world.engine.roll_back_settings(Some(4), 9, None).await;
    assert!(matches!(unknown, Err(Error::VersionNotFound { version: 9 })), "{unknown:?}");
    let first = world.engine.roll_back_settings(None, 0, None).await.unwrap();
    assert_eq!((first.version, first.settings), (5, Settings::default()));
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_waits_for_a_change_gets_it() {
    let world = World::new().await;
    let seen = world.engine.settings_in_effect().await.unwrap();
    assert_eq!(seen.version, 0);
    let settings = Settings { worker_concurrency: Some(9), ..Settings::default() };
    let changed = change(&world, settings.clone());
    let (heard, _) = tokio::join!(world.engine.settings_after(0), changed);
    assert_eq!((heard.version, &heard.settings), (1, &settings));
}

#[tokio::test(start_paused = true)]
async fn old_tasks_go_within_an_hour() {
    let world = World::new().await;
    let id = done(&world).await;
    let waits = world.submit(draft("unserved")).await.task.id;
    pass(7 * DAY - HOUR).await;
    assert!(is_there(&world, id).await, "it is not yet old enough");
    pass(2 * HOUR + Duration::from_secs(1)).await;
    assert!(!is_there(&world, id).await);
    assert!(is_there(&world, waits).await, "only what has ended goes");
}

#[tokio::test(start_paused = true)]
async fn a_shorter_retention_holds_at_once() {
    let world = World::new().await;
    let id = done(&world).await;
    pass(HOUR / 2).await;
    change(&world, Settings { retention: Retention::FOREVER, ..Settings::default() }).await;
    pass(30 * DAY).await;
    assert!(is_there(&world, id).await, "it is kept for ever");
    change(&world, Settings { retention: SHORT, ..Settings::default() }).await;
    pass(Duration::from_millis(1)).await;
    assert!(!is_there(&world, id).await);
}

#[tokio::test(start_paused = true)]
async fn settings_that_cannot_be_read_delete_nothing() {
    let world = World::with_damaged_settings().await;
    let id = done(&world).await;
    assert_eq!(world.get(id).await.retries, 3, "tasks go on");
    pass(8 * DAY).await;
    assert!(is_there(&world, id).await, "it may have been meant to stay for ever");
    change(&world, Settings { retention: SHORT, ..Settings::default() }).await;
    pass(Duration::from_millis(1)).await;
    assert!(!is_there(&world, id).await, "they were put again");

    let id = done(&world).await;
    world.faults.set_damaged(true);
    pass(8 * DAY).await;
    assert!(is_there(&world, id).await, "nor if they are damaged while it runs");
    world.faults.set_damaged(false);
    pass(HOUR + Duration::from_secs(1)).await;
    assert!(!is_there(&world, id).await, "they can be read again");
}

#[tokio::test(start_paused = true)]
async fn a_change_holds_although_its_caller_went_away() {
    let world = World::new().await;
    // The first sweep is over: until the next one they are not read again.
    pass(Duration::from_secs(1)).await;
    assert_eq!(world.engine.settings_in_effect().await.unwrap().version, 0);
    world.faults.hold();
    let settings = Settings { retries: 7, ..Settings::default() };
    tokio::select! {
        biased;
        _ = change(&world, settings.clone()) => panic!("its answer is held back"),
        () = world.faults.held() => {}
    }
    world.faults.go_on();
    let heard = tokio::time::timeout(HOUR / 2, world.engine.settings_after(0)).await;
    assert_eq!(heard.expect("it holds").settings, settings);
    assert_eq!(world.submit(draft("echo")).await.task.retries, 7);
}

#[tokio::test(start_paused = true)]
async fn a_sweep_goes_by_what_is_stored() {
    let world = World::new().await;
    let id = done(&world).await;
    pass(HOUR / 2).await;
    let settings = Settings { retention: Retention::FOREVER, ..Settings::default() };
    let put = PutSettings { expected: 0, settings, comment: None };
    world.store.put_settings(put).await.unwrap();
    pass(8 * DAY).await;
    assert!(is_there(&world, id).await, "another node has changed the settings");
    assert_eq!(world.engine.settings_in_effect().await.unwrap().version, 1, "and this one knows");
}

/// Gives the tenant of all tasks here a retention of its own; none stands for that of the installation.
async fn keep(world: &World, retention: Option<OwnRetention>) {
    let settings = TenantSettings { retention, ..TenantSettings::default() };
    let order = TenantOrder::Put(TenantDraft { settings, ..TenantDraft::default() });
    let tenant = TenantName::default_tenant();
    world.engine.change_tenant(tenant, order, Expected::Any).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_retention_of_a_tenant_holds_at_once() {
    let world = World::new().await;
    let id = done(&world).await;
    keep(&world, Some(OwnRetention::FOREVER)).await;
    pass(30 * DAY).await;
    assert!(is_there(&world, id).await, "the tenant keeps it for ever");
    let brief = Some(Kept::For(Duration::from_secs(1)));
    keep(&world, Some(OwnRetention { success: brief, ..OwnRetention::default() })).await;
    pass(Duration::from_millis(1)).await;
    assert!(!is_there(&world, id).await);

    let id = done(&world).await;
    keep(&world, Some(OwnRetention { failed: brief, ..OwnRetention::default() })).await;
    pass(6 * DAY).await;
    assert!(is_there(&world, id).await, "its successes are kept as all others are");
    pass(DAY + HOUR + Duration::from_secs(1)).await;
    assert!(!is_there(&world, id).await);
}

#[tokio::test(start_paused = true)]
async fn a_sweep_goes_by_the_stored_retention_of_tenants() {
    let world = World::new().await;
    keep(&world, None).await;
    let id = done(&world).await;
    pass(HOUR / 2).await;
    let retention = Some(OwnRetention::FOREVER);
    let put = PutTenant {
        name: TenantName::default_tenant(),
        suspended: false,
        note: None,
        quotas: Quotas::default(),
        settings: TenantSettings { retention, ..TenantSettings::default() },
        expected: Expected::Any,
    };
    world.store.put_tenant(put).await.unwrap();
    pass(8 * DAY).await;
    assert!(is_there(&world, id).await, "another node has changed the record");
}

crate::stores::with_lost_hints!(
    all: a_task_that_does_not_say_gets_the_defaults_of_now,
    a_repeated_submit_is_the_same_after_the_defaults_changed,
    a_change_must_be_based_on_the_newest_version,
    a_caller_that_waits_for_a_change_gets_it,
    a_change_holds_although_its_caller_went_away;
    memory: old_tasks_go_within_an_hour,
    a_shorter_retention_holds_at_once,
    settings_that_cannot_be_read_delete_nothing,
    a_sweep_goes_by_what_is_stored,
    a_retention_of_a_tenant_holds_at_once,
    a_sweep_goes_by_the_stored_retention_of_tenants
);
