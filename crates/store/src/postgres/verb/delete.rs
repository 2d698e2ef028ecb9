//! Delete and purge: ended tasks go with everything about them.

use duly_core::id::TaskId;
use duly_core::name::TenantName;
use duly_core::ports::store::{Controlled, DeleteTasks, PurgeTasks};
use duly_core::state::Status;
use foldhash::HashMap;
use uuid::Uuid;

use super::{Scope, Verb};
use crate::postgres::error::Result;
use crate::postgres::row;
use crate::postgres::task_state::deleted::{delete_tasks, with_open_children};

impl Verb for PurgeTasks {
    type Answer = Vec<Controlled>;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<Vec<Controlled>> {
        let failed = |ended: Ended| ended.status == Status::Failed;
        if_so(scope, &self.tenant, &self.tasks, failed).await
    }
}

impl Verb for DeleteTasks {
    type Answer = Vec<Controlled>;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<Vec<Controlled>> {
        let before = self.before.map(|before| before.millis());
        let early = |ended: Ended| {
            let early = |at: i64| before.is_none_or(|before| at < before);
            ended.status.is_terminal() && ended.at.is_some_and(early)
        };
        if_so(scope, &self.tenant, &self.tasks, early).await
    }
}

/// When a task ended, and how, if it did.
#[derive(Clone, Copy)]
struct Ended {
    status: Status,
    at: Option<i64>,
    /// Whether others depended on it.
    is_parent: bool,
}

/// Deletes those of a tenant's tasks that may be. One that is not there is gone, which is what was
/// asked for.
async fn if_so(
    scope: &Scope<'_>,
    tenant: &TenantName,
    tasks: &[TaskId],
    may_be: impl Fn(Ended) -> bool,
) -> Result<Vec<Controlled>> {
    let select = "/* delete.lock */ SELECT task.id, task.status, task.finished_at,
            coalesce(task.links >= 4, false)
        FROM duly.task JOIN duly.lane ON lane.id = task.lane
        WHERE task.id = ANY($1) AND lane.tenant = $2 ORDER BY task.id FOR UPDATE OF task";
    let ids: Vec<_> = tasks.iter().map(|task| row::uuid(*task)).collect();
    let mut found: HashMap<Uuid, Ended> = HashMap::default();
    for row in scope.query(select, &[&ids, &tenant.as_str()]).await? {
        let id = row.try_get(0)?;
        let status = row::decode_status(row.try_get(1)?, id)?;
        found.insert(id, Ended { status, at: row.try_get(2)?, is_parent: row.try_get(3)? });
    }
    let may_go = found.iter().filter(|(_, ended)| may_be(**ended));
    let parents = may_go.clone().filter(|(_, ended)| ended.is_parent).map(|(id, _)| *id);
    let needed = with_open_children(scope, parents.collect()).await?;
    let mut doomed: Vec<_> = may_go.map(|(id, _)| *id).filter(|id| !needed.contains(id)).collect();
    doomed.sort_unstable();
    delete_tasks(scope, &doomed).await?;
    let answer = |id| match found.get(id) {
        Some(ended) if !may_be(*ended) => Controlled::Conflict { status: ended.status },
        Some(_) if needed.contains(id) => Controlled::OpenChildren,
        _ => Controlled::Done,
    };
    Ok(ids.iter().map(answer).collect())
}
