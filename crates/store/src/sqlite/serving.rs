//! Which remote sessions could run tasks of a lane, by what the file holds.

use duly_core::id::SessionId;
use duly_core::limits::SERVING_ROWS;
use duly_core::name::Lane;
use rusqlite::{Connection, named_params};

use super::error::Result;

/// Names hold no character that JSON escapes, so one is in a list if it stands there in quotes. To
/// parse thousands of lists would take longer.
const SERVING: &str = "/* session.serving */ SELECT id FROM (
         SELECT id, ended_at, home, tenant, types, queues FROM session ORDER BY id DESC LIMIT :rows
     ) WHERE ended_at IS NULL AND home = 1
         AND (tenant IS NULL OR tenant = :tenant)
         AND instr(types, :type) > 0
         AND (queues = '[]' OR instr(queues, :queue) > 0)";

pub(super) fn serving(connection: &Connection, lane: &Lane) -> Result<Vec<SessionId>> {
    let mut statement = connection.prepare_cached(SERVING)?;
    let mut rows = statement.query(named_params! {
        ":rows": SERVING_ROWS,
        ":tenant": lane.tenant.as_str(),
        ":type": format!("\"{}\"", lane.task_type.as_str()),
        ":queue": format!("\"{}\"", lane.queue.as_str()),
    })?;
    let mut sessions = Vec::new();
    while let Some(row) = rows.next()? {
        match row.get(0) {
            Ok(id) => sessions.push(SessionId::from_bytes(id)),
            Err(error) => tracing::error!(%error, "a session cannot be read"),
        }
    }
    Ok(sessions)
}
