//! A dump of a database that nodes and workers use, restored into another one: what was
//! acknowledged before the dump ends there, and a worker that held a lease then has lost it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::ensure;
use duly_client::Client;
use duly_client::wire::{SubmitRequest, TaskView};
use duly_core::id::TaskId;
use duly_core::state::Status;
use duly_store::postgres::database::Database;
use duly_store::postgres::scratch;
use duly_testkit::raw::{Answer, Connection};
use duly_testkit::wait::{PATIENCE, eventually, within};
use duly_testkit::{Node, Target, postgres};
use serde_json::{Value, json};

use super::{Cluster, DULY, TTL, executions};

/// Tasks of each kind.
const EACH: usize = 3;
/// The waiting ones are due after the dump, and after the node that was dumped is gone.
const DELAY: Duration = Duration::from_secs(10);
/// Types that only remote workers serve: one whose worker does not report to the restored node, and
/// one whose worker does.
const FAR: &str = "far";
const KEPT: &str = "kept";

/// Acknowledged tasks by their keys.
type Tasks = BTreeMap<String, TaskId>;

#[tokio::test(flavor = "multi_thread")]
async fn a_dump_of_a_live_database_works_on_another_server() -> anyhow::Result<()> {
    let Some(mut cluster) = Cluster::start(1, &[]).await? else { return Ok(()) };
    let server = scratch::server().expect("the cluster has one");
    let target = Target::start(Duration::ZERO).await?;
    let old = cluster.nodes.remove(0);
    let tasks = Before::make(&old, &target).await?;
    let mut silent = RemoteWorker::start(old.url(), FAR).await?;
    let held = silent.claim_all(EACH).await?;
    assert!(held.iter().all(|(task, _)| tasks.far.values().any(|id| id.to_string() == *task)));
    let mut prompt = RemoteWorker::start(old.url(), KEPT).await?;
    let kept = prompt.claim_all(EACH).await?;

    let folder = tempfile::tempdir()?;
    let file = folder.path().join("duly.dump");
    let url = cluster.scratch.url();
    let dump = prompt.beat_during(postgres::dump(&url, &file));
    silent.beat_during(dump).await?;
    // Acknowledged after the dump: the restored database does not know it.
    let after = submit(&old.client, "after", &SubmitRequest::new("echo")).await?;
    old.kill().await?;
    target.release();
    within("its calls end", target.wait_for(|log| log.in_flight == 0)).await??;

    let database =
        Database::make(&server, &format!("duly_restored_{}", std::process::id())).await?;
    let restored = async {
        postgres::restore(&file, database.url()).await?;
        let since = Instant::now();
        let flags = ["--session-ttl", "2s"];
        let node = Node::start(DULY.as_ref(), "restored", database.url(), &flags).await?;
        prompt.connection = Connection::open(node.url()).await?;
        prompt.commit(&kept).await?;
        leases_are_taken_back(&node, since, &silent, &held).await?;
        tasks.end_once(&node.client, &target).await?;
        keys_are_known(&node.client, &tasks, after).await
    };
    let restored = restored.await;
    database.remove().await?;
    restored
}

/// What there is before the dump.
struct Before {
    succeeded: Tasks,
    failed: Tasks,
    waiting: Tasks,
    /// Run by the node itself when it is dumped.
    running: Tasks,
    /// Held by a remote worker when it is dumped.
    far: Tasks,
    /// The same; its worker goes on with the restored node.
    kept: Tasks,
}

impl Before {
    async fn make(node: &Node, target: &Target) -> anyhow::Result<Self> {
        let client = &node.client;
        let all = async |name: &str, task: SubmitRequest| {
            let mut tasks = Tasks::new();
            for number in 0..EACH {
                let key = format!("{name}-{number}");
                let id = submit(client, &key, &task).await?;
                tasks.insert(key, id);
            }
            anyhow::Ok(tasks)
        };
        let delayed = SubmitRequest { delay_seconds: Some(DELAY.as_secs_f64()), ..target.task() };
        let nowhere = serde_json::value::to_raw_value(&json!({"url": "http://127.0.0.1:1/"}))?;
        let failing = SubmitRequest {
            payload: Some(nowhere),
            retries: Some(0),
            ..SubmitRequest::new("http")
        };
        let before = Self {
            waiting: all("waiting", delayed).await?,
            succeeded: all("succeeded", SubmitRequest::new("echo")).await?,
            failed: all("failed", failing).await?,
            running: all("running", target.held_task()).await?,
            far: all("far", SubmitRequest::new(FAR)).await?,
            kept: all("kept", SubmitRequest::new(KEPT)).await?,
        };
        for (tasks, status) in
            [(&before.succeeded, Status::Success), (&before.failed, Status::Failed)]
        {
            for id in tasks.values() {
                assert_eq!(ended(client, *id).await?.status, status);
            }
        }
        within("some run", target.wait_for(|log| log.in_flight == EACH)).await??;
        Ok(before)
    }

    /// All but those of the silent worker end in the restored database, as often as they should.
    async fn end_once(&self, client: &Client, target: &Target) -> anyhow::Result<()> {
        for (tasks, status, losses) in [
            (&self.succeeded, Status::Success, 0),
            (&self.failed, Status::Failed, 0),
            (&self.kept, Status::Success, 0),
            (&self.running, Status::Success, 1),
            (&self.waiting, Status::Success, 0),
        ] {
            for id in tasks.values() {
                let task = ended(client, *id).await?;
                let expected = (status, losses, 1, 1 + losses);
                assert_eq!(
                    (task.status, task.losses, task.attempt, task.epoch),
                    expected,
                    "{task:?}"
                );
            }
        }
        let counts = executions(target);
        assert!(self.waiting.values().all(|id| counts[id] == 1), "once, and there: {counts:?}");
        assert!(self.running.values().all(|id| counts[id] == 2), "before and there: {counts:?}");
        assert_eq!(counts.len(), 2 * EACH, "what had ended does not run again: {counts:?}");
        Ok(())
    }
}

/// Another worker gets what the first one holds, under higher epochs, and the first one, which
/// goes on with the restored node, is refused.
async fn leases_are_taken_back(
    node: &Node,
    since: Instant,
    old: &RemoteWorker,
    held: &[(String, u64)],
) -> anyhow::Result<()> {
    let mut new = RemoteWorker::start(node.url(), FAR).await?;
    let leases = new.claim_all(held.len()).await?;
    assert!(since.elapsed() >= TTL, "they were taken after {:?}", since.elapsed());
    for (task, epoch) in &leases {
        let before = held.iter().find(|(other, _)| other == task).map(|(_, epoch)| *epoch);
        assert_eq!(Some(*epoch), before.map(|epoch| epoch + 1), "{task}");
    }
    // The worker does not know that it talks to another database.
    let mut stale =
        RemoteWorker { session: old.session.clone(), ..RemoteWorker::to(node.url()).await? };
    let beat = stale.beat().await?;
    assert_eq!((beat.status, beat.code().as_str()), (404, "SESSION_NOT_FOUND"), "{beat:?}");
    let answer = stale.finish(held).await?;
    let is_refused = match answer.status {
        200 => answer.json()["items"]
            .as_array()
            .is_some_and(|items| items.iter().all(|item| item["status"] == "LEASE_LOST")),
        _ => answer.code() == "SESSION_NOT_FOUND",
    };
    assert!(is_refused, "{answer:?}");
    new.commit(&leases).await?;
    for (task, epoch) in &leases {
        let task = ended(&node.client, task.parse()?).await?;
        let shown = (task.status, task.losses, u64::from(task.epoch));
        assert_eq!(shown, (Status::Success, 1, *epoch), "{task:?}");
    }
    Ok(())
}

/// A key from before the dump leads to its task, and one from after it to a new one.
async fn keys_are_known(client: &Client, before: &Before, after: TaskId) -> anyhow::Result<()> {
    for (key, id) in &before.succeeded {
        assert_eq!(submit(client, key, &SubmitRequest::new("echo")).await?, *id);
    }
    let again = submit(client, "after", &SubmitRequest::new("echo")).await?;
    assert_ne!(again, after, "it was acknowledged after the dump");
    assert!(client.get_task(after, None).await.is_err(), "and is not there");
    Ok(())
}

async fn submit(client: &Client, key: &str, task: &SubmitRequest) -> anyhow::Result<TaskId> {
    let task = SubmitRequest { idempotency_key: Some(key.to_owned()), ..task.clone() };
    Ok(client.submit(&task).await?.task_id)
}

async fn ended(client: &Client, id: TaskId) -> anyhow::Result<TaskView> {
    let ask = || async {
        let task = client.get_task(id, Some(Duration::from_secs(10))).await.ok()?;
        task.status.is_terminal().then_some(task)
    };
    eventually("the task ends", PATIENCE, ask).await
}

/// A worker that speaks the protocol by hand.
struct RemoteWorker {
    connection: Connection,
    session: String,
    seq: u64,
}

impl RemoteWorker {
    async fn to(url: &str) -> anyhow::Result<Self> {
        Ok(Self { connection: Connection::open(url).await?, session: String::new(), seq: 0 })
    }

    async fn start(url: &str, task_type: &str) -> anyhow::Result<Self> {
        let mut worker = Self::to(url).await?;
        let answer =
            worker.post("/v1/sessions", &json!({"name": "remote", "types": [task_type]})).await?;
        assert_eq!(answer.status, 201, "{answer:?}");
        worker.session = answer.json()["sessionId"].as_str().unwrap_or_default().to_owned();
        Ok(worker)
    }

    async fn post(&mut self, path: &str, body: &Value) -> anyhow::Result<Answer> {
        self.connection.post(path, body.to_string().as_bytes()).await
    }

    /// Beats until it has so many leases: tasks and epochs.
    async fn claim_all(&mut self, count: usize) -> anyhow::Result<Vec<(String, u64)>> {
        let (mut leases, since) = (Vec::new(), Instant::now());
        while leases.len() < count {
            ensure!(since.elapsed() < PATIENCE, "only {leases:?} were granted");
            leases.extend(self.claim(count - leases.len()).await?);
            assert_eq!(self.beat().await?.status, 200);
        }
        Ok(leases)
    }

    /// Beats while something else happens, and once after it.
    async fn beat_during(
        &mut self,
        event: impl Future<Output = anyhow::Result<()>>,
    ) -> anyhow::Result<()> {
        let mut event = std::pin::pin!(event);
        loop {
            let ended = tokio::time::timeout(TTL / 8, &mut event).await;
            assert_eq!(self.beat().await?.status, 200);
            if let Ok(ended) = ended {
                return ended;
            }
        }
    }

    /// What it gets within a second.
    async fn claim(&mut self, max: usize) -> anyhow::Result<Vec<(String, u64)>> {
        self.seq += 1;
        let claim =
            json!({"sessionId": self.session, "seq": self.seq, "max": max, "waitSeconds": 1});
        let answer = self.post("/v1/leases", &claim).await?;
        assert_eq!(answer.status, 200, "{answer:?}");
        let lease = |lease: &Value| {
            let task = lease["task"]["taskId"].as_str()?.to_owned();
            Some((task, lease["epoch"].as_u64()?))
        };
        let answer = answer.json();
        Ok(answer["leases"].as_array().into_iter().flatten().filter_map(lease).collect())
    }

    async fn beat(&mut self) -> anyhow::Result<Answer> {
        let received: Vec<_> = (1..=self.seq).collect();
        let path = format!("/v1/sessions/{}/heartbeat", self.session);
        self.post(&path, &json!({"received": received})).await
    }

    /// Its outcomes are accepted.
    async fn commit(&mut self, leases: &[(String, u64)]) -> anyhow::Result<()> {
        let answer = self.finish(leases).await?;
        let items = answer.json()["items"].as_array().cloned().unwrap_or_default();
        assert_eq!(items.len(), leases.len(), "{answer:?}");
        assert!(items.iter().all(|item| item["status"] == "DONE"), "{answer:?}");
        Ok(())
    }

    async fn finish(&mut self, leases: &[(String, u64)]) -> anyhow::Result<Answer> {
        let outcome = |(task, epoch): &(String, u64)| json!({"taskId": task, "epoch": epoch, "outcome": "success"});
        let outcomes: Vec<_> = leases.iter().map(outcome).collect();
        self.post("/v1/leases/finish", &json!({"sessionId": self.session, "outcomes": outcomes}))
            .await
    }
}
