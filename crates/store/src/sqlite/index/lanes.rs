//! The dictionary of lanes.

use duly_core::limits::LANES;
use duly_core::name::{Lane, QueueName, TenantName, TypeName};
use foldhash::{HashMap, HashSet};
use rusqlite::Connection;

use crate::sqlite::error::{Fault, Result};

pub(in crate::sqlite) type LaneId = i64;

#[derive(Debug, Default)]
pub(in crate::sqlite) struct Lanes {
    by_name: HashMap<Lane, LaneId>,
    by_id: HashMap<LaneId, Lane>,
    /// Queues from which nothing is granted.
    paused: HashSet<(TenantName, QueueName)>,
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
        lanes.paused = paused(connection)?;
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

    /// Those from which something may be granted.
    pub(super) fn open(&self) -> impl Iterator<Item = (LaneId, &Lane)> {
        self.by_id.iter().map(|(id, lane)| (*id, lane)).filter(|(_, lane)| !self.is_paused(lane))
    }

    pub(super) fn is_paused(&self, lane: &Lane) -> bool {
        !self.paused.is_empty() && self.paused.contains(&(lane.tenant.clone(), lane.queue.clone()))
    }

    /// The lanes of one queue.
    pub(super) fn of_queue<'a>(
        &'a self,
        tenant: &'a TenantName,
        queue: &'a QueueName,
    ) -> impl Iterator<Item = (LaneId, &'a Lane)> {
        let inside = move |lane: &Lane| lane.tenant == *tenant && lane.queue == *queue;
        self.by_id.iter().filter(move |(_, lane)| inside(lane)).map(|(id, lane)| (*id, lane))
    }

    /// Whether something may be granted from this queue, from now on.
    pub(super) fn set_paused(&mut self, tenant: &TenantName, queue: &QueueName, paused: bool) {
        let key = (tenant.clone(), queue.clone());
        if paused {
            self.paused.insert(key);
        } else {
            self.paused.remove(&key);
        }
    }

    fn remember(&mut self, id: LaneId, lane: Lane) {
        self.by_name.insert(lane.clone(), id);
        self.by_id.insert(id, lane);
    }
}

fn paused(connection: &Connection) -> Result<HashSet<(TenantName, QueueName)>> {
    let mut statement = connection.prepare("SELECT tenant, queue FROM pause")?;
    let mut rows = statement.query([])?;
    let mut paused = HashSet::default();
    while let Some(row) = rows.next()? {
        let (tenant, queue): (String, String) = (row.get(0)?, row.get(1)?);
        let damaged = |column| Fault::Corrupt { table: "pause", column, id: tenant.clone() };
        let queue = QueueName::new(&queue).map_err(|_| damaged("queue"))?;
        paused.insert((TenantName::new(&tenant).map_err(|_| damaged("tenant"))?, queue));
    }
    Ok(paused)
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
