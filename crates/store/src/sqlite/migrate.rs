//! The schema: numbered scripts, forward only, each in one transaction together with its number,
//! so that a kill in the middle leaves the last whole version.

use std::collections::BTreeSet;

use duly_core::error_group::ErrorGroup;
use duly_core::task::Failure;
use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;

const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/sqlite/0001_tasks.sql"),
    include_str!("../../migrations/sqlite/0002_sessions_and_dead_letters.sql"),
    include_str!("../../migrations/sqlite/0003_dead_letters_by_id.sql"),
    include_str!("../../migrations/sqlite/0004_queues.sql"),
    include_str!("../../migrations/sqlite/0005_settings.sql"),
    include_str!("../../migrations/sqlite/0006_reports.sql"),
    include_str!("../../migrations/sqlite/0007_start_times.sql"),
    include_str!("../../migrations/sqlite/0008_drain.sql"),
    include_str!("../../migrations/sqlite/0009_workflows.sql"),
    include_str!("../../migrations/sqlite/0010_edges_of_children.sql"),
    include_str!("../../migrations/sqlite/0011_failed_members.sql"),
    include_str!("../../migrations/sqlite/0012_schedules.sql"),
    include_str!("../../migrations/sqlite/0013_audit.sql"),
    include_str!("../../migrations/sqlite/0014_keys_and_tenants.sql"),
    include_str!("../../migrations/sqlite/0015_outbox.sql"),
];

/// Why the schema could not be brought up to date.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error(
        "the database has schema version {found}, made by a newer duly; this one knows {known}"
    )]
    Newer { found: i64, known: usize },
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
}

/// How many scripts this program knows.
pub(super) const fn known() -> usize {
    MIGRATIONS.len()
}

/// Applies what is missing; returns how many scripts that were.
pub(super) fn up(connection: &mut Connection) -> Result<usize, Error> {
    let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let known = MIGRATIONS.len();
    let applied = usize::try_from(found).ok().filter(|found| *found <= known);
    let Some(applied) = applied else { return Err(Error::Newer { found, known }) };
    if applied < known {
        register_functions(connection)?;
    }
    for (number, script) in MIGRATIONS.iter().enumerate().skip(applied) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(script)?;
        transaction.pragma_update(None, "user_version", number + 1)?;
        transaction.commit()?;
    }
    Ok(known - applied)
}

/// The tables of a database.
pub(super) fn tables(connection: &Connection) -> rusqlite::Result<BTreeSet<String>> {
    let mut statement =
        connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")?;
    let names = statement.query_map([], |row| row.get(0))?;
    names.collect()
}

/// The tables that the first so many scripts make.
pub(super) fn tables_of(version: usize) -> rusqlite::Result<BTreeSet<String>> {
    let connection = Connection::open_in_memory()?;
    register_functions(&connection)?;
    for script in MIGRATIONS.iter().take(version) {
        connection.execute_batch(script)?;
    }
    tables(&connection)
}

/// What scripts need to know that SQL cannot say.
fn register_functions(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("error_group", 1, flags, |arguments| {
        let text: Option<String> = arguments.get(0)?;
        let failure = text.and_then(|text| serde_json::from_str(&text).ok());
        let failure = failure.unwrap_or_else(|| Failure::new("", ""));
        Ok(ErrorGroup::of(&failure).to_bits())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fresh_file_gets_every_script_once() {
        let mut connection = Connection::open_in_memory().unwrap();
        assert_eq!(up(&mut connection).unwrap(), MIGRATIONS.len());
        assert_eq!(up(&mut connection).unwrap(), 0);
    }

    #[test]
    fn tasks_that_failed_before_there_was_a_queue_for_them_are_in_it() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(MIGRATIONS[0]).unwrap();
        connection.pragma_update(None, "user_version", 1).unwrap();
        let failure = Failure::new("BROKEN", "it broke");
        let insert = "INSERT INTO task (id, status, epoch, lane, rank, run_at, created_at,
                finished_at, run, charged, retries, losses, error)
            VALUES (x'01', 4, 1, 7, 4, 1, 1, 5, 1, 1, 0, 0, ?)";
        let error = serde_json::to_string(&failure).unwrap();
        connection.execute(insert, [error]).unwrap();
        assert_eq!(up(&mut connection).unwrap(), MIGRATIONS.len() - 1);
        let row = connection.query_row("SELECT failed_at, lane, error_group FROM dlq", [], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
        });
        assert_eq!(row.unwrap(), (5, 7, ErrorGroup::of(&failure).to_bits()));
    }

    #[test]
    fn logs_that_stood_with_their_attempts_are_kept() {
        let mut connection = Connection::open_in_memory().unwrap();
        register_functions(&connection).unwrap();
        MIGRATIONS[..3].iter().for_each(|script| connection.execute_batch(script).unwrap());
        connection.pragma_update(None, "user_version", 3).unwrap();
        let insert = "INSERT INTO attempt VALUES (x'01', 7, 2, 3, 10, 20, NULL, '{}', ?)";
        connection.execute(insert, ["the end"]).unwrap();
        up(&mut connection).unwrap();
        let select = "SELECT epoch, offset, at, run, attempt, text FROM log";
        let row = connection.query_row(select, [], |row| {
            let numbers = [row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?];
            Ok((numbers, row.get::<_, String>(5)?))
        });
        assert_eq!(row.unwrap(), ([7, 0, 20, 2, 3], "the end".to_owned()));
    }

    #[test]
    fn a_newer_file_is_refused() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.pragma_update(None, "user_version", 999).unwrap();
        assert!(matches!(up(&mut connection), Err(Error::Newer { found: 999, .. })));
    }
}
