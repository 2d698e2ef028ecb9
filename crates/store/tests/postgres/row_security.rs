//! What a query may see: the rows of one tenant. Owners and superusers are not held to that, so these
//! tests act as the role that nodes read as.

use std::time::Duration;

use duly_core::name::{Lane, TenantName};
use duly_core::task::NewTask;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::world::World;

/// Tables that hold nothing but ids and numbers.
const IDS_ONLY: [&str; 2] = ["edge", "grant_log"];

const TENANTS_OF_LANES: &str = "SELECT DISTINCT tenant FROM duly.lane ORDER BY 1";

async fn texts(client: &Client, query: &str) -> Vec<String> {
    let rows = client.query(query, &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

async fn count(client: &Client, table: &str) -> i64 {
    let query = format!("SELECT count(*) FROM duly.{table}");
    client.query_one(&query, &[]).await.unwrap().get(0)
}

/// A task of each of two tenants.
async fn two_tenants(world: &World) -> [TenantName; 2] {
    let tenants = ["acme", "rival"].map(|name| TenantName::new(name).unwrap());
    let tasks = tenants.iter().zip(1..).map(|(tenant, number)| {
        let task = world.task(number, Duration::ZERO);
        let lane = Lane { tenant: tenant.clone(), ..task.lane };
        NewTask { lane, ..task }
    });
    world.submit(0, tasks.collect()).await;
    tenants
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s03_a_query_sees_the_rows_of_its_tenant_only() {
    let Some(world) = World::new().await else { return };
    let tenants = two_tenants(&world).await;
    let (client, _driver) = world.scratch.connect().await;
    assert_eq!(count(&client, "task").await, 2);
    client.batch_execute("SET ROLE duly_query").await.unwrap();
    for table in ["lane", "task", "due"] {
        assert_eq!(count(&client, table).await, 0, "{table}, without a tenant");
    }
    for tenant in tenants {
        let tenant = tenant.as_str();
        let name = format!("BEGIN; SET LOCAL duly.tenant = '{tenant}'");
        client.batch_execute(&name).await.unwrap();
        assert_eq!(texts(&client, TENANTS_OF_LANES).await, [tenant]);
        for table in ["task", "due"] {
            assert_eq!(count(&client, table).await, 1, "{table} of {tenant}");
        }
        client.batch_execute("COMMIT").await.unwrap();
        assert_eq!(count(&client, "task").await, 0, "after the transaction of {tenant}");
    }
}

/// A table that a later migration adds is either limited to the tenant or not readable.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s03_no_table_is_open_to_queries_without_a_policy() {
    let Some(world) = World::new().await else { return };
    let (client, _driver) = world.scratch.connect().await;
    let open = "SELECT relname::text FROM pg_catalog.pg_class c
        WHERE relnamespace = 'duly'::regnamespace AND relkind IN ('r', 'p', 'v')
          AND has_table_privilege('duly_query', c.oid, 'SELECT') AND NOT relrowsecurity
        ORDER BY 1";
    assert_eq!(texts(&client, open).await, IDS_ONLY);
    let writable = "SELECT relname::text FROM pg_catalog.pg_class c
        WHERE relnamespace = 'duly'::regnamespace AND relkind IN ('r', 'p', 'v')
          AND has_table_privilege('duly_query', c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')";
    assert_eq!(texts(&client, writable).await, [""; 0]);
    let days = "SELECT inhrelid::regclass::text FROM pg_catalog.pg_inherits
        WHERE inhparent = 'duly.task'::regclass";
    let days = texts(&client, days).await;
    client.batch_execute("SET ROLE duly_query").await.unwrap();
    assert!(!days.is_empty());
    for day in days {
        let refused = client.query(&format!("SELECT FROM {day}"), &[]).await.unwrap_err();
        assert_eq!(refused.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE), "{day}");
    }
}

/// To create a policy, the server waits for all who use the table.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policies_that_are_in_place_are_not_made_again() {
    let Some(world) = World::new().await else { return };
    let (client, _driver) = world.scratch.connect().await;
    let policies = "SELECT array_agg(oid ORDER BY oid)::text FROM pg_catalog.pg_policy";
    let before = texts(&client, policies).await;
    client.batch_execute("SELECT duly.grant_rights()").await.unwrap();
    assert_eq!(texts(&client, policies).await, before);
    client.batch_execute("COMMENT ON POLICY of_tenant ON duly.slot IS 'other'").await.unwrap();
    client.batch_execute("SELECT duly.grant_rights()").await.unwrap();
    assert_ne!(texts(&client, policies).await, before, "a policy that has changed is made again");
}
