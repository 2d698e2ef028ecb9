//! The critical paths of workflows that were asked for lately. Each takes a look at the whole graph,
//! and a dashboard asks over and over.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use duly_core::id::WorkflowId;
use duly_core::ports::store::WorkflowState;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::command::workflows::PathStep;

/// Workflows that are remembered.
const WORKFLOWS: usize = 256;
/// How long the path of a workflow that runs is good enough.
const FRESH: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct CriticalPaths {
    known: Mutex<HashMap<WorkflowId, Known>>,
}

#[derive(Debug)]
struct Known {
    state: WorkflowState,
    at: Instant,
    path: Arc<[PathStep]>,
}

impl CriticalPaths {
    /// Whether the path of a workflow was asked for lately.
    pub(crate) fn knows(&self, id: WorkflowId) -> bool {
        self.known.lock().contains_key(&id)
    }

    /// The path of a workflow in this state, if it is known: nothing has changed since, or it is fresh.
    pub(crate) fn find(&self, state: &WorkflowState) -> Option<Arc<[PathStep]>> {
        let known = self.known.lock();
        let found = known.get(&state.workflow.id)?;
        let is_same = found.state.workflow.status == state.workflow.status;
        let is_fresh = found.at.elapsed() < FRESH && is_same;
        (found.state == *state || is_fresh).then(|| Arc::clone(&found.path))
    }

    pub(crate) fn keep(&self, state: &WorkflowState, path: &Arc<[PathStep]>) {
        let mut known = self.known.lock();
        if known.len() >= WORKFLOWS
            && let Some(oldest) = known.iter().min_by_key(|(_, it)| it.at).map(|(id, _)| *id)
        {
            known.remove(&oldest);
        }
        let entry = Known { state: state.clone(), at: Instant::now(), path: Arc::clone(path) };
        known.insert(state.workflow.id, entry);
    }
}
