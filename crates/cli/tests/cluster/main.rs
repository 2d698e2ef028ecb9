//! Many nodes of the real binary on one PostgreSQL: killed, paused, stopped, outlived, and cut off from it.

mod break_off;
mod clock_step;
mod delayed;
mod full_disk;
mod idle;
mod kill;
mod late_answers;
mod once;
mod pause;
mod restore;
mod scale;
mod spread;
mod stall;
mod start;
mod stop;
mod upgrade;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use duly_client::Client;
use duly_client::wire::{BatchItem, LeaderView, SubmitRequest, TaskView};
use duly_core::id::TaskId;
use duly_core::state::Status;
use duly_store::clock::SystemClock;
use duly_store::postgres::scratch::{self, Scratch};
use duly_testkit::wait::{PATIENCE, eventually};
use duly_testkit::{Node, Target};
use tokio::sync::{RwLock, RwLockReadGuard};
use tokio::task::JoinSet;
use tokio_postgres::NoTls;

const DULY: &str = env!("CARGO_BIN_EXE_duly");
/// How long a node may be silent in these tests.
const TTL: Duration = Duration::from_secs(2);

/// Tests share the machine, except for one that measures it.
static TURN: RwLock<()> = RwLock::const_new(());

/// Nodes on a database of their own.
struct Cluster {
    nodes: Vec<Node>,
    _turn: Option<RwLockReadGuard<'static, ()>>,
    // The nodes go before the database does.
    scratch: Scratch,
}

impl Cluster {
    /// So many nodes; nothing if there is no server to test on.
    async fn start(nodes: usize, extra: &[&str]) -> anyhow::Result<Option<Self>> {
        let turn = TURN.read().await;
        Self::start_in(Some(turn), "2s", nodes, extra).await
    }

    /// The same in this turn, or in that of the caller, and with another TTL.
    async fn start_in(
        turn: Option<RwLockReadGuard<'static, ()>>,
        ttl: &str,
        nodes: usize,
        extra: &[&str],
    ) -> anyhow::Result<Option<Self>> {
        let Some(server) = scratch::server() else { return Ok(None) };
        let scratch = Scratch::new(&server, Arc::new(SystemClock::default())).await;
        let mut cluster = Self { nodes: Vec::new(), _turn: turn, scratch };
        for number in 0..nodes {
            let flags: Vec<_> = ["--session-ttl", ttl].iter().chain(extra).copied().collect();
            cluster.add(&format!("node-{number}"), &flags).await?;
        }
        Ok(Some(cluster))
    }

    async fn add(&mut self, name: &str, flags: &[&str]) -> anyhow::Result<()> {
        self.nodes.push(Node::start(DULY.as_ref(), name, &self.scratch.url(), flags).await?);
        Ok(())
    }

    /// Asks the database itself for one number.
    async fn ask(&self, sql: &str) -> anyhow::Result<i64> {
        let (client, connection) = tokio_postgres::connect(&self.scratch.url(), NoTls).await?;
        let mut driver = JoinSet::new();
        driver.spawn(connection);
        Ok(client.query_one(sql, &[]).await?.try_get(0)?)
    }

    fn client(&self) -> &Client {
        &self.nodes[0].client
    }

    /// Takes the node that leads out of the cluster.
    async fn take_leader(&mut self) -> anyhow::Result<(Node, LeaderView)> {
        let client = self.client().clone();
        let ask = || async {
            let list = client.list_nodes().await.ok()?;
            let leader = list.leader?;
            let node = list.items.into_iter().find(|node| node.node_id == leader.node_id)?;
            Some((node.name, leader))
        };
        let (name, leader) = eventually("somebody leads", PATIENCE, ask).await?;
        let place = self.nodes.iter().position(|node| node.name == name);
        let place = place.ok_or_else(|| anyhow!("{name} leads, and is not one of ours"))?;
        Ok((self.nodes.remove(place), leader))
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

async fn submit_all(client: &Client, tasks: &[SubmitRequest]) -> anyhow::Result<Vec<TaskId>> {
    let id = |item| match item {
        BatchItem::Accepted { task_id, .. } => Ok(task_id),
        BatchItem::Refused { problem, .. } => Err(anyhow!("{problem}")),
    };
    client.submit_batch(tasks).await?.items.into_iter().map(id).collect()
}

/// How often each task was executed.
fn executions(target: &Target) -> HashMap<TaskId, usize> {
    let mut counts = HashMap::new();
    for execution in &target.log().executions {
        *counts.entry(execution.task).or_default() += 1;
    }
    counts
}
