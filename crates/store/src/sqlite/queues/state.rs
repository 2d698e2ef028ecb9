//! What is in one queue.

use duly_core::name::{QueueName, TenantName};
use duly_core::ports::store::QueueState;
use duly_core::time::Timestamp;
use rusqlite::{Connection, params};

use super::count::{Count, ranges};
use super::running::Running;
use super::{Lanes, paused};
use crate::sqlite::error::Result;

/// What queues are seen by.
pub(super) struct View<'a> {
    pub(super) connection: &'a Connection,
    pub(super) running: &'a Running,
    pub(super) count_to: u32,
    pub(super) now: Timestamp,
}

impl View<'_> {
    pub(super) fn queue(
        &self,
        tenant: &TenantName,
        queue: QueueName,
        lanes: &Lanes,
    ) -> Result<QueueState> {
        let connection = self.connection;
        let (mut waiting, mut due, mut dead) =
            (Count::to(self.count_to), Count::to(self.count_to), Count::to(self.count_to));
        let mut oldest_due: Option<i64> = None;
        for lane in &lanes.ids {
            dead.add(connection, "dlq INDEXED BY dlq_group WHERE lane = ?", params![lane])?;
            if !waiting.add(connection, "due WHERE lane = ?", params![lane])? {
                continue;
            }
            for (range, head) in ranges(connection, *lane)? {
                if head <= self.now.millis() {
                    oldest_due = Some(oldest_due.map_or(head, |oldest| oldest.min(head)));
                    let until = params![range.lane, range.rank, self.now.millis()];
                    due.add(connection, "due WHERE lane = ? AND rank = ? AND run_at <= ?", until)?;
                }
            }
        }
        Ok(QueueState {
            paused: paused(connection, tenant, &queue)?,
            running: self.running.of(&queue, self.count_to),
            queue,
            waiting: waiting.counted(lanes.more),
            due: due.counted(lanes.more),
            dead: dead.counted(lanes.more),
            oldest_due: oldest_due.map(Timestamp::clamped),
        })
    }
}
