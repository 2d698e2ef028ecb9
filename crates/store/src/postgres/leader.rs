//! Leadership: one row, taken and renewed by conditional statements.

use std::time::Duration;

use async_trait::async_trait;
use deadpool_postgres::Client;
use duly_core::id::NodeId;
use duly_core::ports::store::{self, Leader, Leadership};
use tokio_postgres::Row;
use uuid::Uuid;

use super::PostgresStore;
use super::error::{Fault, Result};
use super::nodes::memory;
use super::row;
use super::wakes::Wakes;

/// What is led. The table has room for more, should there be something else for one node alone.
const ROLE: &str = "scheduler";

#[async_trait]
impl Leadership for PostgresStore {
    async fn lead(&self, node: NodeId, ttl: Duration) -> store::Result<Leader> {
        Ok(self.take_lead(node, ttl).await?)
    }

    async fn resign(&self, node: NodeId) -> store::Result<()> {
        let update = "/* leader.resign */ UPDATE duly.leader SET ends_at = 0
            WHERE role = $1 AND node = $2 AND ends_at > 0";
        let client = self.pool.get().await?;
        let node = Uuid::from_bytes(*node.as_bytes());
        client.execute(update, &[&ROLE, &node]).await.map_err(Fault::from)?;
        Ok(())
    }

    async fn leader(&self) -> store::Result<Option<Leader>> {
        let client = self.pool.get().await?;
        Ok(current(&client).await?)
    }
}

impl PostgresStore {
    /// A node that cannot lead now only reads, and writes nothing.
    async fn take_lead(&self, node: NodeId, ttl: Duration) -> Result<Leader> {
        let client = self.pool.get().await?;
        let id = Uuid::from_bytes(*node.as_bytes());
        let ttl = i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX / 2);
        loop {
            match current(&client).await? {
                Some(leader) if leader.node != node => return Ok(leader),
                _ => {}
            }
            let rows = client.query(TAKE, &[&ROLE, &id, &ttl, &memory()]).await?;
            if let Some(row) = rows.first() {
                if row.try_get::<_, Option<bool>>(3)?.unwrap_or(false) {
                    let mut wakes = Wakes::default();
                    wakes.tell();
                    self.wake(wakes);
                }
                return read(row);
            }
            // Another node was faster; the next read shows which.
        }
    }
}

/// Renews a lead that has not ended, or takes one that has, under the next term. Forgets nodes that
/// have been silent for long: in a cluster that no node joins, nothing else would. Tells of another term,
/// which is event 22, in the same statement: a leader renews its lead again and again.
const TAKE: &str = r#"/* leader.take */ WITH forgotten AS (
        DELETE FROM duly.node WHERE checked_at < duly.now() - $4
    ), taken AS (
        INSERT INTO duly.leader AS l (role, node, term, ends_at)
        VALUES ($1, $2, 1, duly.now() + $3)
        ON CONFLICT (role) DO UPDATE SET node = $2, ends_at = duly.now() + $3,
            term = CASE WHEN l.ends_at > duly.now() THEN l.term ELSE l.term + 1 END
        WHERE l.node = $2 OR l.ends_at <= duly.now()
        RETURNING node, term, ends_at
    )
    SELECT t.node, t.term, t.ends_at,
           CASE WHEN t.term IS DISTINCT FROM (SELECT term FROM duly.leader WHERE role = $1)
                     AND EXISTS (SELECT FROM duly.wanted_kinds WHERE kinds & (1 << 22) <> 0)
                THEN duly.tell(duly.now(), NULL, NULL, NULL, NULL, NULL, ARRAY[
                         format('[22,null,null,"%s",{"nodeId":"%s","term":%s}]', t.node, t.node, t.term)])
           END
    FROM taken t"#;

async fn current(client: &Client) -> Result<Option<Leader>> {
    let select = "/* leader.current */ SELECT node, term, ends_at FROM duly.leader
        WHERE role = $1 AND ends_at > duly.now()";
    client.query_opt(select, &[&ROLE]).await?.as_ref().map(read).transpose()
}

fn read(row: &Row) -> Result<Leader> {
    let (node, term): (Uuid, i64) = (row.try_get(0)?, row.try_get(1)?);
    Ok(Leader {
        node: NodeId::from_bytes(node.into_bytes()),
        term: term.unsigned_abs(),
        until: Some(row::instant(row.try_get(2)?)),
    })
}
