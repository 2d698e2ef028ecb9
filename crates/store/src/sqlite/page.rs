//! Filling a page: rows come one by one with the verdict of a filter on each, and matching tasks
//! are fetched until the page is full, large enough, or has cost enough.
//!
//! Tasks of all tenants lie in one order, so that a page also comes upon those of others. They are
//! part of what it costs and count towards its end, but `scanned` leaves them out: how much others
//! have is not told. A small tenant beside a large one therefore gets pages that end early, with
//! `partial` and few `scanned`, and goes on with the cursor.

use duly_core::id::TaskId;
use duly_core::limits::PAGE_BYTES;
use duly_core::name::TenantName;
use duly_core::task::Task;
use rusqlite::Connection;

use super::error::Result;
use super::filter::{FITS, FOREIGN};
use super::reader;

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
#[derive(Debug)]
pub(super) struct Looked<P> {
    pub(super) task: TaskId,
    pub(super) verdict: i64,
    pub(super) place: P,
}

/// How full a page may become, and what it may cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) tasks: u32,
    /// Rows that it comes upon.
    pub(super) rows: u32,
}

/// Takes what fits from rows, which read one moment. One task more than asked for is looked for,
/// which tells whether there is a next page.
pub(super) fn fill<P>(
    connection: &Connection,
    tenant: &TenantName,
    bounds: Bounds,
    mut next: impl FnMut() -> Result<Option<Looked<P>>>,
) -> Result<Page<P>> {
    let mut page = Page::empty();
    let (mut bytes, mut looked, mut last) = (0, 0, None);
    let limit = bounds.tasks as usize;
    while let Some(Looked { task: id, verdict, place }) = next()? {
        if looked == bounds.rows {
            let partial = page.tasks.len() < limit;
            return Ok(Page { next_before: last, partial, ..page });
        }
        looked += 1;
        if verdict == FITS {
            if page.tasks.len() == limit {
                return Ok(Page { next_before: last, ..page });
            }
            // What the rows come from is still open, so this reads the same moment.
            match reader::get(connection, tenant, id) {
                Ok(Some(task)) => {
                    bytes += task.bytes();
                    if bytes > PAGE_BYTES && !page.tasks.is_empty() {
                        return Ok(Page { next_before: last, ..page });
                    }
                    page.tasks.push(task);
                }
                Ok(None) => tracing::error!(%id, "a dead letter has no task"),
                // One damaged row must not hide the others.
                Err(fault) if fault.is_bad_row() => {
                    tracing::error!(%fault, "a task cannot be shown");
                }
                Err(fault) => return Err(fault),
            }
        }
        page.scanned += u32::from(verdict != FOREIGN);
        last = Some(place);
    }
    Ok(page)
}
