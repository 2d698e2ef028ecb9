//! The schema: numbered scripts, forward only, each in one transaction together with its number,
//! so that a kill in the middle leaves the last whole version.

use rusqlite::Connection;

const MIGRATIONS: &[&str] = &[include_str!("../../migrations/sqlite/0001_tasks.sql")];

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

/// Applies what is missing; returns how many scripts that were.
pub(super) fn up(connection: &mut Connection) -> Result<usize, Error> {
    let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let known = MIGRATIONS.len();
    let applied = usize::try_from(found).ok().filter(|found| *found <= known);
    let Some(applied) = applied else { return Err(Error::Newer { found, known }) };
    for (number, script) in MIGRATIONS.iter().enumerate().skip(applied) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(script)?;
        transaction.pragma_update(None, "user_version", number + 1)?;
        transaction.commit()?;
    }
    Ok(known - applied)
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
    fn a_newer_file_is_refused() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.pragma_update(None, "user_version", 999).unwrap();
        assert!(matches!(up(&mut connection), Err(Error::Newer { found: 999, .. })));
    }
}
