//! The processes that have the database open.

use async_trait::async_trait;
use duly_core::id::NodeId;
use duly_core::limits::NODE_MEMORY;
use duly_core::node::Role;
use duly_core::ports::store::{self, JoinNode, NodeState, Nodes};
use tokio_postgres::Row;
use uuid::Uuid;

use super::PostgresStore;
use super::error::{Fault, Result};
use super::row;

#[async_trait]
impl Nodes for PostgresStore {
    fn node(&self) -> NodeId {
        NodeId::from_bytes(self.id.into_bytes())
    }

    async fn join(&self, node: JoinNode) -> store::Result<()> {
        let forget = "/* node.forget */ DELETE FROM duly.node WHERE checked_at < duly.now() - $1";
        let upsert = "/* node.join */ INSERT INTO duly.node
                (id, started_at, checked_at, name, roles, version, address)
            VALUES ($1, duly.now(), duly.now(), $2, $3, $4, $5)
            ON CONFLICT (id) DO UPDATE
            SET checked_at = duly.now(), name = $2, roles = $3, version = $4, address = $5";
        let client = self.pool.get().await?;
        client.execute(forget, &[&memory()]).await.map_err(Fault::from)?;
        let roles: Vec<_> = node.roles.iter().map(|role| role.as_str()).collect();
        client
            .execute(upsert, &[&self.id, &node.name, &roles, &node.version, &node.address])
            .await
            .map_err(Fault::from)?;
        Ok(())
    }

    async fn nodes(&self) -> store::Result<Vec<NodeState>> {
        let select =
            "/* node.list */ SELECT id, name, roles, version, address, started_at, checked_at
            FROM duly.node WHERE name IS NOT NULL ORDER BY started_at, id";
        let client = self.pool.get().await?;
        let rows = client.query(select, &[]).await.map_err(Fault::from)?;
        Ok(rows.iter().map(read).collect::<Result<_>>()?)
    }

    async fn leave(&self) -> store::Result<()> {
        let delete = "/* node.leave */ DELETE FROM duly.node WHERE id = $1";
        let client = self.pool.get().await?;
        client.execute(delete, &[&self.id]).await.map_err(Fault::from)?;
        Ok(())
    }
}

/// How long a silent node is remembered, in milliseconds.
pub(super) fn memory() -> i64 {
    i64::try_from(NODE_MEMORY.as_millis()).expect("a day in milliseconds")
}

fn read(row: &Row) -> Result<NodeState> {
    let id: Uuid = row.try_get(0)?;
    let roles: Vec<&str> = row.try_get(2)?;
    Ok(NodeState {
        id: NodeId::from_bytes(id.into_bytes()),
        joined: JoinNode {
            name: row.try_get(1)?,
            // A newer node may have roles that this one does not know.
            roles: roles.iter().filter_map(|role| role.parse::<Role>().ok()).collect(),
            version: row.try_get(3)?,
            address: row.try_get(4)?,
        },
        started_at: row::instant(row.try_get(5)?),
        beat_at: row::instant(row.try_get(6)?),
    })
}
