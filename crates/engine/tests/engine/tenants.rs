//! Tenants: suspension, quotas and settings of their own.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::time::Duration;

use duly_core::name::TenantName;
use duly_core::ports::store::{Expected, PutTenant};
use duly_core::submit::Draft;
use duly_core::tenant::{Quotas, TenantSettings};
use duly_engine::command::payloads::BadPayload;
use duly_engine::command::submit::{Accepted, Error, Refused};
use duly_engine::command::tenants::{Denied, TenantDraft, TenantOrder};

use crate::world::{World, draft, finish, must_wait, pass, settle, success};

const SECOND: Duration = Duration::from_secs(1);

fn acme() -> TenantName {
    TenantName::new("acme").unwrap()
}

async fn change(world: &World, order: TenantOrder) {
    world.engine.change_tenant(acme(), order, Expected::Any).await.unwrap();
}

async fn limit(world: &World, quotas: Quotas) {
    change(world, TenantOrder::Put(TenantDraft { quotas, ..TenantDraft::default() })).await;
}

async fn submit(world: &World, drafts: Vec<Draft>) -> Result<Vec<Accepted>, Error> {
    let specs = drafts.into_iter().map(|draft| draft.check().unwrap()).collect();
    let answers = world.engine.submit(&acme(), specs).await?;
    Ok(answers.into_iter().map(|answer| answer.unwrap()).collect())
}

async fn submit_one(world: &World) -> Result<Vec<Accepted>, Error> {
    submit(world, vec![draft("echo")]).await
}

/// Which quota was used up, and when to try again.
fn quota<T: std::fmt::Debug>(answer: Result<T, Error>) -> (&'static str, Option<Duration>) {
    match answer.unwrap_err() {
        Error::Denied(Denied::Quota(exceeded)) => (exceeded.quota, exceeded.retry_after),
        other => panic!("{other:?}"),
    }
}

fn is_suspended<T>(answer: &Result<T, Error>) -> bool {
    matches!(answer, Err(Error::Denied(Denied::Suspended { .. })))
}

#[tokio::test(start_paused = true)]
async fn a_suspended_tenant_submits_nothing_and_gets_nothing_run() {
    let world = World::new().await;
    submit_one(&world).await.unwrap();
    change(&world, TenantOrder::Suspend { note: None }).await;
    assert!(is_suspended(&submit_one(&world).await));
    let mut claim = world.source.claim(10);
    must_wait(&mut claim).await;
    world.submit(draft("echo")).await;
    let leases = claim.await.unwrap();
    assert_eq!(leases.len(), 1, "that of another tenant");
    assert_eq!(leases[0].lane.tenant, TenantName::default_tenant());
    let mut claim = world.source.claim(10);
    must_wait(&mut claim).await;
    change(&world, TenantOrder::Resume).await;
    assert_eq!(claim.await.unwrap()[0].lane.tenant, acme(), "a waiting worker is woken");
    submit_one(&world).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn other_nodes_learn_of_a_record_with_their_next_sign_of_life() {
    let world = World::among_others().await;
    submit_one(&world).await.unwrap();
    let put = PutTenant {
        name: acme(),
        suspended: true,
        note: None,
        quotas: Quotas::default(),
        settings: TenantSettings::default(),
        expected: Expected::Any,
    };
    world.store.put_tenant(put.clone()).await.unwrap();
    pass(4 * SECOND).await;
    assert!(is_suspended(&submit_one(&world).await));
    world.store.put_tenant(PutTenant { suspended: false, ..put }).await.unwrap();
    pass(4 * SECOND).await;
    submit_one(&world).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_tenant_without_a_record_costs_no_call_of_the_store() {
    let world = World::new().await;
    submit_one(&world).await.unwrap();
    let before = (world.faults.calls("tenants"), world.faults.calls("usage"));
    for _ in 0..10 {
        submit_one(&world).await.unwrap();
    }
    assert_eq!((world.faults.calls("tenants"), world.faults.calls("usage")), before);
    assert_eq!(world.faults.calls("tenant"), 0);
}

#[tokio::test(start_paused = true)]
async fn as_many_tasks_wait_as_the_quota_allows() {
    let world = World::new().await;
    limit(&world, Quotas { waiting_tasks: Some(5), ..Quotas::default() }).await;
    submit(&world, vec![draft("echo"); 3]).await.unwrap();
    let (name, wait) = quota(submit(&world, vec![draft("echo"); 3]).await);
    assert_eq!(name, "waitingTasks");
    assert!(wait.unwrap() <= SECOND);
    submit(&world, vec![draft("echo"); 2]).await.unwrap();
    assert_eq!(quota(submit_one(&world).await).0, "waitingTasks");
    assert_eq!(world.faults.calls("usage"), 1, "one count a second");
    for lease in world.source.claim(2).await.unwrap() {
        world.source.finish(vec![finish(&lease, success())]).await.unwrap();
    }
    pass(SECOND).await;
    submit(&world, vec![draft("echo"); 2]).await.unwrap();
    assert_eq!(world.faults.calls("usage"), 2);
}

#[tokio::test(start_paused = true)]
async fn an_order_of_the_system_passes_where_the_quota_is_used_up() {
    let world = World::new().await;
    limit(&world, Quotas { waiting_tasks: Some(1), ..Quotas::default() }).await;
    submit_one(&world).await.unwrap();
    assert_eq!(quota(submit_one(&world).await).0, "waitingTasks");
    let order = duly_core::bulk::BulkOrder {
        action: duly_core::bulk::BulkAction::Cancel,
        filter: String::new(),
        dead_letters: false,
        ids: None,
        reason: String::new(),
        per_second: None,
    };
    world.engine.start_bulk(&acme(), &order, None).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn submits_of_a_second_are_counted_task_by_task() {
    let world = World::new().await;
    limit(&world, Quotas { submits_per_second: Some(10), ..Quotas::default() }).await;
    submit(&world, vec![draft("echo"); 9]).await.unwrap();
    let (name, wait) = quota(submit(&world, vec![draft("echo"); 2]).await);
    assert_eq!((name, wait), ("submitsPerSecond", Some(Duration::from_millis(100))));
    submit_one(&world).await.unwrap();
    pass(SECOND).await;
    submit(&world, vec![draft("echo"); 10]).await.unwrap();
    assert_eq!(world.faults.calls("usage"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_large_payload_is_refused_alone() {
    let world = World::new().await;
    limit(&world, Quotas { payload_bytes: Some(10), ..Quotas::default() }).await;
    let payload = |text: &str| Draft { payload: Some(text.to_owned()), ..draft("echo") };
    let specs =
        vec![payload("\"12345678\"").check().unwrap(), payload("\"123456789\"").check().unwrap()];
    let answers = world.engine.submit(&acme(), specs).await.unwrap();
    assert!(answers[0].is_ok());
    assert_eq!(
        answers[1].as_ref().unwrap_err(),
        &Refused::Payload(BadPayload::TooLarge { limit: 10 })
    );
}

#[tokio::test(start_paused = true)]
async fn a_tenant_has_defaults_of_its_own() {
    let world = World::new().await;
    let settings = TenantSettings { retries: Some(7), ..TenantSettings::default() };
    change(&world, TenantOrder::Put(TenantDraft { settings, ..TenantDraft::default() })).await;
    let task = &submit_one(&world).await.unwrap()[0].task;
    assert_eq!(task.retries, 7);
    let own = Draft { retries: Some(1.0), ..draft("echo") };
    assert_eq!(submit(&world, vec![own]).await.unwrap()[0].task.retries, 1);
    assert_eq!(world.submit(draft("echo")).await.task.retries, 3, "those of others stay");
    settle().await;
}

#[tokio::test(start_paused = true)]
async fn a_suspension_and_a_change_of_quotas_keep_each_other() {
    let world = World::new().await;
    limit(&world, Quotas { schedules: Some(3), ..Quotas::default() }).await;
    change(&world, TenantOrder::Suspend { note: Some("unpaid".to_owned()) }).await;
    limit(&world, Quotas { schedules: Some(4), ..Quotas::default() }).await;
    let record = world.engine.tenant(&acme()).await.unwrap().unwrap();
    assert!(record.suspended_at.is_some());
    assert_eq!((record.version, record.quotas.schedules), (3, Some(4)));
    change(&world, TenantOrder::Resume).await;
    let record = world.engine.tenant(&acme()).await.unwrap().unwrap();
    assert_eq!((record.suspended_at, record.quotas.schedules), (None, Some(4)));
}
