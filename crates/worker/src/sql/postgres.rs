//! Statements on a PostgreSQL database.

mod tls;
mod value;

use std::fmt;
use std::time::Duration;

use bytes::BytesMut;
use tokio::runtime::Handle;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{Format, IsNull, Kind as TypeKind, ToSql, Type, to_sql_checked};
use tokio_postgres::{CancelToken, Client, Config, Error, NoTls, Portal, Transaction};
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_util::task::TaskTracker;

use super::parameter::{Kind, Parameter, bytes};
use super::rows::Rows;
use super::{Answer, Query, SqlError, unreachable};
use crate::error_chain::chain;

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);
/// The database ends a statement itself this long after its task's time limit, should the node be gone.
const SLACK: Duration = Duration::from_secs(5);
/// Rows that are read at once.
const STEP: i32 = 100;

/// A database.
pub(super) struct Postgres {
    config: Config,
    may_write: bool,
    /// Connections, and cancellations of statements whose attempt has ended.
    tasks: TaskTracker,
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres").field("may_write", &self.may_write).finish_non_exhaustive()
    }
}

/// Asks the database to cancel what it is doing, when it is dropped.
struct CancelOnDrop {
    token: CancelToken,
    tls: Option<MakeRustlsConnect>,
    tasks: TaskTracker,
    is_done: bool,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        // At the end of the process there is none, and its connections end with it.
        let Ok(runtime) = Handle::try_current() else { return };
        let (token, tls) = (self.token.clone(), self.tls.clone());
        let cancel = async move {
            let cancelled = match tls {
                Some(tls) => token.cancel_query(tls).await,
                None => token.cancel_query(NoTls).await,
            };
            if let Err(error) = cancelled {
                tracing::warn!(error = chain(&error), "a statement could not be cancelled");
            }
        };
        self.tasks.spawn_on(cancel, &runtime);
    }
}

impl Postgres {
    pub(super) fn new(address: &str, may_write: bool) -> Option<Self> {
        let mut config = tls::parse(address)?;
        config.connect_timeout(CONNECT).application_name("duly sql");
        Some(Self { config, may_write, tasks: TaskTracker::new() })
    }

    pub(super) async fn run(&self, source: &str, query: Query) -> Result<Answer, SqlError> {
        let tls = tls::connector(&self.config).map_err(|error| unreachable(source, &error))?;
        let connected = self.connect(tls.clone()).await;
        let mut client = connected.map_err(|error| unreachable(source, &error))?;
        let token = client.cancel_token();
        let mut cancel = CancelOnDrop { token, tls, tasks: self.tasks.clone(), is_done: false };
        let answer = self.run_on(&mut client, &query).await;
        cancel.is_done = true;
        answer.map_err(|failed| match failed {
            Failed::Told(error) => error,
            Failed::Postgres(error) => judge(source, &error),
        })
    }

    async fn connect(&self, tls: Option<MakeRustlsConnect>) -> Result<Client, Error> {
        // The connection ends with its client.
        match tls {
            Some(tls) => {
                let (client, connection) = self.config.connect(tls).await?;
                self.tasks.spawn(async move { drop(connection.await) });
                Ok(client)
            }
            None => {
                let (client, connection) = self.config.connect(NoTls).await?;
                self.tasks.spawn(async move { drop(connection.await) });
                Ok(client)
            }
        }
    }

    async fn run_on(&self, client: &mut Client, query: &Query) -> Result<Answer, Failed> {
        let transaction = client.build_transaction().read_only(!self.may_write).start().await?;
        // After the first query of a transaction, nothing in the statement can make it write.
        let limit = (query.limit + SLACK).as_millis().to_string();
        let net = "SELECT set_config('statement_timeout', $1, true)";
        transaction.query_one(net, &[&limit]).await?;
        let statement = transaction.prepare(&query.statement).await?;
        let (expected, given) = (statement.params().len(), query.parameters.len());
        if expected != given {
            let why = format!("the statement has {expected} parameters, and {given} are given");
            return Err(SqlError::Statement(why).into());
        }
        let answer = if statement.columns().is_empty() {
            let changed = transaction.execute_raw(&statement, &query.parameters).await?;
            Answer { affected: Some(changed), ..Rows::new([], 0)?.end() }
        } else {
            let names = statement.columns().iter().map(|column| column.name());
            let rows = Rows::new(names, query.max_rows)?;
            for column in statement.columns() {
                value::check(column.name(), column.type_())?;
            }
            let portal = transaction.bind_raw(&statement, &query.parameters).await?;
            read(&transaction, &portal, rows).await?
        };
        transaction.commit().await?;
        Ok(answer)
    }
}

/// Reads rows in steps, so that what does not fit is not sent. A statement that changes rows has been run
/// to its end before it returns the first one.
async fn read(
    transaction: &Transaction<'_>,
    portal: &Portal,
    mut rows: Rows,
) -> Result<Answer, Failed> {
    loop {
        let found = transaction.query_portal(portal, STEP).await?;
        for row in &found {
            let mut texts = Vec::with_capacity(row.len());
            for index in 0..row.len() {
                let value: Option<value::Json> = row.try_get(index)?;
                texts.push(value.map_or_else(|| "null".to_owned(), |value| value.0));
            }
            if !rows.push(&texts) {
                return Ok(rows.end());
            }
        }
        if found.len() < usize::try_from(STEP).expect("a small number") {
            return Ok(rows.end());
        }
    }
}

/// Why a statement gave nothing: what is clear already, and what the driver says.
enum Failed {
    Told(SqlError),
    Postgres(Error),
}

impl From<SqlError> for Failed {
    fn from(error: SqlError) -> Self {
        Self::Told(error)
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Postgres(error)
    }
}

fn judge(source: &str, error: &Error) -> SqlError {
    let Some(told) = error.as_db_error() else {
        if error.is_closed() || !has_conversion(error) {
            return unreachable(source, error);
        }
        return SqlError::Type(chain(error));
    };
    let text = format!("{} (SQLSTATE {})", told.message(), told.code().code());
    // Connections, resources, conflicts with other transactions, and a server that stops.
    let may_pass = ["08", "40", "53", "55", "57", "58"];
    if may_pass.iter().any(|class| told.code().code().starts_with(class)) {
        SqlError::Unavailable(text)
    } else if *told.code() == SqlState::SYNTAX_ERROR && told.message().contains("multiple commands")
    {
        SqlError::Statement("there is more than one statement; give one".to_owned())
    } else {
        SqlError::Statement(text)
    }
}

/// Whether a value could not be read, which says so in its own words.
fn has_conversion(error: &Error) -> bool {
    std::error::Error::source(error).is_some_and(|cause| cause.is::<value::Unreadable>())
}

/// Parameters go as text, which the database reads as the type that it wants, without loss.
impl ToSql for Parameter {
    fn to_sql(
        &self,
        wanted: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        let text = match self.kind() {
            Kind::Null => return Ok(IsNull::Yes),
            _ if [Type::JSON, Type::JSONB].contains(wanted) => self.json().to_owned(),
            Kind::Text(text) if *wanted == Type::BYTEA => {
                let bytes = bytes(&text).ok_or_else(value::Unreadable::base64)?;
                let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
                format!("\\x{}", digits.collect::<String>())
            }
            Kind::Text(text) => text,
            Kind::Array(items) if matches!(wanted.kind(), TypeKind::Array(_)) => array(&items),
            Kind::Array(_) | Kind::Object | Kind::Number(_) | Kind::Bool(_) => {
                self.json().to_owned()
            }
        };
        out.extend_from_slice(text.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    to_sql_checked!();
}

/// An array in the notation of PostgreSQL.
fn array(items: &[Parameter]) -> String {
    let item = |item: &Parameter| match item.kind() {
        Kind::Null => "NULL".to_owned(),
        Kind::Text(text) => quoted(&text),
        Kind::Array(items) => array(&items),
        Kind::Object => quoted(item.json()),
        Kind::Number(_) | Kind::Bool(_) => item.json().to_owned(),
    };
    let items: Vec<String> = items.iter().map(item).collect();
    format!("{{{}}}", items.join(","))
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_quoted() {
        let items: Vec<Parameter> =
            serde_json::from_str(r#"[1, null, "a\"b\\c,}", [true], {"x":1}]"#).unwrap();
        assert_eq!(array(&items), r#"{1,NULL,"a\"b\\c,}",{true},"{\"x\":1}"}"#);
    }
}
