//! What the questions of a history ask for, in view of what is known.

use std::time::Duration;

use duly_core::error_group::ErrorGroup;
use duly_core::filter::Filter;
use duly_core::name::TenantName;
use duly_core::ports::store::{
    CountTasks, DeadPosition, GroupDead, ListDead, ListTasks, LogPosition, ReadLogs,
};
use duly_core::state::Status;
use duly_core::task::{Failure, Task};
use duly_core::time::Timestamp;

use crate::call::Call;
use crate::known::{Known, pick, tenant};
use crate::meaning::{failure, queue, type_name};
use crate::step::{FilterStep, ReadStep};

/// Parts of errors, also of those that stores write themselves.
const PARTS: [&str; 4] = ["ORDER", "is gone", "broken", "lost"];

impl Known {
    pub(crate) fn read(&self, read: ReadStep) -> Call {
        match read {
            ReadStep::Count { which } => {
                let (tenant, filter) = self.filter(which, false);
                let retried = which.label.is_some();
                Call::Count(CountTasks { tenant, filter, retried, before: None })
            }
            ReadStep::Queue { queue: other, tenant: foreign } => {
                Call::Queue(tenant(foreign), queue(other))
            }
            ReadStep::QueuePosition { what, tenant: other } => {
                let waits = |task: &Task| task.status == Status::Pending;
                Call::QueuePosition(tenant(other), self.what_fits(what, waits))
            }
            ReadStep::Parents { what } => {
                let linked = |task: &Task| task.links.is_some();
                Call::Parents(self.what_fits(what, linked))
            }
            ReadStep::Get { what, tenant: other } => Call::Get(tenant(other), self.what(what)),
            ReadStep::Attempts { what, tenant: other } => {
                Call::Attempts(tenant(other), self.what(what))
            }
            ReadStep::Logs { what, tenant: other, epoch, after: (attempt, offset), limit } => {
                let after = LogPosition { epoch: attempt.into(), offset: offset.into() };
                let (tenant, task, epoch) = (tenant(other), self.what(what), epoch.map(Into::into));
                Call::Logs(ReadLogs { tenant, task, epoch, after, limit: usize::from(limit) * 100 })
            }
            ReadStep::List { which, before, limit } => {
                let before = before.map(|what| self.what(what));
                let (tenant, filter) = self.filter(which, false);
                Call::List(ListTasks { tenant, filter, before, limit })
            }
            ReadStep::Dead { which, limit, skip } => {
                let mut dead = self.state.values().filter(|task| task.status == Status::Failed);
                let place = |task: &Task| DeadPosition {
                    failed_at: task.finished_at.unwrap(),
                    task: task.id,
                };
                let before = dead.next().map(place).filter(|_| skip);
                let (tenant, filter) = self.filter(which, true);
                Call::Dead(ListDead { tenant, filter, before, limit })
            }
            ReadStep::Groups { which } => {
                let (tenant, filter) = self.filter(which, true);
                Call::Groups(GroupDead { tenant, filter, limit: 100 })
            }
        }
    }

    /// The filter of a step, for tasks or for dead letters.
    fn filter(&self, step: FilterStep, dead: bool) -> (TenantName, Filter) {
        let drawn = self.blind(step);
        let failed = dead || drawn.statuses == [Status::Failed].into();
        let fits = |task: &&Task| !failed || task.status == Status::Failed;
        let tasks: Vec<_> = self.state.values().filter(fits).collect();
        let aim = step.aim.and_then(|back| pick(&tasks, back)).copied();
        let Some(task) = aim else { return (tenant(step.tenant), drawn) };
        let at = if dead { task.finished_at.unwrap() } else { task.id.first_due() };
        let seconds = |ago: Option<u8>| ago.map(|ago| Duration::from_secs(ago.into()));
        let statuses = drawn.statuses.into_iter();
        let part = |error: &Failure| error.message.to_uppercase().chars().skip(1).take(5).collect();
        let aimed = Filter {
            statuses: statuses.flat_map(|other| [other, task.status]).collect(),
            queue: step.queue.map(|_| task.lane.queue.clone()),
            task_type: step.task_type.map(|_| task.lane.task_type.clone()),
            labels: step.label.map_or_else(Default::default, |_| task.labels.clone()),
            since: seconds(step.since).map(|by| at.minus(by)),
            until: seconds(step.until).map(|by| at.plus(by).plus(Duration::from_millis(1))),
            error: step.says.and(task.error.as_ref()).map(part),
            group: step.of_group.and(task.error.as_ref()).map(ErrorGroup::of),
            worker: step.worker.and(task.worker.clone()),
            workflow: None,
        };
        (task.lane.tenant.clone(), aimed)
    }

    /// A filter that knows nothing of what is stored.
    fn blind(&self, step: FilterStep) -> Filter {
        let ago =
            |seconds: u8| Timestamp::from_millis(self.now.millis() - i64::from(seconds) * 1000);
        let statuses = Status::ALL.into_iter().enumerate();
        let statuses = statuses.filter(|(bit, _)| step.statuses >> bit & 1 == 1);
        let label = |value: u8| ("n".to_owned(), value.to_string());
        Filter {
            statuses: statuses.map(|(_, status)| status).collect(),
            queue: step.queue.map(queue),
            task_type: step.task_type.map(type_name),
            labels: step.label.map(label).into_iter().collect(),
            since: step.since.map(ago),
            until: step.until.map(ago),
            error: step.says.map(|number| PARTS[usize::from(number) % PARTS.len()].to_owned()),
            group: step.of_group.map(|number| ErrorGroup::of(&failure(number))),
            worker: step.worker.map(|number| format!("worker-{number}")),
            workflow: None,
        }
    }
}
