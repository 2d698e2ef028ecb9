//! The dictionary of lanes, as far as this node has met them. Lanes are made and never change, so
//! what is known stays true.

use std::sync::Arc;

use duly_core::name::Lane;
use foldhash::HashMap;
use parking_lot::RwLock;
use tokio_postgres::GenericClient;

use super::error::{Fault, Result};
use super::range::LaneId;
use super::row;

#[derive(Debug, Default)]
pub(super) struct Lanes {
    known: RwLock<Known>,
}

#[derive(Debug, Default)]
struct Known {
    by_name: HashMap<Lane, LaneId>,
    by_id: HashMap<LaneId, Arc<Lane>>,
}

impl Lanes {
    /// Reads lanes that others have made since.
    pub(super) async fn load(&self, client: &impl GenericClient) -> Result<()> {
        // Not only those above the highest known: numbers do not become visible in their order.
        let known: Vec<LaneId> = self.known.read().by_id.keys().copied().collect();
        let select = "/* lane.load */ SELECT id, tenant, queue, type FROM duly.lane
            WHERE NOT id = ANY($1)";
        for row in client.query(select, &[&known]).await? {
            self.remember(row.try_get(0)?, row::lane(&row, 1)?);
        }
        Ok(())
    }

    pub(super) fn find(&self, lane: &Lane) -> Option<LaneId> {
        self.known.read().by_name.get(lane).copied()
    }

    pub(super) fn get(&self, id: LaneId) -> Option<Arc<Lane>> {
        self.known.read().by_id.get(&id).cloned()
    }

    /// How many there are, as far as is known.
    pub(super) fn len(&self) -> usize {
        self.known.read().by_id.len()
    }

    /// A lane by its number, asking for it if it is new here.
    pub(super) async fn fetch(&self, client: &impl GenericClient, id: LaneId) -> Result<Arc<Lane>> {
        if let Some(lane) = self.get(id) {
            return Ok(lane);
        }
        self.load(client).await?;
        let unknown = || Fault::Corrupt { table: "task", column: "lane", id: id.to_string() };
        self.get(id).ok_or_else(unknown)
    }

    /// Keeps a lane that is committed.
    pub(super) fn remember(&self, id: LaneId, lane: Lane) {
        let mut known = self.known.write();
        known.by_id.insert(id, Arc::new(lane.clone()));
        known.by_name.insert(lane, id);
    }
}
