//! What this node knows of the shared store, and how it learns.

use std::sync::Arc;

use duly_core::id::SessionId;
use duly_core::name::{QueueName, TenantName};
use uuid::Uuid;

use super::PostgresStore;
use super::error::Result;
use super::heads;
use super::pool::Pool;
use super::range::LaneId;
use super::sessions::Session;
use super::wakes::Wakes;

/// A look begins so much earlier than the store's time, should commits become visible late.
const LATE_MS: i64 = 200;

impl PostgresStore {
    /// About what time it is at the server.
    pub(super) fn estimate(&self) -> i64 {
        self.pool.clock().map_or_else(|| self.clock.now(), |clock| clock.now().millis())
    }

    /// Since when something may be due in a range that is believed to be empty.
    pub(super) fn probed_since(&self, now: i64) -> i64 {
        now - LATE_MS
    }

    /// Tells of lanes whether a session may be granted something from them.
    pub(super) fn claimable(&self, session: &Session) -> impl Fn(LaneId) -> bool {
        let serves = session.serves(&self.lanes);
        let paused = !self.pauses.is_empty();
        let is_paused = |lane| self.lanes.get(lane).is_some_and(|it| self.pauses.is_paused(&it));
        move |lane| serves(lane) && !(paused && is_paused(lane))
    }

    /// A session; nothing if it is not open.
    pub(super) async fn session(&self, id: SessionId) -> Result<Option<Arc<Session>>> {
        if let Some(session) = self.sessions.get(id) {
            return Ok(Some(session));
        }
        let client = self.pool.get().await?;
        self.sessions.fetch(&client, id).await
    }

    /// A queue is paused, or is not any more, since a commit.
    pub(super) fn paused_changed(&self, tenant: &TenantName, queue: &QueueName, paused: bool) {
        self.pauses.set(tenant, queue, paused);
    }

    /// Makes what a committed transaction has changed known, here and to whoever waits.
    pub(super) fn wake(&self, mut wakes: Wakes) {
        for (lane, id) in wakes.take_lanes() {
            self.lanes.remember(id, lane);
        }
        for (range, at) in wakes.unseen() {
            self.heads.add(range, at);
        }
        let name = |id| {
            let lane = self.lanes.get(id)?;
            (!self.pauses.is_paused(&lane)).then(|| (*lane).clone())
        };
        if let Some(hint) = wakes.hint(name) {
            self.hints.send(hint);
        }
    }

    /// Reads the lanes and where everything starts, from the beginning.
    pub(super) async fn look_around(&self) -> Result<()> {
        let client = self.pool.get().await?;
        self.lanes.load(&client).await?;
        let moment = self.heads.moment();
        self.heads.learn_all(moment, &heads::list(&client).await?);
        Ok(())
    }
}

/// Makes this process known as a node. Answers its name and the server's time.
pub(super) async fn join(pool: &Pool) -> Result<(Uuid, i64)> {
    let client = pool.get().await?;
    let insert = "/* node.join */ INSERT INTO duly.node (started_at, checked_at)
        VALUES (duly.now(), duly.now()) RETURNING id, started_at";
    let row = client.query_one(insert, &[]).await?;
    Ok((row.try_get(0)?, row.try_get(1)?))
}
