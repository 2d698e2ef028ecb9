//! What the writer keeps in memory: lanes, the head of every due range, sessions, live leases and
//! the settings. All of it except the sessions' selectors is derived from the file and is read again
//! whenever a transaction is rolled back, so a wrong belief cannot outlive a fault.

pub(super) mod grants;
pub(super) mod heads;
pub(super) mod lanes;
pub(super) mod sessions;
pub(super) mod sinks;

use duly_core::id::SessionId;
use duly_core::limits::PAUSED_QUEUES;
use duly_core::name::{Lane, QueueName, TenantName};
use duly_core::settings::Settings;
use duly_core::time::Timestamp;
use foldhash::HashSet;
use rusqlite::Connection;

use self::grants::Grants;
use self::heads::Heads;
use self::lanes::{LaneId, Lanes};
use self::sessions::Sessions;
use self::sinks::Sinks;
use super::error::Result;
use super::settings;

#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) lanes: Lanes,
    pub(super) heads: Heads,
    pub(super) sessions: Sessions,
    pub(super) grants: Grants,
    pub(super) sinks: Sinks,
    /// The newest.
    pub(super) settings: Settings,
}

impl Index {
    /// Of a store that is being opened; nothing is known yet.
    pub(super) fn opened_at(now: Timestamp) -> Self {
        Self { grants: Grants::opened_at(now.millis()), ..Self::default() }
    }

    /// Reads everything from the file; sessions stay known.
    pub(super) fn load(&mut self, connection: &Connection, now: Timestamp) -> Result<()> {
        self.lanes = Lanes::load(connection)?;
        self.heads = Heads::load(connection)?;
        let (grants, quarantining) = Grants::load(&self.grants, connection)?;
        self.grants = grants;
        self.sessions.load(connection, now)?;
        self.sessions.recall_claims(&self.grants, &quarantining);
        self.sessions.match_lanes(&self.lanes);
        self.sinks = Sinks::load(connection)?;
        self.settings = match settings::newest(connection) {
            Ok(newest) => newest.settings,
            // They can be set again; until then tasks go on.
            Err(fault) if fault.is_bad_row() => {
                tracing::error!(%fault, "the settings cannot be read; the defaults hold");
                Settings::default()
            }
            Err(fault) => return Err(fault),
        };
        Ok(())
    }

    /// Reads again what sinks want.
    pub(super) fn reload_sinks(&mut self, connection: &Connection) -> Result<()> {
        self.sinks = Sinks::load(connection)?;
        Ok(())
    }

    /// Whether a session may not even know of tasks in this lane.
    pub(super) fn is_foreign(&self, session: SessionId, lane: LaneId) -> Result<bool> {
        let tenant = self.sessions.get(session).and_then(|session| session.tenant());
        let owner = &self.lanes.get(lane)?.tenant;
        Ok(tenant.is_some_and(|tenant| tenant != owner))
    }

    pub(super) fn has_lane(&self, lane: &Lane) -> bool {
        self.lanes.find(lane).is_some()
    }

    /// The lane's number, made if there is room for one more.
    pub(super) fn lane(&mut self, connection: &Connection, lane: &Lane) -> Result<Option<LaneId>> {
        if let Some(id) = self.lanes.find(lane) {
            return Ok(Some(id));
        }
        let made = self.lanes.make(connection, lane)?;
        if let Some(id) = made
            && !self.lanes.is_paused(lane)
        {
            self.sessions.add_lane(id, lane);
        }
        Ok(made)
    }

    /// Whether so many more lanes may be made.
    pub(super) fn has_room_for_lanes(&self, more: usize) -> bool {
        self.lanes.has_room_for(more)
    }

    /// The lane's number, made even if there are as many as may be: the tasks of a committed outcome are
    /// not refused.
    pub(super) fn lane_beyond_limit(
        &mut self,
        connection: &Connection,
        lane: &Lane,
    ) -> Result<LaneId> {
        if let Some(id) = self.lane(connection, lane)? {
            return Ok(id);
        }
        let id = self.lanes.make_beyond_limit(connection, lane)?;
        if !self.lanes.is_paused(lane) {
            self.sessions.add_lane(id, lane);
        }
        Ok(id)
    }

    /// From now on nothing is granted from this queue.
    pub(super) fn pause(&mut self, tenant: &TenantName, queue: &QueueName) {
        self.lanes.set_paused(tenant, queue, true);
        for (id, _) in self.lanes.of_queue(tenant, queue) {
            self.sessions.remove_lane(id);
        }
    }

    /// From now on tasks are granted from this queue again. Tells when the first of them is due.
    pub(super) fn resume(&mut self, tenant: &TenantName, queue: &QueueName) -> Option<i64> {
        self.lanes.set_paused(tenant, queue, false);
        let lanes: HashSet<_> = self
            .lanes
            .of_queue(tenant, queue)
            .filter(|(_, lane)| !self.lanes.is_paused(lane))
            .inspect(|(id, lane)| self.sessions.add_lane(*id, lane))
            .map(|(id, _)| id)
            .collect();
        self.heads.next(|_, range| lanes.contains(&range.lane))
    }

    /// From now on nothing of this tenant is granted.
    pub(super) fn suspend(&mut self, tenant: &TenantName) {
        self.lanes.set_suspended(tenant, true);
        for (id, _) in self.lanes.of_tenant(tenant) {
            self.sessions.remove_lane(id);
        }
    }

    /// From now on tasks of this tenant are granted again, except those of paused queues. Tells when the
    /// first of them is due.
    pub(super) fn unsuspend(&mut self, tenant: &TenantName) -> Option<i64> {
        self.lanes.set_suspended(tenant, false);
        let lanes: HashSet<_> = self
            .lanes
            .of_tenant(tenant)
            .filter(|(_, lane)| !self.lanes.is_paused(lane))
            .inspect(|(id, lane)| self.sessions.add_lane(*id, lane))
            .map(|(id, _)| id)
            .collect();
        self.heads.next(|_, range| lanes.contains(&range.lane))
    }

    /// Whether a task was ever submitted to this queue, or it is paused.
    pub(super) fn has_queue(&self, tenant: &TenantName, queue: &QueueName) -> bool {
        self.lanes.is_queue_paused(tenant, queue)
            || self.lanes.of_queue(tenant, queue).next().is_some()
    }

    /// Whether this queue may be paused: the number of those that nothing else knows is bounded.
    pub(super) fn may_pause(&self, tenant: &TenantName, queue: &QueueName) -> bool {
        self.has_queue(tenant, queue) || self.lanes.paused_queues() < PAUSED_QUEUES as usize
    }
}
