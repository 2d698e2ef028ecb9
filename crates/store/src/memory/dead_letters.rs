//! The reference model's dead-letter queue: the tasks that are FAILED.

use std::collections::BTreeMap;

use duly_core::error_group::ErrorGroup;
use duly_core::filter::Filter;
use duly_core::limits::DEAD_GROUP_ROWS;
use duly_core::name::TenantName;
use duly_core::ports::store::{DeadGroup, DeadGroups, DeadList, DeadPosition, GroupDead, ListDead};
use duly_core::state::Status;
use duly_core::task::Task;

use super::list::{Page, within};
use super::model::Model;

impl Model {
    /// A tenant's dead letters, last failure first, as far as the filter's times go.
    fn dead(&self, tenant: &TenantName, filter: &Filter) -> Vec<&Task> {
        let failed = self.tasks.values().filter(|task| task.status == Status::Failed);
        let own = failed.filter(|task| task.lane.tenant == *tenant);
        let mut dead: Vec<_> = own.filter(|task| within(filter, place(task).failed_at)).collect();
        dead.sort_by_key(|task| std::cmp::Reverse(place(task)));
        dead
    }

    pub(super) fn dead_letters(&self, page: &ListDead) -> DeadList {
        let ListDead { tenant, filter, before, limit } = page;
        let dead = self.dead(tenant, filter).into_iter();
        let below = dead.filter(|task| before.is_none_or(|before| place(task) < before));
        let page = self.page(below, filter, *limit, place);
        let Page { tasks, next_before, scanned, partial } = page;
        DeadList { tasks, next_before, scanned, partial }
    }

    pub(super) fn dead_groups(&self, which: &GroupDead) -> DeadGroups {
        let mut groups: BTreeMap<_, DeadGroup> = BTreeMap::new();
        let (mut scanned, mut partial) = (0, false);
        for task in self.dead(&which.tenant, &which.filter) {
            if scanned == DEAD_GROUP_ROWS {
                partial = true;
                break;
            }
            scanned += 1;
            if !self.fits(task, &which.filter) {
                continue;
            }
            let Some(error) = task.error.clone() else { continue };
            let (queue, task_type) = (task.lane.queue.clone(), task.lane.task_type.clone());
            let (group, at) = (ErrorGroup::of(&error), place(task).failed_at);
            let known = groups.entry((queue.clone(), task_type.clone(), group));
            let known = known.or_insert(DeadGroup {
                group,
                queue,
                task_type,
                count: 0,
                first_failed_at: at,
                last_failed_at: at,
                sample: task.id,
                error,
            });
            known.count += 1;
            known.first_failed_at = at;
        }
        let mut groups: Vec<_> = groups.into_values().collect();
        groups.sort_by_key(|group| std::cmp::Reverse((group.count, group.last_failed_at)));
        groups.truncate(which.limit as usize);
        DeadGroups { groups, scanned, partial }
    }
}

fn place(task: &Task) -> DeadPosition {
    let failed_at = task.finished_at.expect("it has ended");
    DeadPosition { failed_at, task: task.id }
}
