//! Find tasks by a prefix of their id.

use std::ops::RangeInclusive;
use std::time::Duration;

use duly_core::filter::Filter;
use duly_core::id::TaskId;
use duly_core::name::{TenantName, TypeName};
use duly_core::ports::store::{self, ListTasks};

use crate::engine::Engine;

impl Engine {
    /// The ids of a tenant's tasks within a range of ids, at most `limit`, highest first. The
    /// range must lie within one millisecond of due times, as that of [`TaskId::starting_with`].
    /// `task_type` selects one type.
    pub async fn find_ids(
        &self,
        tenant: &TenantName,
        ids: RangeInclusive<TaskId>,
        task_type: Option<TypeName>,
        limit: u32,
    ) -> store::Result<Vec<TaskId>> {
        let since = ids.start().first_due();
        let until = since.plus(Duration::from_millis(1));
        // The times bound what the store reads. The last instant has no successor.
        let filter = Filter {
            task_type,
            since: Some(since),
            until: Some(until).filter(|until| *until > since),
            ..Filter::default()
        };
        let mut page = ListTasks { tenant: tenant.clone(), filter, before: None, limit };
        let mut found = Vec::new();
        // `before` excludes its own id, so the highest id of the range needs its own look-up.
        if let Some(task) = self.get(tenant, *ids.end()).await? {
            let wanted = page.filter.task_type.as_ref();
            found.extend(wanted.is_none_or(|it| *it == task.lane.task_type).then_some(task.id));
        }
        page.before = Some(*ids.end());
        while found.len() < limit as usize && page.before.is_some_and(|at| at > *ids.start()) {
            let list = self.store().list(page.clone()).await?;
            let inside = list.tasks.iter().map(|task| task.id).filter(|id| ids.contains(id));
            found.extend(inside);
            page.before = list.next_before;
        }
        found.truncate(limit as usize);
        Ok(found)
    }
}
