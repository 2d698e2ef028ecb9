//! Databases of the operator that tasks may query. A tenant sees the sources that name it; one statement
//! has a connection of its own, so that nothing of one task is left for the next.

mod parameter;
mod postgres;
mod rows;
mod sqlite;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use duly_core::name::TenantName;
use tokio::sync::Semaphore;

pub use self::parameter::Parameter;
use self::postgres::Postgres;
use self::sqlite::Sqlite;

/// Statements that one source runs at once on this node; further ones wait.
const AT_ONCE: usize = 8;

/// The sources of a node. A clone shares them.
#[derive(Clone, Debug, Default)]
pub struct Sources(Arc<BTreeMap<String, Source>>);

/// A database, and who may use it.
#[derive(Debug)]
pub struct Source {
    tenants: Vec<TenantName>,
    database: Database,
    slots: Arc<Semaphore>,
}

#[derive(Debug)]
enum Database {
    Postgres(Box<Postgres>),
    Sqlite(Sqlite),
}

/// Why the address of a source is none. It never shows the address, which may hold a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be postgres://USER:PASSWORD@HOST:PORT/DATABASE or sqlite:PATH")]
pub struct BadAddress;

/// A statement with its parameters.
#[derive(Clone, Debug)]
pub struct Query {
    /// One statement.
    pub statement: String,
    /// The values of its parameters.
    pub parameters: Vec<Parameter>,
    /// Further rows are left out.
    pub max_rows: usize,
    /// How long the database may work on it, should nobody be there to cancel it.
    pub limit: Duration,
}

/// What a statement gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// An array of objects as JSON text.
    pub rows: String,
    /// Whether rows were left out.
    pub is_truncated: bool,
    /// How many rows a statement without rows of its own has changed.
    pub affected: Option<u64>,
}

/// Why a statement gave nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SqlError {
    /// There is none of this name, or the tenant may not use it.
    #[error("there is no source `{0}` that this tenant may use")]
    NoSource(String),
    /// The database refuses it.
    #[error("{0}")]
    Statement(String),
    /// The database is not there, or too busy.
    #[error("{0}")]
    Unavailable(String),
    /// A value has no form in JSON.
    #[error("{0}")]
    Type(String),
}

impl Sources {
    /// These sources, by their names.
    pub fn new(sources: BTreeMap<String, Source>) -> Self {
        Self(Arc::new(sources))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Runs a statement of a tenant. When the future is dropped, the statement is cancelled.
    pub async fn run(
        &self,
        name: &str,
        tenant: &TenantName,
        query: Query,
    ) -> Result<Answer, SqlError> {
        let source = self.0.get(name).filter(|source| source.tenants.contains(tenant));
        let source = source.ok_or_else(|| SqlError::NoSource(name.to_owned()))?;
        let slot = Arc::clone(&source.slots).acquire_owned();
        let slot = slot.await.expect("the semaphore is never closed");
        match &source.database {
            Database::Postgres(database) => {
                let _slot = slot;
                Box::pin(database.run(name, query)).await
            }
            Database::Sqlite(database) => database.run(name, query, slot).await,
        }
    }
}

impl Source {
    /// The database at an address, for these tenants. It is opened when there is a statement to run.
    /// Unless it may write, statements only read.
    pub fn new(
        address: &str,
        tenants: Vec<TenantName>,
        may_write: bool,
    ) -> Result<Self, BadAddress> {
        let database = match address.strip_prefix("sqlite:") {
            Some("") => return Err(BadAddress),
            Some(path) => Database::Sqlite(Sqlite::new(PathBuf::from(path), may_write)),
            None => {
                Database::Postgres(Box::new(Postgres::new(address, may_write).ok_or(BadAddress)?))
            }
        };
        Ok(Self { tenants, database, slots: Arc::new(Semaphore::new(AT_ONCE)) })
    }
}

/// The error for a database that cannot be reached. Its address and its users are none of the task's
/// business, so the reason goes to the log of the node.
fn unreachable(source: &str, why: &dyn std::error::Error) -> SqlError {
    tracing::warn!(source, error = crate::error_chain::chain(why), "a source cannot be reached");
    SqlError::Unavailable(format!(
        "the source `{source}` cannot be reached; the node's log says why"
    ))
}
