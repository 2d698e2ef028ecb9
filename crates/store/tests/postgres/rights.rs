//! What users may do who do not own the tables.

use std::time::Duration;

use duly_core::audit::Author;
use duly_core::name::{QueueName, TenantName};
use duly_core::ports::clock::Clock as _;
use duly_core::ports::store::{AuditLog as _, Home, ListAudit, PauseQueue};
use duly_core::state::Status;
use tokio_postgres::error::SqlState;

use crate::world::World;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Roles are the server's: another test may have made this one.
pub(crate) const MAKE_RUNNER: &str = "DO $$
    BEGIN
        CREATE ROLE duly_test_runner LOGIN IN ROLE duly_engine;
    EXCEPTION WHEN duplicate_object OR unique_violation THEN
        NULL;
    END
    $$";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_need_not_own_the_tables() {
    let Some(mut world) = World::new().await else { return };
    let (client, _driver) = world.scratch.connect().await;
    client.batch_execute(MAKE_RUNNER).await.unwrap();
    world.nodes[1] = world.open_as("duly_test_runner").await;
    let (now, later) = (world.task(1, Duration::ZERO), world.task(2, 30 * DAY));
    let (id, first_day) = (now.id, world.clock.now());
    world.submit(1, vec![now, later]).await;
    let session = world.open(1, 1, Home::Local).await;
    world.succeed(1, session, 1).await;
    assert_eq!(world.status(id).await, Status::Success);

    world.clock.advance(10 * DAY);
    world.sweep(1).await;
    assert!(!world.has_day(first_day).await, "a day of which nothing is kept is dropped");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_application_may_only_submit_and_finish() {
    let Some(world) = World::new().await else { return };
    let (client, _driver) = world.scratch.connect().await;
    client.batch_execute("SET ROLE duly_application").await.unwrap();
    for statement in [
        "SELECT duly.drop_day(0)",
        "SELECT duly.make_day(0)",
        "SELECT FROM duly.task",
        "DELETE FROM duly.due",
    ] {
        let error = client.batch_execute(statement).await.unwrap_err();
        assert_eq!(error.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE), "{statement}: {error}");
    }
    client.batch_execute("SELECT duly.submit('email', '{}')").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_owner_changes_the_schema() {
    let Some(world) = World::new().await else { return };
    let (client, _driver) = world.scratch.connect().await;
    client.batch_execute("SET ROLE duly_engine").await.unwrap();
    for statement in [
        "INSERT INTO duly.migration (version) VALUES (9999)",
        "UPDATE duly.functions SET version = 9999",
        "DELETE FROM duly.functions",
    ] {
        let error = client.batch_execute(statement).await.unwrap_err();
        assert_eq!(error.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE), "{statement}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s30_audit_is_append_only() {
    let Some(mut world) = World::new().await else { return };
    let (client, _driver) = world.scratch.connect().await;
    client.batch_execute(MAKE_RUNNER).await.unwrap();
    world.nodes[1] = world.open_as("duly_test_runner").await;
    let author = Author { actor: "key:7".into(), request_id: None };
    let order = PauseQueue {
        tenant: TenantName::default_tenant(),
        queue: QueueName::default_queue(),
        note: String::new(),
    };
    let acting = world.nodes[1].on_behalf_of(author);
    assert!(acting.pause_queue(order).await.unwrap(), "a node may add entries");
    client.batch_execute("SET ROLE duly_engine").await.unwrap();
    for statement in [
        "UPDATE duly.audit SET actor = 'key:8'",
        "DELETE FROM duly.audit",
        "TRUNCATE duly.audit",
        "ALTER TABLE duly.audit DISABLE TRIGGER ALL",
        "DROP TABLE duly.audit",
    ] {
        let error = client.batch_execute(statement).await.unwrap_err();
        assert_eq!(error.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE), "{statement}: {error}");
    }
    let page = ListAudit { limit: 10, ..ListAudit::default() };
    assert_eq!(world.nodes[1].audit_log(page.clone()).await.unwrap().len(), 1, "and read them");
    world.clock.advance(400 * DAY);
    // The node's own clock does not count: by that of the server, the entry is not old.
    let now = world.clock.now();
    assert_eq!(world.nodes[1].forget_audit(now, 10).await.unwrap(), 0);
    assert_eq!(world.nodes[0].audit_log(page).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queries_see_no_key() {
    let Some(world) = World::new().await else { return };
    let (client, _driver) = world.scratch.connect().await;
    client.batch_execute("SET ROLE duly_query").await.unwrap();
    for statement in ["SELECT hash FROM duly.api_key", "SELECT FROM duly.api_key_use"] {
        let error = client.batch_execute(statement).await.unwrap_err();
        assert_eq!(error.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE), "{statement}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_application_submits_for_the_tenants_of_its_roles() {
    let Some(world) = World::new().await else { return };
    let (client, _driver) = world.scratch.connect().await;
    let submit = async |tenant: &str| {
        let call = format!("SELECT duly.submit('email', '{{}}', tenant => '{tenant}')");
        let error = client.batch_execute(&call).await.err()?;
        let code = error.as_db_error().and_then(|error| error.constraint().map(str::to_owned));
        Some(code.unwrap_or_else(|| error.to_string()))
    };
    assert_eq!(submit("acme").await, None, "while nothing is said, every tenant is allowed");
    let map =
        "INSERT INTO duly.application_tenant SELECT r, 'acme' FROM (SELECT session_user) s(r)";
    client.batch_execute(map).await.unwrap();
    assert_eq!(submit("acme").await, None);
    assert_eq!(submit("other").await.as_deref(), Some("FORBIDDEN"));
    client.batch_execute("UPDATE duly.application_tenant SET tenant = '*'").await.unwrap();
    assert_eq!(submit("other").await, None);
    // A superuser is a member of every role; others only of those that were granted to them.
    let foreign = "UPDATE duly.application_tenant SET role = 'nobody_has_this_role'";
    client.batch_execute(foreign).await.unwrap();
    assert_eq!(submit("acme").await.as_deref(), Some("FORBIDDEN"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_application_submits_for_a_suspended_tenant() {
    let Some(world) = World::new().await else { return };
    let (client, _driver) = world.scratch.connect().await;
    world.suspend(0, true).await;
    let error = client.batch_execute("SELECT duly.submit('email', '{}')").await.unwrap_err();
    let error = error.as_db_error().unwrap();
    assert_eq!(error.constraint(), Some("TENANT_SUSPENDED"), "{error}");
    client.batch_execute("SELECT duly.submit('email', '{}', tenant => 'other')").await.unwrap();
    world.suspend(0, false).await;
    client.batch_execute("SELECT duly.submit('email', '{}')").await.unwrap();
}
