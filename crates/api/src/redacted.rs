//! What is shown of tasks and schedules: the setting `redact` masks parts of their payloads. Only the lease
//! of a worker has all of it.

use duly_client::wire::{ScheduleView, SubmitRequest, TaskView};
use duly_core::name::TenantName;
use duly_core::redact::Redaction;
use duly_core::task::Task;
use duly_engine::command::payloads::masked;
use serde_json::value::RawValue;

use crate::app::App;
use crate::error::ApiError;

/// A task as its tenant's callers see it.
pub(crate) async fn task_view(app: &App, task: Task) -> Result<TaskView, ApiError> {
    let redaction = app.engine.redaction(&task.lane.tenant).await?;
    Ok(TaskView::from(masked(task, &redaction)))
}

/// The same for a page of one tenant's tasks.
pub(crate) async fn task_views(
    app: &App,
    tenant: &TenantName,
    tasks: Vec<Task>,
) -> Result<Vec<TaskView>, ApiError> {
    let redaction = app.engine.redaction(tenant).await?;
    let view = |task| TaskView::from(masked(task, &redaction));
    Ok(tasks.into_iter().map(view).collect())
}

/// Masks the payloads of what a schedule starts.
pub(crate) fn mask_schedule(view: &mut ScheduleView, redaction: &Redaction) {
    if redaction.is_empty() {
        return;
    }
    view.task.iter_mut().for_each(|task| mask(task, redaction));
    if let Some(workflow) = &mut view.workflow {
        workflow.tasks.values_mut().for_each(|task| mask(task, redaction));
    }
}

fn mask(task: &mut SubmitRequest, redaction: &Redaction) {
    let Some(payload) = &task.payload else { return };
    let shown = redaction.mask(payload.get()).into_owned();
    task.payload = RawValue::from_string(shown).ok();
}
