//! Filling a page: rows come in the order of a list with the verdict of a filter on each, until the
//! page is full, large enough, or has cost enough. Only then are its tasks read.
//!
//! A page may come upon tasks of other tenants. They are part of what it costs and count towards its
//! end, but `scanned` leaves them out: how many tasks other tenants have stays secret.

use std::future::Future;

use duly_core::limits::PAGE_BYTES;
use duly_core::name::TenantName;
use duly_core::task::Task;
use foldhash::HashMap;
use uuid::Uuid;

use super::days;
use super::error::{Fault, Result};
use super::filter::Verdict;
use super::links::{self, Linked};
use super::row;
use super::snapshot::Snapshot;

/// A page of a list whose places are of type `P`.
#[derive(Debug)]
pub(super) struct Page<P> {
    pub(super) tasks: Vec<Task>,
    /// The last row looked at, if more may follow.
    pub(super) next_before: Option<P>,
    pub(super) scanned: u32,
    pub(super) partial: bool,
}

impl<P> Page<P> {
    pub(super) fn empty() -> Self {
        Self { tasks: Vec::new(), next_before: None, scanned: 0, partial: false }
    }
}

/// A row that a page comes upon.
#[derive(Clone, Copy, Debug)]
pub(super) struct Looked<P> {
    pub(super) task: Uuid,
    pub(super) verdict: Verdict,
    pub(super) place: P,
}

/// Where rows come from, in the order of a list.
pub(super) trait Rows {
    type Position: Copy + Send;

    /// The next of them, so many at the most; none at the end.
    fn next(
        &mut self,
        most: u32,
    ) -> impl Future<Output = Result<Vec<Looked<Self::Position>>>> + Send;
}

/// How full a page may become, and what it may cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) tasks: u32,
    /// Rows that it comes upon.
    pub(super) rows: u32,
}

/// Rows that are asked for at once: at first as many as would fill a page, then more and more.
#[derive(Debug)]
pub(super) struct Portions {
    next: u32,
    /// How many more may be looked at, and one to see whether there are others.
    left: u32,
}

impl Portions {
    /// From the size of the first and the sum of all.
    pub(super) fn new(first: u32, rows: u32) -> Self {
        Self { next: first.max(100), left: rows.saturating_add(1) }
    }
}

impl Iterator for Portions {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let portion = self.next.min(self.left);
        self.left -= portion;
        self.next = self.next.saturating_mul(4).min(2_500);
        (portion > 0).then_some(portion)
    }
}

/// Takes what fits from rows, which read one moment. One task more than asked for is looked for,
/// which shows whether there is a next page.
pub(super) async fn fill<R: Rows + Send>(
    snapshot: &Snapshot<'_>,
    tenant: &TenantName,
    bounds: Bounds,
    mut rows: R,
) -> Result<Page<R::Position>> {
    let mut choice = Choice { bounds, page: Page::empty(), ids: Vec::new(), bytes: 0, looked: 0 };
    let mut last = None;
    'full: for portion in Portions::new(bounds.tasks.saturating_add(1), bounds.rows) {
        let looked = rows.next(portion).await?;
        if looked.is_empty() {
            break;
        }
        for row in looked {
            if !choice.takes(&row) {
                choice.page.next_before = last;
                break 'full;
            }
            last = Some(row.place);
        }
    }
    let tasks = read(snapshot, tenant, &choice.ids).await?;
    Ok(Page { tasks, ..choice.page })
}

struct Choice<P> {
    bounds: Bounds,
    page: Page<P>,
    ids: Vec<Uuid>,
    bytes: usize,
    looked: u32,
}

impl<P> Choice<P> {
    /// Looks at a row; whether the page goes on behind it.
    fn takes(&mut self, row: &Looked<P>) -> bool {
        let is_full = self.ids.len() == self.bounds.tasks as usize;
        if self.looked == self.bounds.rows {
            self.page.partial = !is_full;
            return false;
        }
        if let Verdict::Fits { bytes, .. } = row.verdict {
            self.bytes += bytes;
            if is_full || (self.bytes > PAGE_BYTES && !self.ids.is_empty()) {
                return false;
            }
            self.ids.push(row.task);
        }
        self.looked += 1;
        self.page.scanned += u32::from(row.verdict != Verdict::Foreign);
        true
    }
}

/// The tasks with these ids, in this order.
async fn read(snapshot: &Snapshot<'_>, tenant: &TenantName, ids: &[Uuid]) -> Result<Vec<Task>> {
    let (columns, tables) = (row::TASK_COLUMNS, row::TASK_TABLES);
    let select = format!(
        "/* task.page */ SELECT {columns} FROM {tables}
         WHERE task.id = ANY($1) AND lane.tenant = $2"
    );
    let (mut tasks, mut linked) = (HashMap::default(), Vec::new());
    for part in days::apart(ids.iter().copied()) {
        for found in snapshot.query(&select, &[&part, &tenant.as_str()]).await? {
            match row::task(&found) {
                Ok(task) => {
                    linked.push(Linked::read(&found)?);
                    tasks.insert(row::uuid(task.id), task);
                }
                // One damaged row must not hide the others.
                Err(fault @ Fault::Corrupt { .. }) => {
                    tracing::error!(%fault, "a task cannot be shown");
                }
                Err(fault) => return Err(fault),
            }
        }
    }
    let mut tasks: Vec<_> = ids.iter().filter_map(|id| tasks.remove(id)).collect();
    links::fill(snapshot.client(), &mut tasks, &linked).await?;
    Ok(tasks)
}
