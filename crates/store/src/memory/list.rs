//! The reference model's lists: every task in order, and what a filter means for each.

use duly_core::filter::Filter;
use duly_core::limits::{PAGE_BYTES, SCAN_ROWS};
use duly_core::ports::store::{ListTasks, TaskList};
use duly_core::task::Task;
use duly_core::time::Timestamp;

use super::model::Model;

/// A page of a list whose places are of type `P`.
pub(super) struct Page<P> {
    pub(super) tasks: Vec<Task>,
    pub(super) next_before: Option<P>,
    pub(super) scanned: u32,
    pub(super) partial: bool,
}

impl Model {
    pub(super) fn list(&self, page: &ListTasks) -> TaskList {
        let ListTasks { tenant, filter, before, limit } = page;
        let newest_first = self.tasks.values().rev();
        let wanted = newest_first
            .filter(|task| task.lane.tenant == *tenant)
            .filter(|task| within(filter, task.id.first_due()))
            .filter(|task| before.is_none_or(|before| task.id < before));
        let page = self.page(wanted, filter, *limit, |task| task.id);
        let Page { tasks, next_before, scanned, partial } = page;
        TaskList { tasks, next_before, scanned, partial }
    }

    /// What a filter leaves of some tasks, until the page is full or has cost enough.
    pub(super) fn page<'a, P: Copy>(
        &self,
        tasks: impl Iterator<Item = &'a Task>,
        filter: &Filter,
        limit: u32,
        place: impl Fn(&Task) -> P,
    ) -> Page<P> {
        let mut page = Page { tasks: Vec::new(), next_before: None, scanned: 0, partial: false };
        let (mut bytes, mut last) = (0, None);
        for task in tasks {
            let full = page.tasks.len() == limit as usize;
            if page.scanned == SCAN_ROWS {
                return Page { next_before: last, partial: !full, ..page };
            }
            if self.fits(task, filter) {
                bytes += task.bytes();
                if full || (bytes > PAGE_BYTES && !page.tasks.is_empty()) {
                    return Page { next_before: last, ..page };
                }
                page.tasks.push(self.named(task));
            }
            page.scanned += 1;
            last = Some(place(task));
        }
        page
    }

    /// Whether all terms hold but those on time, which means another one in every list.
    pub(super) fn fits(&self, task: &Task, filter: &Filter) -> bool {
        filter.matches_at_any_time(&self.named(task))
    }
}

/// Whether the terms on time hold for this one.
pub(super) fn within(filter: &Filter, at: Timestamp) -> bool {
    filter.since.is_none_or(|since| at >= since) && filter.until.is_none_or(|until| at < until)
}
