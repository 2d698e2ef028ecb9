//! Leases as an exchange answers with them.

use deadpool_postgres::GenericClient;
use duly_core::lease::Lease;
use duly_core::limits::{DEADLINE_SLACK, DEFAULT_TIMEOUT};
use duly_core::name::{QueueName, TenantName};
use tokio_postgres::Row;
use uuid::Uuid;

use super::error::{Fault, Result};
use super::lanes::Lanes;
use super::range::{LaneId, Range};
use super::row;
use super::task_state::linked::{HAS_PARENTS, ONE_CHILD, RENDERS};

/// How long a handler may run when its task does not say, in milliseconds.
pub(super) fn default_timeout() -> i32 {
    row::encode_duration(Some(DEFAULT_TIMEOUT)).unwrap_or_default()
}

/// What a lease has beyond that.
pub(super) fn slack() -> i32 {
    row::encode_duration(Some(DEADLINE_SLACK)).unwrap_or_default()
}

/// Reads leases, which stand in one row, column by column.
pub(super) async fn read(
    lanes: &Lanes,
    client: &impl GenericClient,
    found: &Row,
) -> Result<Vec<Lease>> {
    let Some(tasks) = found.try_get::<_, Option<Vec<Uuid>>>("tasks")? else {
        return Ok(Vec::new());
    };
    let (epochs, runs): (Vec<i32>, Vec<i32>) = (found.try_get("epochs")?, found.try_get("runs")?);
    let charges: Vec<i32> = found.try_get("charges")?;
    let retries: Vec<i32> = found.try_get("retries")?;
    let timeouts: Vec<Option<i32>> = found.try_get("timeouts")?;
    let lane_ids: Vec<LaneId> = found.try_get("lanes")?;
    let run_ats: Vec<i64> = found.try_get("run_ats")?;
    let granted_ats: Vec<i64> = found.try_get("granted_ats")?;
    let payloads: Vec<&str> = found.try_get("payloads")?;
    let links: Vec<Option<i32>> = found.try_get("links")?;
    let mut leases = Vec::with_capacity(tasks.len());
    for (number, id) in tasks.into_iter().enumerate() {
        let count = |column, values: &[i32]| row::count("task", column, id, values[number]);
        leases.push(Lease {
            task: row::task_id(id),
            epoch: count("epoch", &epochs)?,
            run: count("run", &runs)?,
            attempt: count("charged", &charges)? + 1,
            retries: count("retries", &retries)?,
            lane: (*lanes.fetch(client, lane_ids[number]).await?).clone(),
            timeout: row::decode_duration(timeouts[number]),
            granted_at: row::instant(granted_ats[number]),
            run_at: row::instant(run_ats[number]),
            payload: payloads[number].into(),
            has_parents: links[number].is_some_and(|bits| bits & HAS_PARENTS != 0),
            has_children: links[number].is_some_and(|bits| bits >= ONE_CHILD),
            renders: links[number].is_some_and(|bits| bits & RENDERS != 0),
            parents: None,
        });
    }
    Ok(leases)
}

/// Reads where tasks wait that were released.
pub(super) fn freed(found: &Row) -> Result<Vec<(Range, i64)>> {
    let Some(lanes) = found.try_get::<_, Option<Vec<LaneId>>>("freed_lanes")? else {
        return Ok(Vec::new());
    };
    let ranks: Vec<i16> = found.try_get("freed_ranks")?;
    let run_ats: Vec<i64> = found.try_get("freed_run_ats")?;
    let ranges = lanes.into_iter().zip(ranks).map(|(lane, rank)| Range { lane, rank });
    Ok(ranges.zip(run_ats).collect())
}

/// Reads the queues that are paused. One without a name stands for all of a suspended tenant.
pub(super) fn paused(found: &Row) -> Result<Vec<(TenantName, Option<QueueName>)>> {
    let tenants: Option<Vec<&str>> = found.try_get("paused_tenants")?;
    let queues: Option<Vec<&str>> = found.try_get("paused_queues")?;
    let pairs = tenants.unwrap_or_default().into_iter().zip(queues.unwrap_or_default());
    let read = |(tenant, queue): (&str, &str)| {
        let damaged =
            |column| Fault::Corrupt { table: "pause", column, id: format!("{tenant}/{queue}") };
        let name = (!queue.is_empty()).then(|| QueueName::new(queue)).transpose();
        let name = name.map_err(|_| damaged("queue"))?;
        Ok((TenantName::new(tenant).map_err(|_| damaged("tenant"))?, name))
    };
    pairs.map(read).collect()
}
