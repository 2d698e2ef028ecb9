//! Prints workflows.

use duly_client::wire::{WorkflowSummary, WorkflowView};
use duly_core::workflow::WorkflowStatus;

use crate::args::Output;
use crate::exit::Ending;
use crate::output::{self, Paint};

pub(super) fn print(workflow: &WorkflowView, format: Output) -> anyhow::Result<()> {
    match format {
        Output::Json => output::json(workflow),
        Output::Id => output::data(&workflow.summary.workflow_id.to_string()),
        Output::Table => {
            output::data(&table(std::slice::from_ref(&workflow.summary)))?;
            output::say(&counts(workflow));
            let path: Vec<_> = workflow.critical_path.iter().map(|it| it.key.as_str()).collect();
            if !path.is_empty() {
                output::say(&format!("critical path: {}", path.join(" → ")));
            }
            Ok(())
        }
    }
}

/// "2 SUCCESS, 1 FAILED (1 handled)".
pub(super) fn counts(workflow: &WorkflowView) -> String {
    let counted = workflow.counts.iter().filter(|(_, count)| **count > 0);
    let counted: Vec<_> = counted.map(|(status, count)| format!("{count} {status}")).collect();
    match workflow.handled_failures {
        0 => counted.join(", "),
        handled => format!("{} ({handled} handled)", counted.join(", ")),
    }
}

pub(super) fn table(workflows: &[WorkflowSummary]) -> String {
    let header = ["id", "name", "status", "open", "created at", "finished at"];
    let mut table = output::table(&header)
        .shorten(&["name"], 12)
        .leave_out(&["finished at", "created at"])
        .paint("status", Paint::STATUS);
    for workflow in workflows {
        table.add_row([
            workflow.workflow_id.to_string(),
            workflow.name.clone(),
            workflow.status.to_string(),
            workflow.open.to_string(),
            workflow.created_at.to_string(),
            output::instant(workflow.finished_at),
        ]);
    }
    output::render(&table)
}

/// The ending of the command for a workflow that has ended.
pub(super) fn ending(workflow: &WorkflowView) -> Ending {
    let (id, status) = (workflow.summary.workflow_id, workflow.summary.status);
    match status {
        WorkflowStatus::Success | WorkflowStatus::Running => {
            output::say(&format!("{id} {status}; next: duly task list workflow:{id}"));
            Ending::Ok
        }
        WorkflowStatus::Failed | WorkflowStatus::Cancelled => {
            if let Some(reason) =
                workflow.summary.cancel_reason.as_ref().filter(|it| !it.is_empty())
            {
                output::say(&format!("cancelled: {reason}"));
            }
            output::say(&format!(
                "{id} {status}; next: duly task list workflow:{id}, then duly workflow retry {id}"
            ));
            Ending::TaskFailed
        }
    }
}
