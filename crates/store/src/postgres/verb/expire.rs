//! Expire: delete tasks that were found to have ended long ago, if it is still so.

use uuid::Uuid;

use super::delete::delete;
use super::{Scope, Verb};
use crate::postgres::error::Result;
use crate::postgres::retention::Cutoffs;

/// What was found. Answers how many are gone.
pub(in crate::postgres) struct Expire {
    pub(in crate::postgres) tasks: Vec<Uuid>,
    pub(in crate::postgres) cutoffs: Cutoffs,
}

impl Verb for Expire {
    type Answer = u32;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<u32> {
        // One that somebody is about to replay stays; if it is not replayed it goes next time.
        let passed = Cutoffs::PASSED;
        let select = format!(
            "/* sweep.lock */ SELECT id FROM duly.task WHERE id = ANY($4) AND {passed}
             ORDER BY id FOR UPDATE SKIP LOCKED"
        );
        let mut parameters = self.cutoffs.parameters().to_vec();
        parameters.push(&self.tasks);
        let mut tasks = Vec::with_capacity(self.tasks.len());
        for row in scope.query(&select, &parameters).await? {
            tasks.push(row.try_get(0)?);
        }
        let deleted = delete(scope, &tasks).await?;
        Ok(u32::try_from(deleted).unwrap_or(u32::MAX))
    }
}
