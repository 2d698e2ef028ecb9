//! The dead-letter queue: by failure, lane by lane where a filter leaves few of them.

mod groups;

use async_trait::async_trait;
use duly_core::id::TaskId;
use duly_core::limits::SCAN_ROWS;
use duly_core::ports::store::{
    self, DeadGroups, DeadLetters, DeadList, DeadPosition, GroupDead, ListDead,
};
use duly_core::state::Status;
use duly_core::time::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use super::error::Result;
use super::filter::{DEAD_VERDICT, Lanes, Parameter, Terms, needs_task};
use super::page::{self, Bounds, Looked, Page, Rows};
use super::range::LaneId;
use super::snapshot::Snapshot;
use super::{PostgresStore, row};

#[async_trait]
impl DeadLetters for PostgresStore {
    async fn dead_letters(&self, page: ListDead) -> store::Result<DeadList> {
        let mut client = self.pool.get().await?;
        let snapshot = self.pool.snapshot(&mut client, &page.tenant).await?;
        let Page { tasks, next_before, scanned, partial } = find(&snapshot, &page).await?;
        let next_before = next_before.map(DeadLetterPosition::decode);
        Ok(DeadList { tasks, next_before, scanned, partial })
    }

    async fn dead_groups(&self, which: GroupDead) -> store::Result<DeadGroups> {
        let mut client = self.pool.get().await?;
        let snapshot = self.pool.snapshot(&mut client, &which.tenant).await?;
        Ok(groups::groups(&snapshot, &which).await?)
    }
}

async fn find(snapshot: &Snapshot<'_>, page: &ListDead) -> Result<Page<DeadLetterPosition>> {
    let ListDead { tenant, filter, before, limit } = page;
    let terms = Terms::new(tenant, filter);
    let Some(lanes) = lanes(snapshot, &terms, filter.allows(Status::Failed)).await? else {
        return Ok(Page::empty());
    };
    let end = |until| DeadPosition { failed_at: until, task: TaskId::from_bytes([0; 16]) };
    let end = filter.until.map(end);
    let below = [*before, end].into_iter().flatten().min();
    let below = below.map_or(DeadLetterPosition::LAST, DeadLetterPosition::encode);
    let since = filter.since.map_or(i64::MIN, Timestamp::millis);
    let rows = if needs_task(filter) { TASKS } else { SCAN_ROWS };
    let bounds = Bounds { tasks: *limit, rows };
    let failures = Failures { snapshot, terms: &terms, lanes, since, below };
    page::fill(snapshot, tenant, bounds, Judged(failures)).await
}

/// Dead letters that are looked at where a term needs the task: it is in another table and costs several
/// times as much.
const TASKS: u32 = SCAN_ROWS / 2;

/// The lanes to look in, or all of them; nothing if there can be nothing.
async fn lanes(
    snapshot: &Snapshot<'_>,
    terms: &Terms<'_>,
    allowed: bool,
) -> Result<Option<Option<Vec<LaneId>>>> {
    if !allowed {
        return Ok(None);
    }
    Ok(match terms.lanes(snapshot).await? {
        Lanes::None => None,
        Lanes::Few(lanes) => Some(Some(lanes)),
        Lanes::Many => Some(None),
    })
}

/// A place in the order of failures, as the server keeps it.
#[derive(Clone, Copy, Debug)]
struct DeadLetterPosition {
    failed_at: i64,
    task: Uuid,
}

impl DeadLetterPosition {
    const LAST: Self = Self { failed_at: i64::MAX, task: Uuid::max() };

    fn encode(place: DeadPosition) -> Self {
        Self { failed_at: place.failed_at.millis(), task: row::uuid(place.task) }
    }

    fn decode(self) -> DeadPosition {
        DeadPosition { failed_at: row::instant(self.failed_at), task: row::task_id(self.task) }
    }
}

/// Dead letters, last failure first.
struct Failures<'a> {
    snapshot: &'a Snapshot<'a>,
    terms: &'a Terms<'a>,
    lanes: Option<Vec<LaneId>>,
    since: i64,
    /// Only those below this place.
    below: DeadLetterPosition,
}

/// What is known of dead letters without their tasks. Takes where they come from.
fn failures(name: &str, rows: &str) -> String {
    format!(
        "/* {name} */ SELECT dlq.task, dlq.failed_at, dlq.lane, dlq.error_group, lane.queue,
                lane.type, {DEAD_VERDICT}
         FROM {rows} LEFT JOIN duly.lane ON lane.id = dlq.lane
         ORDER BY dlq.failed_at DESC, dlq.task DESC"
    )
}

/// The last failures of all lanes.
const ALL: &str = "(SELECT * FROM duly.dlq
        WHERE failed_at >= $5 AND (failed_at, task) < ($6, $7)
        ORDER BY failed_at DESC, task DESC LIMIT $8) dlq";

/// The last failures of some lanes: of each, and of these the last.
const OF_LANES: &str = "(SELECT own.* FROM unnest($9::integer[]) l(id),
            LATERAL (SELECT * FROM duly.dlq WHERE dlq.lane = l.id
                       AND failed_at >= $5 AND (failed_at, task) < ($6, $7)
                     ORDER BY failed_at DESC, task DESC LIMIT $8) own
        ORDER BY own.failed_at DESC, own.task DESC LIMIT $8) dlq";

impl Failures<'_> {
    /// The next of them, so many at the most.
    async fn next(&mut self, most: u32) -> Result<Vec<Row>> {
        let select = match self.lanes {
            None => failures("dlq.list", ALL),
            Some(_) => failures("dlq.list.lanes", OF_LANES),
        };
        let (DeadLetterPosition { failed_at, task }, most) = (self.below, i64::from(most));
        let mut parameters = self.terms.of_place().to_vec();
        parameters.extend([&self.since as Parameter<'_>, &failed_at, &task, &most]);
        parameters.extend(self.lanes.iter().map(|lanes| lanes as Parameter<'_>));
        let rows = self.snapshot.query(&select, &parameters).await?;
        if let Some(last) = rows.last() {
            self.below = DeadLetterPosition { failed_at: last.try_get(1)?, task: last.try_get(0)? };
        }
        Ok(rows)
    }
}

/// Dead letters with the verdict on each.
struct Judged<'a>(Failures<'a>);

impl Rows for Judged<'_> {
    type Position = DeadLetterPosition;

    async fn next(&mut self, most: u32) -> Result<Vec<Looked<DeadLetterPosition>>> {
        let mut found = Vec::new();
        for row in self.0.next(most).await? {
            let place = DeadLetterPosition { failed_at: row.try_get(1)?, task: row.try_get(0)? };
            found.push((place.task, row.try_get(6)?, place));
        }
        self.0.terms.looked_at(self.0.snapshot, &found).await
    }
}
