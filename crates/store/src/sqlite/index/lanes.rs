//! The dictionary of lanes.

use duly_core::limits::LANES;
use duly_core::name::{Lane, QueueName, TenantName, TypeName};
use foldhash::HashMap;
use rusqlite::Connection;

use crate::sqlite::error::{Fault, Result};

pub(in crate::sqlite) type LaneId = i64;

#[derive(Debug, Default)]
pub(in crate::sqlite) struct Lanes {
    by_name: HashMap<Lane, LaneId>,
    by_id: HashMap<LaneId, Lane>,
}

impl Lanes {
    pub(super) fn load(connection: &Connection) -> Result<Self> {
        let mut lanes = Self::default();
        let mut statement = connection.prepare("SELECT id, tenant, queue, type FROM lane")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let id: LaneId = row.get(0)?;
            let lane = lane_from(id, row.get_ref(1)?, row.get_ref(2)?, row.get_ref(3)?)?;
            lanes.remember(id, lane);
        }
        Ok(lanes)
    }

    pub(super) fn find(&self, lane: &Lane) -> Option<LaneId> {
        self.by_name.get(lane).copied()
    }

    pub(super) fn make(&mut self, connection: &Connection, lane: &Lane) -> Result<Option<LaneId>> {
        if self.by_name.len() >= LANES {
            return Ok(None);
        }
        connection
            .prepare_cached(
                "/* lane.make */ INSERT INTO lane (tenant, queue, type) VALUES (?, ?, ?)",
            )?
            .execute([lane.tenant.as_str(), lane.queue.as_str(), lane.task_type.as_str()])?;
        let id = connection.last_insert_rowid();
        self.remember(id, lane.clone());
        Ok(Some(id))
    }

    pub(in crate::sqlite) fn get(&self, id: LaneId) -> Result<&Lane> {
        let damaged = || Fault::Corrupt { table: "task", column: "lane", id: id.to_string() };
        self.by_id.get(&id).ok_or_else(damaged)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (LaneId, &Lane)> {
        self.by_id.iter().map(|(id, lane)| (*id, lane))
    }

    fn remember(&mut self, id: LaneId, lane: Lane) {
        self.by_name.insert(lane.clone(), id);
        self.by_id.insert(id, lane);
    }
}

/// A lane from its three columns; also used where a query joins them in.
pub(in crate::sqlite) fn lane_from(
    id: LaneId,
    tenant: rusqlite::types::ValueRef<'_>,
    queue: rusqlite::types::ValueRef<'_>,
    task_type: rusqlite::types::ValueRef<'_>,
) -> Result<Lane> {
    let damaged = |column| Fault::Corrupt { table: "lane", column, id: id.to_string() };
    let text = |value: rusqlite::types::ValueRef<'_>| value.as_str().unwrap_or_default().to_owned();
    Ok(Lane {
        tenant: TenantName::new(&text(tenant)).map_err(|_| damaged("tenant"))?,
        queue: QueueName::new(&text(queue)).map_err(|_| damaged("queue"))?,
        task_type: TypeName::new(&text(task_type)).map_err(|_| damaged("type"))?,
    })
}
