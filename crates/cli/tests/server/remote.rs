//! Workers that are processes of their own: paused, killed, killed by their own tasks, and raced
//! by people who cancel.

mod cancels;
mod fence;
mod kill;
mod poison;
mod signed_in;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::anyhow;
use duly_client::wire::{BatchItem, SubmitRequest, TaskView};
use duly_core::id::TaskId;
use duly_testkit::effects::Effect;
use duly_testkit::journal::Line;
use duly_testkit::wait::{PATIENCE, eventually};
use duly_testkit::{Server, Worker, worker};

use crate::DULY;

/// How long a worker may be silent in these tests.
const TTL: Duration = Duration::from_secs(1);

/// A server that runs no task itself, and a place for what its workers write down.
struct Site {
    server: Server,
    effects: PathBuf,
    _data: tempfile::TempDir,
}

impl Site {
    async fn start(extra: &[&str]) -> anyhow::Result<Self> {
        let mut flags = vec!["--concurrency", "0", "--session-ttl", "1s"];
        flags.extend(extra);
        Self::start_with(&flags).await
    }

    async fn start_with(flags: &[&str]) -> anyhow::Result<Self> {
        let data = tempfile::tempdir()?;
        let server = Server::start(Path::new(DULY), data.path(), flags).await?;
        Ok(Self { server, effects: data.path().join("effects.jsonl"), _data: data })
    }

    async fn worker(&self, name: &str, concurrency: usize) -> anyhow::Result<Worker> {
        let url = self.server.url();
        Worker::start(Path::new(DULY), url, &self.effects, name, concurrency).await
    }

    fn effects(&self) -> anyhow::Result<Vec<Line<Effect>>> {
        worker::effects(&self.effects)
    }

    /// Waits until the workers have written down what is looked for.
    async fn until<T>(
        &self,
        what: &str,
        mut look: impl FnMut(&[Line<Effect>]) -> Option<T>,
    ) -> anyhow::Result<T> {
        let effects = &self.effects;
        let mut ask = || worker::effects(effects).ok().and_then(|lines| look(&lines));
        eventually(what, PATIENCE, || std::future::ready(ask())).await
    }

    async fn submit(&self, task: SubmitRequest) -> anyhow::Result<TaskId> {
        Ok(self.server.client().submit(&task).await?.task_id)
    }

    async fn submit_all(&self, tasks: &[SubmitRequest]) -> anyhow::Result<Vec<TaskId>> {
        let answer = self.server.client().submit_batch(tasks).await?;
        let id = |item| match item {
            BatchItem::Accepted { task_id, .. } => Ok(task_id),
            BatchItem::Refused { problem, .. } => Err(anyhow!("{problem}")),
        };
        answer.items.into_iter().map(id).collect()
    }

    async fn get(&self, id: TaskId) -> anyhow::Result<TaskView> {
        Ok(self.server.client().get_task(id, None).await?)
    }

    /// The task, once its run has ended.
    async fn outcome(&self, id: TaskId) -> anyhow::Result<TaskView> {
        let client = self.server.client();
        let ask = || async {
            let task = client.get_task(id, Some(Duration::from_secs(10))).await.ok()?;
            task.status.is_terminal().then_some(task)
        };
        eventually("the task ends", PATIENCE * 2, ask).await
    }
}

/// A task of this type that takes so long.
fn task(task_type: &str, time: Duration) -> SubmitRequest {
    let payload = serde_json::json!({"ms": time.as_millis()});
    let payload = serde_json::value::to_raw_value(&payload).expect("a number is JSON");
    SubmitRequest { payload: Some(payload), ..SubmitRequest::new(task_type) }
}
