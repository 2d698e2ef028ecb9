//! Nodes of the real binary on one PostgreSQL.

use std::sync::Arc;
use std::time::Instant;

use anyhow::anyhow;
use duly_client::Client;
use duly_client::wire::{BatchItem, SubmitRequest};
use duly_core::id::TaskId;
use duly_store::clock::SystemClock;
use duly_store::postgres::scratch::{self, Scratch};
use duly_testkit::wait::{PATIENCE, eventually};
use duly_testkit::{Node, report};
use tokio::task::JoinSet;
use tokio_postgres::NoTls;

use super::DULY;

const BATCH: usize = 5_000;

/// Nodes on a database of their own.
pub(crate) struct Cluster {
    pub(crate) nodes: Vec<Node>,
    // Dropped after the nodes.
    pub(crate) scratch: Scratch,
}

impl Cluster {
    /// Starts nodes with this session TTL. Returns nothing if there is no server to test on.
    pub(crate) async fn with_ttl(
        ttl: &str,
        nodes: usize,
        extra: &[&str],
    ) -> anyhow::Result<Option<Self>> {
        let Some(server) = scratch::server() else { return Ok(None) };
        let scratch = Scratch::new(&server, Arc::new(SystemClock::default())).await;
        let mut cluster = Self { nodes: Vec::new(), scratch };
        for number in 0..nodes {
            let flags: Vec<_> = ["--session-ttl", ttl].iter().chain(extra).copied().collect();
            cluster.add(&format!("node-{number}"), &flags).await?;
        }
        Ok(Some(cluster))
    }

    pub(crate) async fn add(&mut self, name: &str, flags: &[&str]) -> anyhow::Result<()> {
        self.nodes.push(Node::start(DULY.as_ref(), name, &self.scratch.url(), flags).await?);
        Ok(())
    }

    /// Runs a query that returns one number on the database itself.
    pub(crate) async fn ask(&self, sql: &str) -> anyhow::Result<i64> {
        let (client, connection) = tokio_postgres::connect(&self.scratch.url(), NoTls).await?;
        let mut driver = JoinSet::new();
        driver.spawn(connection);
        Ok(client.query_one(sql, &[]).await?.try_get(0)?)
    }

    pub(crate) fn client(&self) -> &Client {
        &self.nodes[0].client
    }

    /// Waits until no task waits or runs in the default queue.
    pub(crate) async fn drained(&self) -> anyhow::Result<()> {
        let client = self.client();
        let is_empty = || async {
            let queue = client.queue_stats("default").await.ok()?;
            (queue.waiting.count == 0 && queue.running.count == 0).then_some(())
        };
        eventually("all tasks end", PATIENCE * 5, is_empty).await
    }

    /// Submits copies of a task through all nodes in turn, and waits until all have ended.
    pub(crate) async fn run_all(
        &self,
        task: &SubmitRequest,
        count: usize,
    ) -> anyhow::Result<Vec<TaskId>> {
        let started = Instant::now();
        let mut ids = Vec::with_capacity(count);
        for number in 0..count.div_ceil(BATCH) {
            let client = &self.nodes[number % self.nodes.len()].client;
            let batch = vec![task.clone(); BATCH.min(count - ids.len())];
            ids.extend(submit_all(client, &batch).await?);
        }
        self.drained().await?;
        let nodes = self.nodes.len();
        report::say(&format!("{count} tasks on {nodes} nodes took {:?}", started.elapsed()));
        Ok(ids)
    }
}

pub(crate) async fn submit_all(
    client: &Client,
    tasks: &[SubmitRequest],
) -> anyhow::Result<Vec<TaskId>> {
    let id = |item| match item {
        BatchItem::Accepted { task_id, .. } => Ok(task_id),
        BatchItem::Refused { problem, .. } => Err(anyhow!("{problem}")),
    };
    client.submit_batch(tasks).await?.items.into_iter().map(id).collect()
}
