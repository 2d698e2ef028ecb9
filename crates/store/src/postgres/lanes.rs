//! The dictionary of lanes, as far as this node has met them. Lanes are made and never change, so
//! what is known stays true. Applications make lanes too, in transactions that may take long, so
//! that numbers do not become visible in their order: new lanes are found by their transactions.

use std::sync::Arc;

use deadpool_postgres::GenericClient;
use duly_core::limits::LANES;
use duly_core::name::Lane;
use foldhash::HashMap;
use parking_lot::RwLock;

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
    /// In the order in which this node has met them.
    met: Vec<(LaneId, Arc<Lane>)>,
    /// All lanes of transactions before this one are known.
    before: Option<String>,
}

/// Held by nodes that make lanes, until the commit: they count them.
const LOCK: i64 = 0x6475_6c79_0000_0002;

impl Lanes {
    /// Reads lanes that others have made since.
    pub(super) async fn load(&self, client: &impl GenericClient) -> Result<()> {
        let before = self.known.read().before.clone().unwrap_or_else(|| "0".to_owned());
        let select = "/* lane.load */ SELECT lane.id, tenant, queue, type,
                pg_snapshot_xmin(pg_current_snapshot())::text
            FROM (SELECT) once LEFT JOIN duly.lane ON lane.made_in >= $1::text::xid8
            ORDER BY lane.id";
        let rows = client.query(select, &[&before]).await?;
        for row in &rows {
            if let Some(id) = row.try_get(0)? {
                self.remember(id, row::lane(row, 1)?);
            }
        }
        self.known.write().before = rows.first().map(|row| row.try_get(4)).transpose()?;
        Ok(())
    }

    pub(super) fn find(&self, lane: &Lane) -> Option<LaneId> {
        self.known.read().by_name.get(lane).copied()
    }

    pub(super) fn get(&self, id: LaneId) -> Option<Arc<Lane>> {
        self.known.read().by_id.get(&id).cloned()
    }

    /// All but the first so many, in the order in which this node has met them.
    pub(super) fn after(&self, first: usize) -> Vec<(LaneId, Arc<Lane>)> {
        self.known.read().met.get(first..).unwrap_or_default().to_vec()
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

    /// Keeps others from making lanes until the end of the transaction, and knows all there are from
    /// then on. Answers how many more there may be.
    pub(super) async fn hold(&self, transaction: &impl GenericClient) -> Result<usize> {
        transaction.execute("/* lane.hold */ SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
        self.load(transaction).await?;
        Ok(LANES.saturating_sub(self.known.read().by_id.len()))
    }

    /// Makes lanes in a transaction that holds them; they are to be remembered after its commit.
    pub(super) async fn make(
        &self,
        transaction: &impl GenericClient,
        new: &[&Lane],
    ) -> Result<Vec<(Lane, LaneId)>> {
        let names = |name: fn(&Lane) -> &str| new.iter().map(|it| name(it)).collect::<Vec<_>>();
        let insert = "/* lane.make */ INSERT INTO duly.lane (tenant, queue, type)
            SELECT * FROM unnest($1::text[], $2::text[], $3::text[])
            ON CONFLICT (tenant, queue, type) DO UPDATE SET type = excluded.type
            RETURNING id, tenant, queue, type";
        let tenants = names(|lane| lane.tenant.as_str());
        let queues = names(|lane| lane.queue.as_str());
        let types = names(|lane| lane.task_type.as_str());
        let made = transaction.query(insert, &[&tenants, &queues, &types]).await?;
        made.iter().map(|row| Ok((row::lane(row, 1)?, row.try_get(0)?))).collect()
    }

    /// Keeps a lane that is committed.
    pub(super) fn remember(&self, id: LaneId, lane: Lane) {
        let mut known = self.known.write();
        if known.by_id.contains_key(&id) {
            return;
        }
        let shared = Arc::new(lane.clone());
        known.met.push((id, Arc::clone(&shared)));
        known.by_id.insert(id, shared);
        known.by_name.insert(lane, id);
    }
}
