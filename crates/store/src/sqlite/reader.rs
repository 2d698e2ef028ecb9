//! Queries: a few connections beside the writer, each seeing the last commit.

use std::path::PathBuf;
use std::sync::Arc;

use duly_core::id::TaskId;
use duly_core::limits::PAGE_BYTES;
use duly_core::name::TenantName;
use duly_core::ports::store::{self, ListTasks, TaskList};
use duly_core::task::{Attempt, Task};
use duly_core::time::Timestamp;
use parking_lot::Mutex;
use rusqlite::{Connection, params};
use tokio::sync::Semaphore;

use super::error::{Fault, Result};
use super::open::{self, Side};
use super::row;

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
            readers.run(query)
        });
        match answer.await {
            Ok(answer) => Ok(answer?),
            Err(panic) => Err(store::Error::Backend { name: "sqlite", source: Box::new(panic) }),
        }
    }

    fn run<T>(&self, query: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let idle = self.idle.lock().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => open::side(&self.path, Side::Read)?,
        };
        // A connection that failed is dropped: the next query starts with a new one.
        let answer = query(&connection)?;
        self.idle.lock().push(connection);
        Ok(answer)
    }
}

pub(super) fn get(
    connection: &Connection,
    tenant: &TenantName,
    id: TaskId,
) -> Result<Option<Task>> {
    let (columns, tables) = (row::TASK_COLUMNS, row::TASK_TABLES);
    let mut statement = connection.prepare_cached(&format!(
        "/* task.get */ SELECT {columns} FROM {tables} WHERE task.id = ? AND lane.tenant = ?"
    ))?;
    let mut rows = statement.query(params![id.as_bytes(), tenant.as_str()])?;
    rows.next()?.map(row::task).transpose()
}

pub(super) fn list(connection: &Connection, page: &ListTasks) -> Result<TaskList> {
    let (columns, tables) = (row::TASK_COLUMNS, row::TASK_TABLES);
    let mut statement = connection.prepare_cached(&format!(
        "/* task.list */ SELECT {columns} FROM {tables}
         WHERE lane.tenant = ? AND task.id < ? ORDER BY task.id DESC LIMIT ?"
    ))?;
    // No id lies above all ones. A condition that allows for no bound would scan from the newest.
    let before = page.before.as_ref().map_or(&[0xff; 16], TaskId::as_bytes);
    // One more than asked for tells whether there is a next page.
    let most = page.limit as usize;
    let mut rows = statement.query(params![page.tenant.as_str(), before, most + 1])?;
    let (mut tasks, mut bytes, mut last) = (Vec::new(), 0, None);
    while let Some(row) = rows.next().map_err(Fault::from)? {
        if tasks.len() == most {
            return Ok(TaskList { tasks, next_before: last });
        }
        let id = TaskId::from_bytes(row.get(0)?);
        match row::task(row) {
            Ok(task) => {
                bytes += task.bytes();
                if bytes > PAGE_BYTES && !tasks.is_empty() {
                    return Ok(TaskList { tasks, next_before: last });
                }
                tasks.push(task);
            }
            // One damaged row must not hide the others.
            Err(fault) if fault.is_bad_row() => tracing::error!(%fault, "a task cannot be shown"),
            Err(fault) => return Err(fault),
        }
        last = Some(id);
    }
    Ok(TaskList { tasks, next_before: None })
}

pub(super) fn attempts(
    connection: &Connection,
    tenant: &TenantName,
    id: TaskId,
) -> Result<Option<Vec<Attempt>>> {
    let known = "/* attempts.task */ SELECT count(*) FROM task JOIN lane ON lane.id = task.lane
        WHERE task.id = ? AND lane.tenant = ?";
    let key = params![id.as_bytes(), tenant.as_str()];
    if connection.prepare_cached(known)?.query_row(key, |row| row.get::<_, i64>(0))? == 0 {
        return Ok(None);
    }
    let mut statement = connection.prepare_cached(
        "/* attempts */ SELECT run, attempt, epoch, started_at, attempt.ended_at, session.name, error, log
         FROM attempt LEFT JOIN session ON session.id = attempt.session
         WHERE task = ? ORDER BY epoch",
    )?;
    let mut rows = statement.query([id.as_bytes()])?;
    let mut attempts = Vec::new();
    while let Some(row) = rows.next()? {
        attempts.push(Attempt {
            run: row.get(0)?,
            attempt: row.get(1)?,
            epoch: row.get(2)?,
            started_at: Timestamp::clamped(row.get(3)?),
            ended_at: Timestamp::clamped(row.get(4)?),
            worker: row.get(5)?,
            error: row::decode_failure(row.get_ref(6)?, "attempt", id.as_bytes())?,
            log: row.get::<_, Option<String>>(7)?.map(Arc::from),
        });
    }
    Ok(Some(attempts))
}
