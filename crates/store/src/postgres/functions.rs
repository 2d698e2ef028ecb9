//! The SQL functions of the schema, apart from the migrations of its tables. They have one version
//! number together, which the database stores: at start a program with a higher version replaces all of
//! them in one transaction, and one with an equal or lower version leaves them alone.
//!
//! To change a function: edit its file, raise [`VERSION`] and set [`CHECKSUM`] to what the test below
//! says. Older nodes keep calling the functions after that, as long as [`super::migrate`] admits them.
//! So a function with another signature (parameters, their names, or what it returns) gets a new name,
//! and the old one stays in its file until those nodes are no longer admitted. A function that no file
//! defines is dropped.

use tokio_postgres::{Client, Error};

/// Raise it with every change of a function.
pub(super) const VERSION: i32 = 9;

/// Names the functions that [`VERSION`] stands for.
#[cfg(test)]
const CHECKSUM: &str = "ffbc08c8597c7506766d0361c386596d494a6f614dc899395ee469b4126a4dfb";

/// In the order in which they are created: a function in SQL needs those that it calls.
const FILES: &[&str] = &[
    include_str!("../../functions/postgres/clock_and_ids.sql"),
    include_str!("../../functions/postgres/days.sql"),
    include_str!("../../functions/postgres/outbox.sql"),
    include_str!("../../functions/postgres/task_state.sql"),
    include_str!("../../functions/postgres/task_state_settle.sql"),
    include_str!("../../functions/postgres/leases.sql"),
    include_str!("../../functions/postgres/parents.sql"),
    include_str!("../../functions/postgres/submit.sql"),
    include_str!("../../functions/postgres/pick.sql"),
    include_str!("../../functions/postgres/exchange.sql"),
    include_str!("../../functions/postgres/checks.sql"),
    include_str!("../../functions/postgres/request_hash.sql"),
    include_str!("../../functions/postgres/application_tenant.sql"),
    include_str!("../../functions/postgres/application_submit.sql"),
    include_str!("../../functions/postgres/application_finish.sql"),
    include_str!("../../functions/postgres/rows_of_tenants.sql"),
    include_str!("../../functions/postgres/audit.sql"),
    include_str!("../../functions/postgres/rights.sql"),
];

/// One row per version that was ever in place; the highest counts.
pub(super) const TABLE: &str = "CREATE TABLE IF NOT EXISTS duly.functions (
        version     integer     NOT NULL PRIMARY KEY,
        replaced_at timestamptz NOT NULL DEFAULT now()
    )";

/// Functions that this transaction has not written: no file defines them.
const STALE: &str = "p.xmin <> pg_current_xact_id()::xid";

/// Functions that answer with other columns than they did in a version that a database may have: these
/// cannot be replaced. Nodes that need the old ones are no longer admitted.
const CHANGED: &str = "p.proname IN ('grant_tasks', 'end_tasks', 'acknowledge_external_finishes', \
    'exchange', 'settle_tasks', 'waiting_children', 'parents', 'store_tasks', 'submit_tasks', \
    'count_ended_members')";

/// Drops those of the functions for which this holds.
fn drop_those(condition: &str) -> String {
    format!(
        "DO $$
        DECLARE
            one regprocedure;
        BEGIN
            FOR one IN
                SELECT p.oid FROM pg_catalog.pg_proc p
                WHERE p.pronamespace = 'duly'::regnamespace AND {condition}
            LOOP
                EXECUTE format('DROP FUNCTION %s', one);
            END LOOP;
        END
        $$"
    )
}

/// Whether the functions of a database are older than those of this program.
pub(super) async fn are_outdated(client: &Client) -> Result<bool, Error> {
    let table = "SELECT to_regclass('duly.functions') IS NOT NULL";
    if !client.query_one(table, &[]).await?.try_get::<_, bool>(0)? {
        return Ok(true);
    }
    let newest = "SELECT coalesce(max(version), 0) FROM duly.functions";
    Ok(client.query_one(newest, &[]).await?.try_get::<_, i32>(0)? < VERSION)
}

/// Replaces all functions. The caller holds the lock of the schema.
pub(super) async fn replace(client: &mut Client) -> Result<(), Error> {
    let transaction = client.transaction().await?;
    transaction.batch_execute(&drop_those(CHANGED)).await?;
    for file in FILES {
        transaction.batch_execute(file).await?;
    }
    transaction.batch_execute(&drop_those(STALE)).await?;
    // `duly migrate up` reports the roles that are missing.
    transaction.batch_execute("SELECT duly.grant_rights()").await?;
    let note = "INSERT INTO duly.functions (version) VALUES ($1)";
    transaction.execute(note, &[&VERSION]).await?;
    transaction.commit().await
}

/// Everything that the files say.
#[cfg(any(test, feature = "conformance"))]
pub(super) fn text() -> String {
    FILES.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_function_raises_the_version() {
        let checksum = crate::postgres::migrate::checksum(&text());
        assert_eq!(
            checksum, CHECKSUM,
            "a file in functions/postgres has changed: raise VERSION above {VERSION}, so that \
             databases get the change, and set CHECKSUM to {checksum}"
        );
    }

    #[test]
    fn files_hold_nothing_but_functions_that_can_be_replaced() {
        for line in text().lines() {
            let starts = |word: &str| line.starts_with(word);
            let is_other = ["CREATE", "DROP", "ALTER", "GRANT", "REVOKE", "SELECT", "DO"]
                .iter()
                .any(|word| starts(word));
            assert!(!is_other || starts("CREATE OR REPLACE FUNCTION duly."), "{line}");
        }
    }
}
