//! A newer node changes the schema under one that runs.

use std::time::{Duration, Instant};

use duly_core::id::TaskId;
use duly_testkit::Target;
use duly_testkit::raw::Connection;
use duly_testkit::wait::{PATIENCE, eventually, observe_for, within};

use super::start::order;
use super::{Cluster, TTL, executions, submit_all};

const TASKS: usize = 10;
/// What is left of the script of a newer node: it says nothing of older ones, or that they may stay.
const NEWER: &str = "INSERT INTO duly.migration (version) VALUES (9999)";
const NEWER_BUT_ALIKE: &str = "INSERT INTO duly.migration (version, oldest) VALUES (9999, 1)";
const AS_BEFORE: &str = "DELETE FROM duly.migration WHERE version = 9999";

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_too_old_stops_and_says_so() -> anyhow::Result<()> {
    let Some(cluster) = Cluster::start(1, &[]).await? else { return Ok(()) };
    let (url, node) = (cluster.scratch.url(), &cluster.nodes[0]);
    let target = Target::start(Duration::ZERO).await?;
    let mut ids = submit_all(&node.client, &vec![target.held_task(); TASKS]).await?;
    within("all tasks run", target.wait_for(|log| log.in_flight == TASKS)).await??;
    order(&url, NEWER).await?;
    let refusal = refused(node.url(), &mut ids).await?;
    for word in ["9999", "too old", "update it"] {
        assert!(refusal.contains(word), "{word:?} is not in {refusal:?}");
    }
    let answer = Connection::open(node.url()).await?.get("/readyz").await?;
    let reasons = answer.json()["reasons"].to_string();
    assert_eq!(answer.status, 503, "{answer:?}");
    assert!(reasons.contains("9999") && reasons.contains("update it"), "{reasons}");
    target.release();
    within("all executions end", target.wait_for(|log| log.in_flight == 0)).await??;
    let unfinished = "SELECT count(*) FROM duly.task WHERE status = 2";
    assert_eq!(cluster.ask(unfinished).await?, TASKS as i64, "it writes nothing any more");

    // A database that was restored is for this node again.
    order(&url, AS_BEFORE).await?;
    let is_ready = || async { node.client.ready().await.ok()?.is_ready().then_some(()) };
    eventually("the node is ready again", PATIENCE, is_ready).await?;
    cluster.succeeded(&ids).await?;
    let counts = executions(&target);
    assert!(ids.iter().take(TASKS).all(|id| counts[id] == 1), "outcomes waited");
    Ok(())
}

/// Submits until the node takes no more, and returns what it says then. It is not
/// asked whether it is ready meanwhile: it finds out by itself.
async fn refused(url: &str, ids: &mut Vec<TaskId>) -> anyhow::Result<String> {
    let mut connection = Connection::open(url).await?;
    let since = Instant::now();
    while since.elapsed() < PATIENCE {
        let answer = connection.post("/v1/tasks", br#"{"type":"echo"}"#).await?;
        if answer.status != 201 {
            assert_eq!((answer.status, answer.code().as_str()), (503, "STORE_UNAVAILABLE"));
            return Ok(answer.json()["detail"].to_string());
        }
        ids.push(answer.json()["taskId"].as_str().unwrap_or_default().parse()?);
        observe_for(TTL / 20).await;
    }
    panic!("the node has not noticed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_goes_on_beside_newer_ones_that_let_it() -> anyhow::Result<()> {
    let Some(mut cluster) = Cluster::start(1, &[]).await? else { return Ok(()) };
    let url = cluster.scratch.url();
    order(&url, NEWER_BUT_ALIKE).await?;
    let mut connection = Connection::open(cluster.nodes[0].url()).await?;
    let since = Instant::now();
    while since.elapsed() < 2 * TTL {
        let answer = connection.get("/readyz").await?;
        assert_eq!(answer.status, 200, "{answer:?}");
        observe_for(TTL / 20).await;
    }
    cluster.add("restarted", &["--session-ttl", "2s"]).await?;
    let target = Target::start(Duration::ZERO).await?;
    for node in &cluster.nodes {
        let ids = submit_all(&node.client, &vec![target.task(); TASKS]).await?;
        cluster.succeeded(&ids).await?;
    }
    Ok(())
}
