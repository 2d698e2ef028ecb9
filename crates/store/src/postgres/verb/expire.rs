//! Expire: delete tasks that were found to have ended long ago, if it is still so, and sessions.

use duly_core::limits::STORE_BATCH;
use duly_core::time::Timestamp;
use uuid::Uuid;

use super::{Scope, Verb};
use crate::postgres::days;
use crate::postgres::error::Result;
use crate::postgres::retention::Cutoffs;
use crate::postgres::task_state::deleted::{delete_tasks, with_open_children};

/// What was found. Answers how many are gone.
pub(in crate::postgres) struct Expire {
    pub(in crate::postgres) tasks: Vec<Uuid>,
    pub(in crate::postgres) cutoffs: Cutoffs,
}

impl Verb for Expire {
    type Answer = u32;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<u32> {
        // A task that is about to be replayed stays; if it is not replayed it goes next time.
        let passed = Cutoffs::PASSED;
        let select = format!(
            "/* sweep.lock */ SELECT id, coalesce(links >= 4, false) FROM duly.task WHERE id = ANY($8) AND {passed}
             ORDER BY id FOR UPDATE SKIP LOCKED"
        );
        let mut parameters = self.cutoffs.parameters().to_vec();
        parameters.push(&self.tasks);
        let (mut tasks, mut parents) = (Vec::with_capacity(self.tasks.len()), Vec::new());
        for row in scope.query(&select, &parameters).await? {
            tasks.push(row.try_get(0)?);
            parents.extend(row.try_get::<_, bool>(1)?.then_some(tasks[tasks.len() - 1]));
        }
        let needed = with_open_children(scope, parents).await?;
        tasks.retain(|task| !needed.contains(task));
        let deleted = delete_tasks(scope, &tasks).await?;
        Ok(u32::try_from(deleted).unwrap_or(u32::MAX))
    }
}

/// Forgets sessions that ended before this time. Answers how many.
pub(in crate::postgres) struct ForgetSessions {
    pub(in crate::postgres) before: Timestamp,
}

impl Verb for ForgetSessions {
    type Answer = u32;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<u32> {
        // An id begins with the time at which its session opened: what lies beyond is newer and not
        // read. The ids are collected into an array first: as a list after IN, the planner may run
        // the subquery once per row, and every run deletes another batch.
        let delete = "/* session.forget */ DELETE FROM duly.session WHERE id = ANY (ARRAY(
                SELECT s.id FROM duly.session s WHERE s.id < $1 AND s.ended_at < $2
                    AND NOT EXISTS (SELECT FROM duly.grant_log g WHERE g.session = s.id)
                ORDER BY s.id LIMIT $3 FOR UPDATE SKIP LOCKED))";
        let opened_before = days::first_of(self.before.millis());
        let most = i64::try_from(STORE_BATCH).expect("a small number");
        let forgotten =
            scope.execute(delete, &[&opened_before, &self.before.millis(), &most]).await?;
        Ok(u32::try_from(forgotten).unwrap_or(u32::MAX))
    }
}
