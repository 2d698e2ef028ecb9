//! Cancel a workflow: its row says so from this commit on, and nothing of it is released any more. The
//! cascade cancels its tasks.

use duly_core::id::WorkflowId;
use duly_core::name::TenantName;
use duly_core::ports::store::WorkflowChange;
use duly_core::workflow::WorkflowStatus;

use super::{Scope, Verb};
use crate::audited::{self, Subject};
use crate::postgres::error::Result;
use crate::postgres::row;
use crate::postgres::workflows::decode_status;

pub(in crate::postgres) struct CancelWorkflow<'a> {
    pub(in crate::postgres) tenant: &'a TenantName,
    pub(in crate::postgres) id: WorkflowId,
    pub(in crate::postgres) reason: String,
}

impl Verb for CancelWorkflow<'_> {
    type Answer = WorkflowChange;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<WorkflowChange> {
        let id = row::workflow_uuid(self.id);
        let select = "/* workflow.hold */ SELECT status FROM duly.workflow
            WHERE id = $1 AND tenant = $2 FOR NO KEY UPDATE";
        let rows = scope.query(select, &[&id, &self.tenant.as_str()]).await?;
        let Some(found) = rows.first() else { return Ok(WorkflowChange::Unknown) };
        match decode_status(found.try_get(0)?, id)? {
            WorkflowStatus::Running => {}
            WorkflowStatus::Cancelled => return Ok(WorkflowChange::Done { tasks: 0 }),
            status => return Ok(WorkflowChange::Conflict { status }),
        }
        let update = "/* workflow.cancel */ UPDATE duly.workflow
            SET cancelled = coalesce(cancelled, $2), sweep = true WHERE id = $1";
        scope.execute(update, &[&id, &self.reason]).await?;
        // So that the cascade begins.
        scope.wakes.anywhere(scope.now);
        Ok(WorkflowChange::Done { tasks: 0 })
    }

    fn audited(&self) -> Vec<Subject> {
        audited::cancel_workflow(self.tenant, self.id)
    }
}
