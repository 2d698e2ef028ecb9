//! Queries: a few connections beside the writer, each seeing the last commit.

use std::path::PathBuf;
use std::sync::Arc;

use duly_core::id::TaskId;
use duly_core::limits::ATTEMPTS;
use duly_core::name::TenantName;
use duly_core::ports::store;
use duly_core::task::{Attempt, Task};
use duly_core::time::Timestamp;
use parking_lot::Mutex;
use rusqlite::{Connection, params};
use tokio::sync::Semaphore;

use super::error::Result;
use super::open::{self, Side};
use super::{filter, links, reports, row};

/// Queries that run at once; more would only fight for the same cores.
const CONNECTIONS: usize = 3;

#[derive(Debug)]
pub(super) struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
    permits: Arc<Semaphore>,
}

impl Readers {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, idle: Mutex::new(Vec::new()), permits: Arc::new(Semaphore::new(CONNECTIONS)) }
    }

    /// Runs a query on a thread that may block.
    pub(super) async fn query<T: Send + 'static>(
        self: &Arc<Self>,
        query: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> store::Result<T> {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let permit = permit.expect("the semaphore is never closed");
        let readers = Arc::clone(self);
        let answer = tokio::task::spawn_blocking(move || {
            // Held by the query itself: its caller may go away while it runs.
            let _permit = permit;
            readers.run(query).map_err(|fault| fault.check_disk(&readers.path))
        });
        match answer.await {
            Ok(answer) => Ok(answer?),
            Err(panic) => Err(store::Error::Backend { name: "sqlite", source: Box::new(panic) }),
        }
    }

    fn connect(&self) -> Result<Connection> {
        let connection = open::side(&self.path, Side::Read)?;
        filter::register_functions(&connection)?;
        Ok(connection)
    }

    fn run<T>(&self, query: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let idle = self.idle.lock().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.connect()?,
        };
        // A connection that failed is dropped: the next query starts with a new one.
        let answer = query(&connection)?;
        self.idle.lock().push(connection);
        Ok(answer)
    }
}

/// One task of a tenant.
pub(super) fn one() -> String {
    let (columns, tables) = (row::TASK_COLUMNS, row::TASK_TABLES);
    format!("/* task.get */ SELECT {columns} FROM {tables} WHERE task.id = ? AND lane.tenant = ?")
}

pub(super) fn get(
    connection: &Connection,
    tenant: &TenantName,
    id: TaskId,
) -> Result<Option<Task>> {
    let mut statement = connection.prepare_cached(&one())?;
    let mut rows = statement.query(params![id.as_bytes(), tenant.as_str()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let mut task = row::task(row)?;
    links::fill(connection, &mut task)?;
    Ok(Some(task))
}

pub(super) fn attempts(
    connection: &Connection,
    tenant: &TenantName,
    id: TaskId,
) -> Result<Option<Vec<Attempt>>> {
    let snapshot = connection.unchecked_transaction()?;
    let connection = &*snapshot;
    let Some(task) = get(connection, tenant, id)? else { return Ok(None) };
    let mut statement = connection.prepare_cached(
        "/* attempts */ SELECT run, attempt, epoch, started_at, attempt.ended_at, session.name, error
         FROM attempt LEFT JOIN session ON session.id = attempt.session
         WHERE task = ? ORDER BY epoch",
    )?;
    let mut rows = statement.query([id.as_bytes()])?;
    let mut attempts = Vec::new();
    while let Some(row) = rows.next()? {
        let epoch = row.get(2)?;
        attempts.push(Attempt {
            run: row.get(0)?,
            attempt: row.get(1)?,
            epoch,
            started_at: Timestamp::clamped(row.get(3)?),
            ended_at: Timestamp::clamped(row.get(4)?),
            worker: row.get(5)?,
            error: row::decode_attempt(row.get_ref(6)?, id.as_bytes())?,
            log: reports::excerpt(connection, id, epoch)?,
        });
    }
    if let Some(success) = task.success() {
        let log = reports::excerpt(connection, id, success.epoch)?;
        attempts.push(Attempt { log, ..success });
    }
    attempts.drain(..attempts.len().saturating_sub(ATTEMPTS));
    Ok(Some(attempts))
}
