//! The sessions of other processes that could run tasks of a lane.

use duly_core::id::SessionId;
use duly_core::limits::SERVING_ROWS;
use duly_core::name::Lane;
use tokio_postgres::types::ToSql;

use super::error::Result;
use super::{PostgresStore, row};

/// Of those that are open, the newest.
const SERVING: &str = "/* session.serving */ SELECT id FROM (
        SELECT id, node, tenant, types, queues FROM duly.session WHERE ended_at IS NULL
        ORDER BY id DESC LIMIT $5) newest
    WHERE node IS DISTINCT FROM $1 AND (tenant IS NULL OR tenant = $2) AND $3 = ANY(types)
      AND (queues = '{}' OR $4 = ANY(queues))";

/// Which open sessions of other processes serve a lane.
pub(super) async fn serving(store: &PostgresStore, lane: &Lane) -> Result<Vec<SessionId>> {
    let mut client = store.pool.get().await?;
    let snapshot = store.pool.snapshot(&mut client, &lane.tenant).await?;
    let (tenant, queue) = (lane.tenant.as_str(), lane.queue.as_str());
    let (task_type, rows) = (lane.task_type.as_str(), i64::from(SERVING_ROWS));
    let asked: [&(dyn ToSql + Sync); 5] = [&store.id, &tenant, &task_type, &queue, &rows];
    let rows = snapshot.query(SERVING, &asked).await?;
    rows.iter().map(|row| Ok(row::session_id(row.try_get(0)?))).collect()
}
