//! The dictionary of lanes.

use duly_core::limits::LANES;
use duly_core::name::{Lane, QueueName, TenantName, TypeName};
use duly_core::ports::store::Claim;
use foldhash::{HashMap, HashSet};
use rusqlite::{Connection, Row};

use crate::sqlite::error::{Fault, Result};

pub(in crate::sqlite) type LaneId = i64;

#[derive(Debug, Default)]
pub(in crate::sqlite) struct Lanes {
    by_name: HashMap<Lane, LaneId>,
    by_id: HashMap<LaneId, Lane>,
    /// Queues from which nothing is granted.
    paused: HashSet<(TenantName, QueueName)>,
    /// Tenants of which nothing is granted.
    suspended: HashSet<TenantName>,
}

impl Lanes {
    pub(super) fn load(connection: &Connection) -> Result<Self> {
        let mut lanes = Self::default();
        let mut statement = connection.prepare("SELECT id, tenant, queue, type FROM lane")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let id: LaneId = row.get(0)?;
            match lane_from(id, row.get_ref(1)?, row.get_ref(2)?, row.get_ref(3)?) {
                Ok(lane) => lanes.remember(id, lane),
                // Its tasks cannot run; those of the others can.
                Err(fault) if fault.is_bad_row() => {
                    tracing::error!(%fault, table = "lane", id, "a lane cannot be read");
                }
                Err(fault) => return Err(fault),
            }
        }
        (lanes.paused, lanes.suspended) = held_back(connection)?;
        Ok(lanes)
    }

    pub(super) fn find(&self, lane: &Lane) -> Option<LaneId> {
        self.by_name.get(lane).copied()
    }

    pub(super) fn has_room_for(&self, more: usize) -> bool {
        more == 0 || self.by_name.len() + more <= LANES
    }

    pub(super) fn make(&mut self, connection: &Connection, lane: &Lane) -> Result<Option<LaneId>> {
        if self.by_name.len() >= LANES {
            return Ok(None);
        }
        self.make_beyond_limit(connection, lane).map(Some)
    }

    pub(super) fn make_beyond_limit(
        &mut self,
        connection: &Connection,
        lane: &Lane,
    ) -> Result<LaneId> {
        connection
            .prepare_cached(
                "/* lane.make */ INSERT INTO lane (tenant, queue, type) VALUES (?, ?, ?)",
            )?
            .execute([lane.tenant.as_str(), lane.queue.as_str(), lane.task_type.as_str()])?;
        let id = connection.last_insert_rowid();
        self.remember(id, lane.clone());
        Ok(id)
    }

    pub(in crate::sqlite) fn get(&self, id: LaneId) -> Result<&Lane> {
        let damaged = || Fault::Corrupt { table: "task", column: "lane", id: id.to_string() };
        self.by_id.get(&id).ok_or_else(damaged)
    }

    /// Whether a claim may be granted tasks of this lane, provided that its session serves it.
    pub(in crate::sqlite) fn accepts(&self, claim: &Claim, lane: LaneId) -> bool {
        claim.only.is_none() || self.by_id.get(&lane).is_some_and(|lane| claim.accepts(lane))
    }

    /// Those from which something may be granted.
    pub(super) fn open(&self) -> impl Iterator<Item = (LaneId, &Lane)> {
        self.by_id.iter().map(|(id, lane)| (*id, lane)).filter(|(_, lane)| !self.is_paused(lane))
    }

    /// Whether its queue is paused or its tenant suspended.
    pub(super) fn is_paused(&self, lane: &Lane) -> bool {
        self.is_queue_paused(&lane.tenant, &lane.queue)
            || !self.suspended.is_empty() && self.suspended.contains(&lane.tenant)
    }

    pub(super) fn is_queue_paused(&self, tenant: &TenantName, queue: &QueueName) -> bool {
        !self.paused.is_empty() && self.paused.contains(&(tenant.clone(), queue.clone()))
    }

    /// How many queues are paused.
    pub(super) fn paused_queues(&self) -> usize {
        self.paused.len()
    }

    /// Whether nothing may be granted from this lane.
    pub(in crate::sqlite) fn is_held_back(&self, lane: LaneId) -> bool {
        let any = !self.paused.is_empty() || !self.suspended.is_empty();
        any && self.by_id.get(&lane).is_some_and(|lane| self.is_paused(lane))
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

    /// The lanes of one tenant.
    pub(super) fn of_tenant<'a>(
        &'a self,
        tenant: &'a TenantName,
    ) -> impl Iterator<Item = (LaneId, &'a Lane)> {
        let all = self.by_id.iter().map(|(id, lane)| (*id, lane));
        all.filter(move |(_, lane)| lane.tenant == *tenant)
    }

    /// Whether something may be granted of this tenant, from now on.
    pub(super) fn set_suspended(&mut self, tenant: &TenantName, suspended: bool) {
        if suspended {
            self.suspended.insert(tenant.clone());
        } else {
            self.suspended.remove(tenant);
        }
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

/// Queues that are paused, and tenants that are suspended: these have an empty queue.
type HeldBack = (HashSet<(TenantName, QueueName)>, HashSet<TenantName>);

fn held_back(connection: &Connection) -> Result<HeldBack> {
    let mut statement = connection.prepare("SELECT tenant, queue FROM pause")?;
    let mut rows = statement.query([])?;
    let (mut paused, mut suspended) = HeldBack::default();
    while let Some(row) = rows.next()? {
        match paused_queue(row) {
            Ok((tenant, None)) => drop(suspended.insert(tenant)),
            Ok((tenant, Some(queue))) => drop(paused.insert((tenant, queue))),
            // It is unknown what was meant; the others go on.
            Err(fault) if fault.is_bad_row() => tracing::error!(%fault, "a pause cannot be read"),
            Err(fault) => return Err(fault),
        }
    }
    Ok((paused, suspended))
}

/// The queue of a row; none if it is about all of the tenant's.
fn paused_queue(row: &Row<'_>) -> Result<(TenantName, Option<QueueName>)> {
    let (tenant, queue): (String, String) = (row.get(0)?, row.get(1)?);
    let damaged =
        |column| Fault::Corrupt { table: "pause", column, id: format!("{tenant}/{queue}") };
    let name = (!queue.is_empty()).then(|| QueueName::new(&queue)).transpose();
    let name = name.map_err(|_| damaged("queue"))?;
    Ok((TenantName::new(&tenant).map_err(|_| damaged("tenant"))?, name))
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
