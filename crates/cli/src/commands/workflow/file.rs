//! Workflow files, checked as the server checks them.

use std::path::Path;

use duly_core::workflow::request::WorkflowSpec;

use crate::commands::document::Document;
use crate::output;

/// A workflow file that holds.
pub(super) struct WorkflowFile {
    /// What a server gets: JSON text.
    pub(super) body: String,
    pub(super) spec: WorkflowSpec,
}

/// Reads a file; says what is wrong with it and returns nothing if it does not hold.
pub(super) fn read(path: &Path) -> anyhow::Result<Option<WorkflowFile>> {
    let Some(document) = Document::read(path)? else { return Ok(None) };
    match duly_api::check_workflow(document.body.as_bytes()) {
        Ok(spec) => Ok(Some(WorkflowFile { body: document.body, spec })),
        Err(problem) => {
            document.report(&problem.errors);
            if problem.errors.is_empty() {
                output::error(&format!("{}: {}", path.display(), problem.detail));
            }
            Ok(None)
        }
    }
}
