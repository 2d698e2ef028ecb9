//! The schema: numbered migrations of the tables, forward only, and the functions, see
//! [`super::functions`]. Each migration is one transaction together with its number and checksum, so that
//! a kill in the middle leaves the last whole version. If many nodes start at once, one of them applies
//! the migrations and the others wait.

use std::collections::HashMap;

use duly_core::time::Timestamp;
use sha2::{Digest as _, Sha256};
use tokio_postgres::Client;

use super::functions;

/// A migration.
struct Script {
    version: i32,
    /// Of its file.
    name: &'static str,
    text: &'static str,
}

macro_rules! scripts {
    ($($version:literal => $name:literal,)*) => {
        &[$(Script {
            version: $version,
            name: $name,
            text: include_str!(concat!("../../migrations/postgres/", $name)),
        }),*]
    };
}

/// By version. A file never changes once it was released: its checksum is stored with every database
/// that it was applied to. Migrations are about tables; the functions in the first ten are replaced or
/// dropped afterwards. Versions 11 to 15 existed between releases and are not used again.
const MIGRATIONS: &[Script] = scripts![
    1 => "0001_tasks.sql",
    2 => "0002_leases.sql",
    3 => "0003_queues_settings_reports.sql",
    4 => "0004_roles.sql",
    5 => "0005_submit.sql",
    6 => "0006_exchange.sql",
    7 => "0007_nodes.sql",
    8 => "0008_checks.sql",
    9 => "0009_application_submit.sql",
    10 => "0010_application_finish.sql",
    16 => "0016_start_times_drain_revocations.sql",
    17 => "0017_workflows.sql",
    18 => "0018_edges_in_place.sql",
    19 => "0019_failed_members.sql",
    20 => "0020_schedules.sql",
    21 => "0021_audit.sql",
    22 => "0022_keys_and_tenants.sql",
    23 => "0023_outbox.sql",
];

/// The newest version that this program knows.
const NEWEST: i32 = MIGRATIONS[MIGRATIONS.len() - 1].version;

/// The oldest node that may go on beside nodes of this version: one that knows this version itself.
/// Less than [`NEWEST`] only if every statement and every call of a function of such a node still
/// means the same. A migration that older nodes cannot live with should make their statements fail: they
/// notice the version a little later.
const OLDEST: i32 = 23;

/// What was applied, and which nodes may go on beside it. An older database gets the missing columns.
const TABLE: &str = "CREATE SCHEMA IF NOT EXISTS duly;
    CREATE TABLE IF NOT EXISTS duly.migration (
        version    integer     NOT NULL PRIMARY KEY,
        applied_at timestamptz NOT NULL DEFAULT now()
    );
    ALTER TABLE duly.migration
        ADD COLUMN IF NOT EXISTS oldest   integer,
        ADD COLUMN IF NOT EXISTS checksum text";

/// Why the schema could not be brought up to date.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error(transparent)]
    Newer(#[from] Newer),
    #[error(transparent)]
    Changed(#[from] Changed),
    #[error(transparent)]
    Postgres(#[from] tokio_postgres::Error),
}

/// The schema is no longer for this program.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the database has schema version {found}, made by a newer duly; this one knows {known}")]
pub(super) struct Newer {
    found: i32,
    known: i32,
}

/// A migration was applied with other contents than this program has.
#[derive(Debug, thiserror::Error)]
#[error(
    "migration {version} was applied to this database with other contents than this program has: \
     its checksum is {stored}, that of {file} here is {known}; use the release of duly that made the \
     database, or, if {file} was edited, undo that and put the change into a new migration"
)]
pub(super) struct Changed {
    version: i32,
    file: &'static str,
    stored: String,
    known: String,
}

/// Held while the schema changes; a number that no other lock uses.
const LOCK: i64 = 0x6475_6c79_0000_0001;

/// Applies the missing migrations and replaces outdated functions; returns how many migrations that
/// were.
pub(super) async fn up(client: &mut Client) -> Result<usize, Error> {
    if Pending::read(client).await?.is_empty() {
        return Ok(0);
    }
    // Waiting for another node's migrations may take longer than a statement usually may.
    client.batch_execute("SET statement_timeout = 0; SET lock_timeout = 0").await?;
    let free = client.query_one("SELECT pg_try_advisory_lock($1)", &[&LOCK]).await?;
    if !free.try_get::<_, bool>(0)? {
        tracing::warn!("another node changes the schema; waiting for it (see pg_locks)");
        client.execute("SELECT pg_advisory_lock($1)", &[&LOCK]).await?;
    }
    let applied = apply(client).await;
    client.execute("SELECT pg_advisory_unlock($1)", &[&LOCK]).await?;
    applied
}

async fn apply(client: &mut Client) -> Result<usize, Error> {
    // Another node may have done it while this one waited for the lock.
    if Pending::read(client).await?.is_empty() {
        return Ok(0);
    }
    client.batch_execute(TABLE).await?;
    client.batch_execute(functions::TABLE).await?;
    adopt_checksums(client).await?;
    let pending = Pending::read(client).await?;
    for script in pending.scripts {
        let transaction = client.transaction().await?;
        transaction.batch_execute(script.text).await?;
        let note = "INSERT INTO duly.migration (version, oldest, checksum) VALUES ($1, $2, $3)";
        let oldest = OLDEST.min(script.version);
        transaction.execute(note, &[&script.version, &oldest, &checksum(script.text)]).await?;
        transaction.commit().await?;
    }
    if pending.functions {
        functions::replace(client).await?;
    }
    Ok(pending.scripts.len())
}

/// Stores the checksums of migrations that were applied before checksums were stored.
async fn adopt_checksums(client: &Client) -> Result<(), Error> {
    let adopt = "UPDATE duly.migration SET checksum = $2 WHERE version = $1 AND checksum IS NULL";
    for script in MIGRATIONS {
        client.execute(adopt, &[&script.version, &checksum(script.text)]).await?;
    }
    Ok(())
}

/// Whether there is a schema, even if this user may not use it.
pub(super) async fn is_begun(client: &Client) -> bool {
    let select = "SELECT to_regnamespace('duly') IS NOT NULL";
    let found = client.query_one(select, &[]).await.and_then(|row| row.try_get(0));
    found.unwrap_or(false)
}

/// What this program has and a database lacks.
struct Pending {
    scripts: &'static [Script],
    functions: bool,
}

impl Pending {
    fn is_empty(&self) -> bool {
        self.scripts.is_empty() && !self.functions
    }

    /// Looks what a database lacks. Fails if it is for newer programs, or if a migration has changed.
    async fn read(client: &Client) -> Result<Self, Error> {
        let table = "SELECT to_regclass('duly.migration') IS NOT NULL";
        if !client.query_one(table, &[]).await?.try_get::<_, bool>(0)? {
            return Ok(Self { scripts: MIGRATIONS, functions: true });
        }
        if let Some(newer) = newer(client).await? {
            return Err(newer.into());
        }
        let mut newest = 0;
        // A table without the column stores no checksums yet.
        let select = "SELECT version, to_jsonb(m) ->> 'checksum' FROM duly.migration m";
        for row in client.query(select, &[]).await? {
            let version: i32 = row.try_get(0)?;
            newest = newest.max(version);
            verify(version, row.try_get(1)?)?;
        }
        let applied = MIGRATIONS.partition_point(|script| script.version <= newest);
        let functions = functions::are_outdated(client).await?;
        Ok(Self { scripts: &MIGRATIONS[applied..], functions })
    }
}

/// Whether an applied migration is what this program knows under its number.
fn verify(version: i32, stored: Option<String>) -> Result<(), Changed> {
    let script = MIGRATIONS.iter().find(|script| script.version == version);
    let (Some(script), Some(stored)) = (script, stored) else { return Ok(()) };
    let known = checksum(script.text);
    if stored == known {
        return Ok(());
    }
    Err(Changed { version, file: script.name, stored, known })
}

/// Whether a newer program has changed the schema so that this one cannot go on.
pub(super) async fn newer(client: &Client) -> Result<Option<Newer>, tokio_postgres::Error> {
    // A table without the column admits no older nodes, nor does a row without a value.
    let select = "/* schema */ SELECT max(version) FROM duly.migration m WHERE version > $1
        HAVING max(coalesce((to_jsonb(m) ->> 'oldest')::integer, version)) > $1";
    let row = client.query_opt(select, &[&NEWEST]).await?;
    row.map(|row| Ok(Newer { found: row.try_get(0)?, known: NEWEST })).transpose()
}

/// Names the contents of a file.
pub(super) fn checksum(text: &str) -> String {
    let digest: [u8; 32] = Sha256::digest(text).into();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A migration, and when it was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migration {
    /// Grows from one migration to the next.
    pub version: u32,
    /// `None` if it is still to be applied.
    pub applied_at: Option<Timestamp>,
}

/// All migrations that this program knows.
pub(super) async fn status(client: &Client) -> Result<Vec<Migration>, Error> {
    let pending = Pending::read(client).await?;
    let mut times = HashMap::new();
    if pending.scripts.len() < MIGRATIONS.len() {
        let select = "SELECT version, floor(extract(epoch FROM applied_at) * 1000)::bigint
            FROM duly.migration";
        for row in client.query(select, &[]).await? {
            times.insert(row.try_get::<_, i32>(0)?, row.try_get::<_, i64>(1)?);
        }
    }
    let migration = |script: &Script| Migration {
        version: script.version.unsigned_abs(),
        applied_at: times.get(&script.version).copied().map(Timestamp::clamped),
    };
    Ok(MIGRATIONS.iter().map(migration).collect())
}

/// The version that the migrations end with.
#[cfg(feature = "conformance")]
pub(super) fn newest() -> i32 {
    NEWEST
}

/// Names the schema that the migrations and functions make.
#[cfg(feature = "conformance")]
pub(super) fn fingerprint() -> String {
    let mut all = format!("{TABLE}{}{}", functions::TABLE, functions::text());
    MIGRATIONS.iter().for_each(|script| all.push_str(script.text));
    checksum(&all)[..12].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the files that were released. Such a file never changes, not even its comments.
    const RELEASED: [&str; 10] = [
        "ed8363bb2e770d872e0d99828622ddeec7deaa59411f08724ec404ef115a3783",
        "24fd9fd36c6a2a53f7c62f8660646c6b9c7a412e9d95b5c8af8d0ec63892b3cd",
        "78af7bc79b4b803cf6cf7fad489713f5cb4d6493501d93b9e63b71bc4ce46580",
        "d044da4e296f8158aa1a12b6c3d37d3bb26ca78e8099b2a7908fb61ad6643d37",
        "abdbbc072e66792f76932990b1548c2e48ef841eb45615d828d2d50bf375da1a",
        "1efb9792aeb34e3b43d88670f959d3f4b87c551510eafcbc4dea3f5812fd77fd",
        "0ea4c72b354eb98bbfef04dc13860e897ea6ede25c3d767a1d732f68349003cf",
        "c3903518a1136ea34369606cb804eb45393a2551a68bd3acd8d0b99288935afd",
        "af342bc11f571e0ff8a725869cb5d4029d2a9448e4350f38f8b308c5a3fd085c",
        "987faf9095b95a265f40f3f8c3ada07b908c7b892a92f4536e51f36fd87a589a",
    ];

    #[test]
    fn released_migrations_stay_as_they_are() {
        for (script, checksum_then) in MIGRATIONS.iter().zip(RELEASED) {
            assert_eq!(checksum(script.text), checksum_then, "{}", script.name);
        }
    }

    #[test]
    fn migrations_are_in_the_order_of_their_versions() {
        assert!(MIGRATIONS.is_sorted_by_key(|script| script.version));
        for script in MIGRATIONS {
            assert!(script.name.starts_with(&format!("{:04}_", script.version)), "{}", script.name);
        }
    }

    #[test]
    fn an_applied_migration_that_has_changed_is_named() {
        assert!(verify(1, None).is_ok() && verify(12, Some("other".to_owned())).is_ok());
        assert!(verify(1, Some(checksum(MIGRATIONS[0].text))).is_ok());
        let changed = verify(1, Some("other".to_owned())).unwrap_err().to_string();
        assert!(
            changed.contains("0001_tasks.sql") && changed.contains("new migration"),
            "{changed}"
        );
    }
}
