//! Delete: tasks of a tenant that have ended, with everything about them.

use duly_core::ports::store::{Controlled, DeleteTasks};
use duly_core::state::Status;
use foldhash::HashMap;
use uuid::Uuid;

use super::{Scope, Verb};
use crate::postgres::error::Result;
use crate::postgres::row;
use crate::postgres::task_state::deleted::delete_tasks;

impl Verb for DeleteTasks {
    type Answer = Vec<Controlled>;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<Vec<Controlled>> {
        let select = "/* delete.lock */ SELECT task.id, task.status, task.finished_at
            FROM duly.task JOIN duly.lane ON lane.id = task.lane
            WHERE task.id = ANY($1) AND lane.tenant = $2 ORDER BY task.id FOR UPDATE OF task";
        let ids: Vec<_> = self.tasks.iter().map(|task| row::uuid(*task)).collect();
        let (mut kept, mut doomed) = (HashMap::<Uuid, Status>::default(), Vec::new());
        for row in scope.query(select, &[&ids, &self.tenant.as_str()]).await? {
            let id = row.try_get(0)?;
            let status = row::decode_status(row.try_get(1)?, id)?;
            if status.is_terminal() && is_early(self, row.try_get(2)?) {
                doomed.push(id);
            } else {
                kept.insert(id, status);
            }
        }
        delete_tasks(scope, &doomed).await?;
        // A task that is gone was deleted before.
        let answer = |id| match kept.get(id) {
            Some(status) => Controlled::Conflict { status: *status },
            None => Controlled::Done,
        };
        Ok(ids.iter().map(answer).collect())
    }
}

/// Whether a task that ended at this time ended early enough for the order.
fn is_early(order: &DeleteTasks, ended_at: Option<i64>) -> bool {
    ended_at.is_some_and(|at| order.before.is_none_or(|before| at < before.millis()))
}
