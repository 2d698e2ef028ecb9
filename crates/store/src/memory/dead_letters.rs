//! The reference model's dead-letter queue: the tasks that are FAILED.

use std::collections::BTreeMap;

use duly_core::error_group::ErrorGroup;
use duly_core::limits::PAGE_BYTES;
use duly_core::name::TenantName;
use duly_core::ports::store::{
    Controlled, DeadFilter, DeadGroup, DeadList, DeadPlace, GroupDead, ListDead, PurgeTasks,
};
use duly_core::state::Status;
use duly_core::task::Task;

use super::model::Model;

impl Model {
    /// A tenant's dead letters, last failure first.
    fn dead(&self, tenant: &TenantName, filter: &DeadFilter) -> Vec<&Task> {
        let failed = self.tasks.values().filter(|task| task.status == Status::Failed);
        let own = failed.filter(|task| task.lane.tenant == *tenant);
        let mut dead: Vec<_> = own.filter(|task| matches(filter, task)).collect();
        dead.sort_by_key(|task| std::cmp::Reverse(place(task)));
        dead
    }

    pub(super) fn dead_letters(&self, page: &ListDead) -> DeadList {
        let below = |task: &&&Task| page.before.is_none_or(|before| place(task) < before);
        let dead = self.dead(&page.tenant, &page.filter);
        let (mut tasks, mut bytes) = (Vec::new(), 0);
        for task in dead.iter().filter(below) {
            bytes += task.bytes();
            let full = bytes > PAGE_BYTES && !tasks.is_empty();
            if full || tasks.len() == page.limit as usize {
                return DeadList { next_before: tasks.last().map(place), tasks };
            }
            tasks.push(self.named(task));
        }
        DeadList { tasks, next_before: None }
    }

    pub(super) fn dead_groups(&self, which: &GroupDead) -> Vec<DeadGroup> {
        let mut groups: BTreeMap<_, DeadGroup> = BTreeMap::new();
        for task in self.dead(&which.tenant, &which.filter) {
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
        groups
    }

    pub(super) fn purge(&mut self, order: &PurgeTasks) -> Vec<Controlled> {
        let mut answers = Vec::new();
        for id in &order.tasks {
            let status = self.task_mut(&order.tenant, *id).map(|task| task.status);
            answers.push(match status {
                None => Controlled::Done,
                Some(Status::Failed) => {
                    self.tasks.remove(id);
                    self.attempts.remove(id);
                    for grant in self.grants.values_mut() {
                        grant.leases.retain(|(task, _)| task != id);
                    }
                    Controlled::Done
                }
                Some(status) => Controlled::Conflict { status },
            });
        }
        answers
    }
}

fn place(task: &Task) -> DeadPlace {
    let failed_at = task.finished_at.expect("it has ended");
    DeadPlace { failed_at, task: task.id }
}

fn matches(filter: &DeadFilter, task: &Task) -> bool {
    let DeadFilter { queue, task_type, group, since, until } = filter;
    let failed_at = place(task).failed_at;
    let of_group = |group| task.error.as_ref().is_some_and(|it| ErrorGroup::of(it) == group);
    queue.as_ref().is_none_or(|queue| *queue == task.lane.queue)
        && task_type.as_ref().is_none_or(|name| *name == task.lane.task_type)
        && group.is_none_or(of_group)
        && since.is_none_or(|since| failed_at >= since)
        && until.is_none_or(|until| failed_at < until)
}
