//! The schema: numbered scripts, forward only, each in one transaction together with its number,
//! so that a kill in the middle leaves the last whole version. Of many nodes that start at once, one
//! applies them and the others wait.

use std::collections::HashMap;

use duly_core::time::Timestamp;
use tokio_postgres::Client;

const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/postgres/0001_tasks.sql"),
    include_str!("../../migrations/postgres/0002_leases.sql"),
    include_str!("../../migrations/postgres/0003_queues_settings_reports.sql"),
    include_str!("../../migrations/postgres/0004_roles.sql"),
    include_str!("../../migrations/postgres/0005_submit.sql"),
    include_str!("../../migrations/postgres/0006_exchange.sql"),
    include_str!("../../migrations/postgres/0007_nodes.sql"),
    include_str!("../../migrations/postgres/0008_checks.sql"),
    include_str!("../../migrations/postgres/0009_application_submit.sql"),
    include_str!("../../migrations/postgres/0010_application_finish.sql"),
    include_str!("../../migrations/postgres/0011_delays.sql"),
    include_str!("../../migrations/postgres/0012_start_times.sql"),
    include_str!("../../migrations/postgres/0013_drain.sql"),
    include_str!("../../migrations/postgres/0014_names.sql"),
    include_str!("../../migrations/postgres/0015_revocations.sql"),
];

/// A node that knows so many scripts may go on beside those that have applied all of them. Less than
/// their number only if whatever such a node says to the database still means the same. A script
/// that it cannot live with should make its statements fail: it notices a little later.
const OLDEST: usize = MIGRATIONS.len();

/// What was applied, and which nodes may go on beside it. A database that is older than that column
/// gets it with its next script.
const TABLE: &str = "CREATE SCHEMA IF NOT EXISTS duly;
    CREATE TABLE IF NOT EXISTS duly.migration (
        version    integer     NOT NULL PRIMARY KEY,
        applied_at timestamptz NOT NULL DEFAULT now()
    );
    ALTER TABLE duly.migration ADD COLUMN IF NOT EXISTS oldest integer";

/// Why the schema could not be brought up to date.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error(transparent)]
    Newer(#[from] Newer),
    #[error(transparent)]
    Postgres(#[from] tokio_postgres::Error),
}

/// The schema is not for this program any more.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the database has schema version {found}, made by a newer duly; this one knows {known}")]
pub(super) struct Newer {
    found: i32,
    known: i32,
}

/// Held by whoever applies scripts; any number that nobody else uses.
const LOCK: i64 = 0x6475_6c79_0000_0001;

/// Applies what is missing; returns how many scripts that were.
pub(super) async fn up(client: &mut Client) -> Result<usize, Error> {
    if missing(client).await?.is_empty() {
        return Ok(0);
    }
    // Waiting for another node's scripts may take longer than a statement usually may.
    client.batch_execute("SET statement_timeout = 0; SET lock_timeout = 0").await?;
    let free = client.query_one("SELECT pg_try_advisory_lock($1)", &[&LOCK]).await?;
    if !free.try_get::<_, bool>(0)? {
        tracing::warn!("another node changes the schema; waiting for it (pg_locks tells which)");
        client.execute("SELECT pg_advisory_lock($1)", &[&LOCK]).await?;
    }
    let applied = apply(client).await;
    client.execute("SELECT pg_advisory_unlock($1)", &[&LOCK]).await?;
    applied
}

async fn apply(client: &mut Client) -> Result<usize, Error> {
    client.batch_execute(TABLE).await?;
    let missing = missing(client).await?;
    for (number, script) in missing.clone().zip(&MIGRATIONS[missing.clone()]) {
        let transaction = client.transaction().await?;
        transaction.batch_execute(script).await?;
        let (version, oldest) = (version(number + 1), version(OLDEST.min(number + 1)));
        let note = "INSERT INTO duly.migration (version, oldest) VALUES ($1, $2)";
        transaction.execute(note, &[&version, &oldest]).await?;
        transaction.commit().await?;
    }
    Ok(missing.len())
}

/// Whether there is a schema, be it for this user or not.
pub(super) async fn is_begun(client: &Client) -> bool {
    let select = "SELECT to_regnamespace('duly') IS NOT NULL";
    let found = client.query_one(select, &[]).await.and_then(|row| row.try_get(0));
    found.unwrap_or(false)
}

/// Which scripts were not applied yet.
async fn missing(client: &Client) -> Result<std::ops::Range<usize>, Error> {
    let known = MIGRATIONS.len();
    let table = "SELECT to_regclass('duly.migration') IS NOT NULL";
    if !client.query_one(table, &[]).await?.try_get::<_, bool>(0)? {
        return Ok(0..known);
    }
    let newest = "SELECT coalesce(max(version), 0) FROM duly.migration";
    let found: i32 = client.query_one(newest, &[]).await?.try_get(0)?;
    if let Some(newer) = newer(client).await? {
        return Err(newer.into());
    }
    Ok(usize::try_from(found).unwrap_or(0).min(known)..known)
}

/// Whether a newer program has changed the schema so that this one cannot go on.
pub(super) async fn newer(client: &Client) -> Result<Option<Newer>, tokio_postgres::Error> {
    // A table without the column says nothing of older nodes, as does a row without a value.
    let select = "/* schema */ SELECT max(version) FROM duly.migration m WHERE version > $1
        HAVING max(coalesce((to_jsonb(m) ->> 'oldest')::integer, version)) > $1";
    let known = version(MIGRATIONS.len());
    let row = client.query_opt(select, &[&known]).await?;
    row.map(|row| Ok(Newer { found: row.try_get(0)?, known })).transpose()
}

fn version(scripts: usize) -> i32 {
    i32::try_from(scripts).expect("there are not so many scripts")
}

/// A script, and when it was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migration {
    /// Counts from 1.
    pub version: u32,
    /// Nothing if it is still to be applied.
    pub applied_at: Option<Timestamp>,
}

/// All scripts that this program knows.
pub(super) async fn status(client: &Client) -> Result<Vec<Migration>, Error> {
    let missing = missing(client).await?;
    let mut times = HashMap::new();
    if missing.start > 0 {
        let select = "SELECT version, floor(extract(epoch FROM applied_at) * 1000)::bigint
            FROM duly.migration";
        for row in client.query(select, &[]).await? {
            times.insert(row.try_get::<_, i32>(0)?, row.try_get::<_, i64>(1)?);
        }
    }
    let migration = |number: i32| Migration {
        version: number.unsigned_abs(),
        applied_at: times.get(&number).copied().map(Timestamp::clamped),
    };
    Ok((1..).take(MIGRATIONS.len()).map(migration).collect())
}

/// The version that these scripts end with.
#[cfg(feature = "conformance")]
pub(super) fn newest() -> i32 {
    version(MIGRATIONS.len())
}

/// Names the schema as these scripts make it.
#[cfg(feature = "conformance")]
pub(super) fn fingerprint() -> String {
    use sha2::{Digest as _, Sha256};
    let mut hasher = Sha256::new();
    hasher.update(TABLE);
    MIGRATIONS.iter().for_each(|script| hasher.update(script));
    let digest: [u8; 32] = hasher.finalize().into();
    digest[..6].iter().map(|byte| format!("{byte:02x}")).collect()
}
