//! Lists of tasks by status BLOCKED, PENDING, RUNNING or FAILED, where these are few among many: found
//! through the tables of blocked and due tasks, the batches of leases and the dead letters, instead of a
//! scan of all tasks.

use std::ops::Range;

use duly_core::filter::Filter;
use duly_core::state::Status;
use uuid::Uuid;

use crate::postgres::error::Result;
use crate::postgres::range::LaneId;
use crate::postgres::snapshot::Snapshot;

/// If there are more, a scan of all tasks soon finds some; to look up each would take longer.
const FEW: usize = 5_000;

/// The tasks of this range that a list can hold, newest id first, and perhaps some that it cannot.
/// `None` if it asks for other states, or if there are too many.
pub(super) async fn newest_first(
    snapshot: &Snapshot<'_>,
    filter: &Filter,
    lanes: Option<&[LaneId]>,
    range: &Range<Uuid>,
) -> Result<Option<Vec<Uuid>>> {
    let statuses = &filter.statuses;
    let is_kept = |status: &Status| match status {
        Status::Blocked | Status::Pending | Status::Running => true,
        // Of many lanes they are read in the order of the list.
        Status::Failed => lanes.is_some(),
        Status::Success | Status::Cancelled => false,
    };
    if statuses.is_empty() || !statuses.iter().all(is_kept) {
        return Ok(None);
    }
    let mut ids = Vec::new();
    if statuses.contains(&Status::Pending) {
        few(snapshot, [WAITING, WAITING_IN], lanes, &mut ids).await?;
    }
    if statuses.contains(&Status::Blocked) && ids.len() <= FEW {
        few(snapshot, [BLOCKED, BLOCKED_IN], lanes, &mut ids).await?;
    }
    if statuses.contains(&Status::Running) && ids.len() <= FEW {
        leased(snapshot, &mut ids).await?;
    }
    if let (true, Some(lanes)) = (statuses.contains(&Status::Failed) && ids.len() <= FEW, lanes) {
        failed(snapshot, lanes, &mut ids).await?;
    }
    if ids.len() > FEW {
        return Ok(None);
    }
    ids.retain(|id| range.contains(id));
    ids.sort_unstable_by(|a, b| b.cmp(a));
    // What was leased in an earlier batch may wait again or be leased in a later one.
    ids.dedup();
    Ok(Some(ids))
}

const WAITING: &str = "/* due.few */ SELECT task FROM duly.due LIMIT $1";

const WAITING_IN: &str = "/* due.few_in */ SELECT due.task FROM unnest($2::integer[]) l(id),
        LATERAL (SELECT task FROM duly.due WHERE due.lane = l.id LIMIT $1) due LIMIT $1";

const BLOCKED: &str = "/* blocked.few */ SELECT task FROM duly.blocked LIMIT $1";

const BLOCKED_IN: &str = "/* blocked.few_in */ SELECT b.task FROM unnest($2::integer[]) l(id),
        LATERAL (SELECT task FROM duly.blocked WHERE blocked.lane = l.id LIMIT $1) b LIMIT $1";

/// Adds what one of these statements finds in all lanes, or the other one in some; one more than few at
/// the most.
async fn few(
    snapshot: &Snapshot<'_>,
    [everywhere, in_lanes]: [&str; 2],
    lanes: Option<&[LaneId]>,
    ids: &mut Vec<Uuid>,
) -> Result<()> {
    let most = i64::try_from(FEW).expect("a small number") + 1;
    let rows = match lanes {
        None => snapshot.query(everywhere, &[&most]).await?,
        Some(lanes) => snapshot.query(in_lanes, &[&most, &lanes]).await?,
    };
    for row in rows {
        ids.push(row.try_get(0)?);
    }
    Ok(())
}

/// Adds what was leased, also what has ended since; about one more than few at the most.
async fn leased(snapshot: &Snapshot<'_>, ids: &mut Vec<Uuid>) -> Result<()> {
    let select = "/* grant.few */ SELECT unnest(tasks) FROM duly.grant_log WHERE live > 0 LIMIT $1";
    let most = i64::try_from(FEW).expect("a small number") + 1;
    for row in snapshot.query(select, &[&most]).await? {
        ids.push(row.try_get(0)?);
    }
    Ok(())
}

/// Adds what has failed in these lanes; one more than few at the most.
async fn failed(snapshot: &Snapshot<'_>, lanes: &[LaneId], ids: &mut Vec<Uuid>) -> Result<()> {
    let select = "/* dlq.few */ SELECT dlq.task FROM unnest($2::integer[]) l(id),
        LATERAL (SELECT task FROM duly.dlq WHERE dlq.lane = l.id LIMIT $1) dlq LIMIT $1";
    let most = i64::try_from(FEW).expect("a small number") + 1;
    for row in snapshot.query(select, &[&most, &lanes]).await? {
        ids.push(row.try_get(0)?);
    }
    Ok(())
}
