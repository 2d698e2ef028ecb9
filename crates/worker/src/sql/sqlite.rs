//! Statements on a SQLite file.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Error, ErrorCode, OpenFlags, Statement, params_from_iter};
use tokio::sync::OwnedSemaphorePermit;

use super::parameter::{Kind, Parameter, base64};
use super::rows::{Rows, string};
use super::{Answer, Query, SqlError, unreachable};

/// How long it waits for another writer.
const BUSY: Duration = Duration::from_secs(5);
/// Steps of a statement between two looks at whether it is still wanted: a fraction of a millisecond.
const STEPS: i32 = 1000;
/// Bytes of one value; larger ones would fill the memory before they can be left out.
const VALUE_BYTES: i32 = 16 * 1024 * 1024;

/// A file.
#[derive(Debug)]
pub(super) struct Sqlite {
    path: PathBuf,
    may_write: bool,
}

/// Ends the statement when it is dropped.
struct Unwanted(Arc<AtomicBool>);

impl Drop for Unwanted {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Sqlite {
    pub(super) fn new(path: PathBuf, may_write: bool) -> Self {
        Self { path, may_write }
    }

    /// Runs a statement on a thread of its own, which keeps the slot until it ends.
    pub(super) async fn run(
        &self,
        source: &str,
        query: Query,
        slot: OwnedSemaphorePermit,
    ) -> Result<Answer, SqlError> {
        let unwanted = Unwanted(Arc::default());
        let (path, may_write, flag) = (self.path.clone(), self.may_write, Arc::clone(&unwanted.0));
        let source = source.to_owned();
        let work = move || {
            let _slot = slot;
            let connection =
                open(&path, may_write, flag).map_err(|error| unreachable(&source, &error))?;
            run(&connection, may_write, &query).map_err(|failed| match failed {
                Failed::Told(error) => error,
                Failed::Sqlite(error) => judge(&source, &error),
            })
        };
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|_| Err(SqlError::Unavailable("the node stops".to_owned())))
    }
}

/// Why a statement gave nothing: what is clear already, and what SQLite says.
enum Failed {
    Told(SqlError),
    Sqlite(Error),
}

impl From<SqlError> for Failed {
    fn from(error: SqlError) -> Self {
        Self::Told(error)
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Sqlite(error)
    }
}

fn open(
    path: &PathBuf,
    may_write: bool,
    unwanted: Arc<AtomicBool>,
) -> rusqlite::Result<Connection> {
    let way = if may_write {
        OpenFlags::SQLITE_OPEN_READ_WRITE
    } else {
        OpenFlags::SQLITE_OPEN_READ_ONLY
    };
    let mut connection = Connection::open_with_flags(path, way | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "query_only", !may_write)?;
    // Reads a page, so that a file that is no database is known as such.
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, VALUE_BYTES)?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    connection.progress_handler(STEPS, Some(move || unwanted.load(Ordering::Relaxed)))?;
    connection.authorizer(Some(authorize))?;
    Ok(connection)
}

/// Keeps a statement to this file and its tables.
fn authorize(asked: AuthContext<'_>) -> Authorization {
    match asked.action {
        AuthAction::Attach { .. }
        | AuthAction::Detach { .. }
        | AuthAction::Pragma { .. }
        | AuthAction::Transaction { .. }
        | AuthAction::Savepoint { .. } => Authorization::Deny,
        _ => Authorization::Allow,
    }
}

fn run(connection: &Connection, may_write: bool, query: &Query) -> Result<Answer, Failed> {
    let mut statement = connection.prepare(&query.statement)?;
    if !may_write && !statement.readonly() {
        return Err(told("this source is read-only").into());
    }
    let expected = statement.parameter_count();
    if expected != query.parameters.len() {
        let given = query.parameters.len();
        let why = format!("the statement has {expected} parameters, and {given} are given");
        return Err(told(&why).into());
    }
    let values: Result<Vec<Value>, SqlError> = query.parameters.iter().map(value).collect();
    let values = params_from_iter(values?);
    if statement.column_count() == 0 {
        let changed = statement.execute(values)?;
        let none = Rows::new([], 0)?.end();
        return Ok(Answer { affected: u64::try_from(changed).ok(), ..none });
    }
    read(&mut statement, values, query.max_rows)
}

fn read(
    statement: &mut Statement<'_>,
    values: rusqlite::ParamsFromIter<Vec<Value>>,
    max: usize,
) -> Result<Answer, Failed> {
    let mut rows = Rows::new(statement.column_names(), max)?;
    let (columns, is_read) = (statement.column_count(), statement.readonly());
    let mut has_room = true;
    let mut found = statement.query(values)?;
    while let Some(row) = found.next()? {
        if has_room {
            let mut texts = Vec::with_capacity(columns);
            for index in 0..columns {
                texts.push(text(row.get_ref(index)?)?);
            }
            has_room = rows.push(&texts);
        }
        // What changes rows has to be run to its end.
        if !has_room && is_read {
            break;
        }
    }
    Ok(rows.end())
}

fn told(why: &str) -> SqlError {
    SqlError::Statement(why.to_owned())
}

/// A parameter as SQLite stores it.
fn value(parameter: &Parameter) -> Result<Value, SqlError> {
    Ok(match parameter.kind() {
        Kind::Null => Value::Null,
        Kind::Bool(value) => Value::Integer(value.into()),
        Kind::Number(text) if text.contains(['.', 'e', 'E']) => {
            let number: f64 = text.parse().unwrap_or(f64::INFINITY);
            if !number.is_finite() {
                return Err(told(&format!("the parameter {text} is too large a number")));
            }
            Value::Real(number)
        }
        Kind::Number(text) => Value::Integer(text.parse().map_err(|_| {
            told(&format!("the parameter {text} does not fit in 64 bits; pass it as a string"))
        })?),
        Kind::Text(text) => Value::Text(text),
        Kind::Array(_) | Kind::Object => Value::Text(parameter.json().to_owned()),
    })
}

/// A value as JSON.
fn text(value: ValueRef<'_>) -> Result<String, SqlError> {
    Ok(match value {
        ValueRef::Null => "null".to_owned(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) if number.is_finite() => serde_json::Value::from(number).to_string(),
        ValueRef::Real(number) => string(&number.to_string()),
        ValueRef::Text(bytes) => string(std::str::from_utf8(bytes).map_err(|_| {
            SqlError::Type("a text is not UTF-8; read it as a blob: CAST(x AS BLOB)".to_owned())
        })?),
        ValueRef::Blob(bytes) => base64(bytes),
    })
}

fn judge(source: &str, error: &Error) -> SqlError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            SqlError::Unavailable("the database is locked by another writer".to_owned())
        }
        Some(ErrorCode::OperationInterrupted) => {
            SqlError::Unavailable("the statement was cancelled".to_owned())
        }
        Some(ErrorCode::AuthorizationForStatementDenied) => {
            told("ATTACH, PRAGMA, VACUUM INTO and transactions are not allowed")
        }
        Some(
            ErrorCode::CannotOpen
            | ErrorCode::NotADatabase
            | ErrorCode::SystemIoFailure
            | ErrorCode::DiskFull
            | ErrorCode::OutOfMemory,
        ) => unreachable(source, error),
        _ if matches!(error, Error::MultipleStatement) => {
            told("there is more than one statement; give one")
        }
        _ => told(&error.to_string()),
    }
}
