//! Many nodes of the real binary on one PostgreSQL: killed, paused, stopped and cut off from it;
//! and applications that use the same database.

mod applications;
mod break_off;
mod clock_step;
mod delayed;
mod events;
mod full_disk;
mod harness;
mod idle;
mod injection;
mod kill;
mod late_answers;
mod matrix;
mod once;
mod pause;
mod restore;
mod schedules;
mod spread;
mod stall;
mod start;
mod stop;
mod stream;
mod upgrade;

use std::collections::HashMap;
use std::time::Duration;

use anyhow::anyhow;
use duly_client::wire::{LeaderView, TaskView};
use duly_core::id::TaskId;
use duly_core::state::Status;
use duly_testkit::wait::{PATIENCE, eventually};
use duly_testkit::{Node, Target};

use self::harness::{Cluster, submit_all};

const DULY: &str = env!("CARGO_BIN_EXE_duly");
/// The session TTL of the nodes in most of these tests.
const TTL: Duration = Duration::from_secs(2);

impl Cluster {
    /// Starts nodes that are declared dead after 2 s. Returns nothing if there is no server to test
    /// on.
    async fn start(nodes: usize, extra: &[&str]) -> anyhow::Result<Option<Self>> {
        Self::with_ttl("2s", nodes, extra).await
    }

    /// Takes the leading node out of the cluster.
    async fn take_leader(&mut self) -> anyhow::Result<(Node, LeaderView)> {
        let client = self.client().clone();
        let ask = || async {
            let list = client.list_nodes().await.ok()?;
            let leader = list.leader?;
            let node = list.items.into_iter().find(|node| node.node_id == leader.node_id)?;
            Some((node.name, leader))
        };
        let (name, leader) = eventually("a node leads", PATIENCE, ask).await?;
        let position = self.nodes.iter().position(|node| node.name == name);
        let position = position.ok_or_else(|| anyhow!("{name} leads, and is not one of ours"))?;
        Ok((self.nodes.remove(position), leader))
    }

    /// Waits until these tasks have succeeded, and returns them.
    async fn succeeded(&self, ids: &[TaskId]) -> anyhow::Result<Vec<TaskView>> {
        let mut tasks = Vec::with_capacity(ids.len());
        for id in ids {
            let client = self.client();
            let ask = || async {
                let task = client.get_task(*id, Some(Duration::from_secs(10))).await.ok()?;
                task.status.is_terminal().then_some(task)
            };
            let task = eventually("the task ends", PATIENCE * 2, ask).await?;
            assert_eq!(task.status, Status::Success, "{task:?}");
            tasks.push(task);
        }
        Ok(tasks)
    }
}

/// How often each task was executed.
fn executions(target: &Target) -> HashMap<TaskId, usize> {
    let mut counts = HashMap::new();
    for execution in &target.log().executions {
        *counts.entry(execution.task).or_default() += 1;
    }
    counts
}
