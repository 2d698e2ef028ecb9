//! The real binary when something is wrong with the machine, the user or the request: it says what,
//! loses nothing, and recovers by itself.

mod bad_input;
mod disk;
mod idle;
mod kill;
mod start;
mod stop;

use std::path::Path;

use duly_client::wire::{SubmitRequest, TaskView};
use duly_testkit::{Server, wait};

use crate::DULY;

fn duly() -> &'static Path {
    Path::new(DULY)
}

async fn start(data: &Path) -> anyhow::Result<Server> {
    Server::start(duly(), data, &[]).await
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a temporary path is plain")
}

/// A task of a type with a payload.
fn task(task_type: &str, payload: serde_json::Value) -> SubmitRequest {
    let payload = serde_json::value::to_raw_value(&payload).expect("a value is JSON");
    SubmitRequest { payload: Some(payload), ..SubmitRequest::new(task_type) }
}

/// Waits for the outcome of a task.
async fn outcome(server: &Server, id: duly_core::id::TaskId) -> anyhow::Result<TaskView> {
    let mut view = server.client().get_task(id, Some(wait::PATIENCE)).await?;
    if !view.status.is_terminal() {
        view = server.client().get_task(id, Some(wait::PATIENCE)).await?;
    }
    Ok(view)
}
