//! A sink of three nodes whose relays are killed again and again, and beside which a transaction is open:
//! every committed outcome arrives, with one id, and the events of a task in the order of its changes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail};
use duly_client::wire::CloudEvent;
use duly_core::event::EventKind;
use duly_core::id::TaskId;
use duly_testkit::report;
use duly_testkit::wait::{PATIENCE, eventually, observe_for};
use serde_json::json;
use tokio::task::JoinSet;
use tokio_postgres::NoTls;

use super::harness::{Cluster, submit_all};

/// Tasks; `DULY_EVENT_TASKS` asks for another number.
const TASKS: usize = 12_000;
/// How many relays are killed; `DULY_RELAY_KILLS` asks for another number.
const KILLS: usize = 3;
/// How long the transaction is open; `DULY_HELD_SECONDS` asks for another time.
const HELD_SECONDS: usize = 10;
const BATCH: usize = 500;

struct World {
    cluster: Cluster,
    file: PathBuf,
    _folder: tempfile::TempDir,
    bug: Option<&'static str>,
}

impl World {
    async fn start(bug: Option<&'static str>) -> anyhow::Result<Option<Self>> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("events.ndjson");
        let Some(cluster) = Cluster::start(0, &[]).await? else { return Ok(None) };
        let mut world = Self { cluster, file, _folder: folder, bug };
        for number in 0..3 {
            world.add(&format!("node-{number}")).await?;
        }
        Ok(Some(world))
    }

    async fn add(&mut self, name: &str) -> anyhow::Result<()> {
        let file = self.file.to_str().context("a path in UTF-8")?;
        let mut flags = vec!["--session-ttl", "2s", "--events-file", file];
        flags.extend(["--events-kinds", "task.*"]);
        flags.extend(self.bug.iter().flat_map(|bug| ["--planted-bug", bug]));
        self.cluster.add(name, &flags).await
    }

    /// Kills the node that serves the sink, and starts another one.
    async fn kill_relay(&mut self, round: usize) -> anyhow::Result<()> {
        let url = self.cluster.scratch.url();
        let ask = || async { text(&url, RELAY).await.ok()? };
        let name = eventually("a node serves the sink", PATIENCE, ask).await?;
        let place = self.cluster.nodes.iter().position(|node| node.name == name);
        let Some(place) = place else { return Ok(()) };
        self.cluster.nodes.remove(place).kill().await?;
        self.add(&format!("again-{round}")).await
    }

    /// What the sink has received by now, in order.
    fn received(&self) -> anyhow::Result<Vec<CloudEvent>> {
        let text = std::fs::read_to_string(&self.file).unwrap_or_default();
        // A relay that was killed within a line leaves a part of it.
        Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }

    fn outcomes(&self) -> anyhow::Result<HashSet<String>> {
        let ended = |event: &CloudEvent| event.kind() == Some(EventKind::TaskSucceeded);
        Ok(self.received()?.into_iter().filter(ended).map(|event| event.subject).collect())
    }
}

/// The name of the node that serves the sink.
const RELAY: &str = "SELECT n.name FROM duly.sink s JOIN duly.node n ON n.id = s.node
    WHERE s.name = 'duly.file' AND s.held_until > duly.now()";
const TROUBLE: &str = "SELECT trouble FROM duly.sink WHERE name = 'duly.file'";

/// Asks the database for a text.
async fn text(url: &str, sql: &str) -> anyhow::Result<Option<String>> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    let row = client.query_opt(sql, &[]).await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?.flatten())
}

/// Holds a transaction open that has written a task and its event.
async fn hold(url: String, time: Duration) -> anyhow::Result<TaskId> {
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await?;
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    client.batch_execute("BEGIN").await?;
    let submit = "SELECT duly.submit('echo')::text";
    let id: String = client.query_one(submit, &[]).await?.try_get(0)?;
    observe_for(time).await;
    client.batch_execute("COMMIT").await?;
    Ok(id.parse()?)
}

/// Runs tasks while relays are killed; the ids of all that were acknowledged.
async fn run(world: &mut World) -> anyhow::Result<Vec<TaskId>> {
    let tasks = report::number("DULY_EVENT_TASKS", TASKS)?;
    let kills = report::number("DULY_RELAY_KILLS", KILLS)?;
    let held = u64::try_from(report::number("DULY_HELD_SECONDS", HELD_SECONDS)?)?;
    let batch = vec![serde_json::from_value(json!({"type": "echo"}))?; BATCH];
    // The first task of a type makes its lane, and others wait for a lane that is not committed yet.
    let mut ids = submit_all(world.cluster.client(), &batch).await?;
    let mut open = JoinSet::new();
    open.spawn(hold(world.cluster.scratch.url(), Duration::from_secs(held)));
    for round in 0..kills {
        while ids.len() < tasks * (round + 1) / kills {
            let node = &world.cluster.nodes[ids.len() / BATCH % world.cluster.nodes.len()];
            ids.extend(submit_all(&node.client, &batch).await?);
        }
        world.kill_relay(round).await?;
    }
    ids.push(open.join_next().await.context("a transaction")???);
    world.cluster.drained().await?;
    Ok(ids)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_event_arrives_although_relays_are_killed() -> anyhow::Result<()> {
    let Some(mut world) = World::start(None).await? else { return Ok(()) };
    let ids = run(&mut world).await?;
    let expected: HashSet<_> = ids.iter().map(ToString::to_string).collect();
    let complete = || async { (world.outcomes().ok()? == expected).then_some(()) };
    if eventually("all outcomes", PATIENCE * 3, complete).await.is_err() {
        let found = world.outcomes()?;
        let missing: Vec<_> = expected.difference(&found).take(5).collect();
        bail!("{} of {} outcomes arrived; missing: {missing:?}", found.len(), expected.len());
    }
    judge(&world.received()?, &ids)
}

fn judge(received: &[CloudEvent], ids: &[TaskId]) -> anyhow::Result<()> {
    let (mut by_id, mut repeated) = (HashMap::new(), 0);
    let mut tasks: BTreeMap<&str, Vec<(u32, EventKind)>> = BTreeMap::new();
    for event in received {
        let (kind, epoch) = (event.kind().context("a known kind")?, event.epoch);
        let what = (event.subject.as_str(), kind, epoch);
        if *by_id.entry(event.id.as_str()).or_insert(what) != what {
            bail!("two events have the id {}", event.id);
        }
        let known = tasks.entry(&event.subject).or_default();
        let what = (epoch.context("an epoch")?, kind);
        if known.contains(&what) {
            repeated += 1;
        } else {
            known.push(what);
        }
    }
    let distinct: usize = tasks.values().map(Vec::len).sum();
    assert_eq!(by_id.len(), distinct, "an event has one id, however often it is delivered");
    for id in ids {
        let events = &tasks[id.to_string().as_str()];
        assert!(events.is_sorted_by_key(|(epoch, kind)| (*epoch, rank(*kind))), "{id}: {events:?}");
        let has = |kind| events.iter().filter(|(_, it)| *it == kind).count();
        assert_eq!((has(EventKind::TaskCreated), has(EventKind::TaskSucceeded)), (1, 1), "{id}");
        assert_eq!(has(EventKind::TaskStarted), 1 + has(EventKind::TaskLost), "{id}: {events:?}");
    }
    report::say(&format!("{} events of {} tasks; {repeated} came again", by_id.len(), tasks.len()));
    Ok(())
}

/// The order of the events of one epoch.
fn rank(kind: EventKind) -> u8 {
    match kind {
        EventKind::TaskCreated => 0,
        EventKind::TaskStarted => 1,
        _ => 2,
    }
}

#[cfg(feature = "planted-bugs")]
#[tokio::test(flavor = "multi_thread")]
async fn positions_that_are_saved_too_early_lose_events() -> anyhow::Result<()> {
    let Some(mut world) = World::start(Some("position-before-delivery")).await? else {
        return Ok(());
    };
    // A relay must die between a position and its delivery: the file cannot be written meanwhile.
    std::fs::create_dir(&world.file)?;
    let ids = submit_all(
        world.cluster.client(),
        &vec![serde_json::from_value(json!({"type": "echo"}))?; BATCH],
    )
    .await?;
    world.cluster.drained().await?;
    let url = world.cluster.scratch.url();
    let troubled = || async { text(&url, TROUBLE).await.ok()? };
    eventually("the sink refuses events", PATIENCE, troubled).await?;
    world.kill_relay(0).await?;
    std::fs::remove_dir(&world.file)?;
    let one = [serde_json::from_value(json!({"type": "echo"}))?];
    let last = submit_all(world.cluster.client(), &one).await?[0].to_string();
    let arrived = || async { world.outcomes().ok()?.contains(&last).then_some(()) };
    eventually("the last outcome", PATIENCE, arrived).await?;
    // The page that was read when the relay died may have been one of the first.
    let received = world.received()?;
    let arrived: HashSet<_> =
        received.iter().map(|event| (event.subject.as_str(), event.kind())).collect();
    let is_lost = |id: &TaskId| {
        let id = id.to_string();
        [EventKind::TaskCreated, EventKind::TaskSucceeded]
            .iter()
            .any(|kind| !arrived.contains(&(id.as_str(), Some(*kind))))
    };
    let noticed = ids.iter().any(is_lost);
    assert!(noticed, "the test does not notice positions that are saved too early");
    Ok(())
}
