//! The processes that have the database open.

use async_trait::async_trait;
use duly_core::event::Event;
use duly_core::id::NodeId;
use duly_core::limits::NODE_MEMORY;
use duly_core::node::Role;
use duly_core::ports::store::{self, JoinNode, NodeState, Nodes};
use tokio_postgres::Row;
use uuid::Uuid;

use super::PostgresStore;
use super::error::{Fault, Result};
use super::row;
use super::verb::{Scope, Verb};

#[async_trait]
impl Nodes for PostgresStore {
    fn node(&self) -> NodeId {
        node_id(self.id)
    }

    async fn join(&self, node: JoinNode) -> store::Result<()> {
        Ok(self.run(&node).await?)
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
        Ok(self.run(&Leave).await?)
    }
}

impl Verb for JoinNode {
    type Answer = ();

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<()> {
        let forget = "/* node.forget */ DELETE FROM duly.node WHERE checked_at < $1";
        scope.execute(forget, &[&(scope.now.millis() - memory())]).await?;
        // It has a row without a name since it has opened the store.
        let select = "/* node.known */ SELECT FROM duly.node WHERE id = $1 AND name IS NOT NULL";
        let id = scope.store.id;
        if scope.query(select, &[&id]).await?.is_empty() {
            scope.told.emit(&Event::node_joined(node_id(id), &self.name, scope.now));
        }
        let upsert = "/* node.join */ INSERT INTO duly.node
                (id, started_at, checked_at, name, roles, version, address)
            VALUES ($1, $6, $6, $2, $3, $4, $5)
            ON CONFLICT (id) DO UPDATE
            SET checked_at = $6, name = $2, roles = $3, version = $4, address = $5";
        let roles: Vec<_> = self.roles.iter().map(|role| role.as_str()).collect();
        let now = scope.now.millis();
        scope
            .execute(upsert, &[&id, &self.name, &roles, &self.version, &self.address, &now])
            .await?;
        Ok(())
    }
}

struct Leave;

impl Verb for Leave {
    type Answer = ();

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<()> {
        let delete = "/* node.leave */ DELETE FROM duly.node WHERE id = $1 RETURNING name";
        let id = scope.store.id;
        for row in scope.query(delete, &[&id]).await? {
            if let Some(name) = row.try_get(0)? {
                scope.told.emit(&Event::node_left(node_id(id), name, scope.now));
            }
        }
        Ok(())
    }
}

fn node_id(id: Uuid) -> NodeId {
    NodeId::from_bytes(id.into_bytes())
}

/// How long a silent node is remembered, in milliseconds.
pub(super) fn memory() -> i64 {
    i64::try_from(NODE_MEMORY.as_millis()).expect("a day in milliseconds")
}

fn read(row: &Row) -> Result<NodeState> {
    let id: Uuid = row.try_get(0)?;
    let roles: Vec<&str> = row.try_get(2)?;
    Ok(NodeState {
        id: node_id(id),
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
