//! Delete: tasks of a tenant that have ended, with everything about them.

use duly_core::ports::store::{Controlled, DeleteTasks};
use foldhash::HashMap;
use uuid::Uuid;

use super::{Scope, Verb};
use crate::audited::{Audited, Subject};
use crate::postgres::error::Result;
use crate::postgres::row;
use crate::postgres::task_state::deleted::{delete_tasks, with_open_children};

impl Verb for DeleteTasks {
    type Answer = Vec<Controlled>;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<Vec<Controlled>> {
        let select = "/* delete.lock */ SELECT task.id, task.status, task.finished_at,
                coalesce(task.links >= 4, false)
            FROM duly.task JOIN duly.lane ON lane.id = task.lane
            WHERE task.id = ANY($1) AND lane.tenant = $2 ORDER BY task.id FOR UPDATE OF task";
        let ids: Vec<_> = self.tasks.iter().map(|task| row::uuid(*task)).collect();
        let (mut kept, mut doomed) = (HashMap::<Uuid, Controlled>::default(), Vec::new());
        let mut parents = Vec::new();
        for row in scope.query(select, &[&ids, &self.tenant.as_str()]).await? {
            let id = row.try_get(0)?;
            let status = row::decode_status(row.try_get(1)?, id)?;
            if status.is_terminal() && is_early(self, row.try_get(2)?) {
                doomed.push(id);
                parents.extend(row.try_get::<_, bool>(3)?.then_some(id));
            } else {
                kept.insert(id, Controlled::Conflict { status });
            }
        }
        for parent in with_open_children(scope, parents).await? {
            kept.insert(parent, Controlled::OpenChildren);
        }
        doomed.retain(|id| !kept.contains_key(id));
        delete_tasks(scope, &doomed).await?;
        // A task that is gone was deleted before.
        Ok(ids.iter().map(|id| kept.get(id).copied().unwrap_or(Controlled::Done)).collect())
    }

    fn audited(&self) -> Vec<Subject> {
        Audited::audited(self)
    }
}

/// Whether a task that ended at this time ended early enough for the order.
fn is_early(order: &DeleteTasks, ended_at: Option<i64>) -> bool {
    ended_at.is_some_and(|at| order.before.is_none_or(|before| at < before.millis()))
}
