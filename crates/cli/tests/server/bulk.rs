//! One order for 100,000 tasks: it shows how far it is, goes on after a kill, stops when it is told
//! to, and touches each task once.

use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use duly_client::Client;
use duly_client::wire::{BulkAnswer, BulkRequest, BulkView, SubmitRequest};
use duly_core::state::Status;
use duly_testkit::wait::eventually;
use duly_testkit::{Server, report};

use crate::DULY;

const TASKS: usize = 100_000;
const BATCH: usize = 10_000;
/// So much must be done before an order is disturbed.
const MIDDLE: u64 = 10_000;
/// A debug build on a busy machine.
const PATIENCE: Duration = Duration::from_secs(240);

#[tokio::test(flavor = "multi_thread")]
async fn a_bulk_action_survives_a_kill_and_touches_each_task_once() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let start = Instant::now();
    let server = Server::start(Path::new(DULY), data.path(), &[]).await?;
    fail_many(server.client()).await?;
    let failed_in = start.elapsed();
    server.kill().await?;

    // Without workers nothing runs again, so that what is seen is the order's doing alone.
    let none = ["--concurrency", "0"];
    let server = Server::start(Path::new(DULY), data.path(), &none).await?;
    let bulk = started(server.client(), "replay").await?;
    let before = in_the_middle(server.client(), &bulk).await?;
    server.kill().await?;
    let server = Server::start(Path::new(DULY), data.path(), &none).await?;
    let after = server.client().get_bulk(bulk.bulk_id, None).await?;
    ensure!(after.done >= before.done, "progress was lost: {before:?}, then {after:?}");
    let ended = end_of(server.client(), &bulk).await?;
    assert_eq!((ended.status, ended.done, ended.skipped), (Status::Success, TASKS as u64, 0));
    let (tasks, runs) = look_at_all(server.client(), "PENDING").await?;
    assert_eq!((tasks, runs), (TASKS, HashSet::from([2])), "each of them once");

    let bulk = started(server.client(), "cancel").await?;
    in_the_middle(server.client(), &bulk).await?;
    let aborted = server.client().abort_bulk(bulk.bulk_id).await?;
    assert_eq!(aborted.status, Status::Cancelled);
    let (cancelled, _) = look_at_all(server.client(), "CANCELLED").await?;
    let told = server.client().get_bulk(bulk.bulk_id, None).await?;
    assert_eq!(told.done, cancelled as u64, "it tells what it has done");
    ensure!((1..TASKS).contains(&cancelled), "{cancelled} were cancelled: the abort came too late");
    let bulk = started(server.client(), "cancel").await?;
    let ended = end_of(server.client(), &bulk).await?;
    assert_eq!(ended.done, (TASKS - cancelled) as u64, "the rest");
    report::say(&format!(
        "{TASKS} tasks failed in {failed_in:.1?}; killed after {} replays, seen {} then; aborted \
         after {cancelled} cancels; {:.1?} in all",
        before.done,
        after.done,
        start.elapsed(),
    ));
    Ok(())
}

/// Submits tasks and waits until all of them have failed.
async fn fail_many(client: &Client) -> anyhow::Result<()> {
    let task = SubmitRequest {
        queue: Some("many".to_owned()),
        retries: Some(0),
        payload: Some(serde_json::value::to_raw_value(&serde_json::json!({"failTimes": 99}))?),
        ..SubmitRequest::new("flaky")
    };
    for _ in 0..TASKS / BATCH {
        client.submit_batch(&vec![task.clone(); BATCH]).await?;
    }
    let all_failed = || async {
        let trial = BulkRequest { dry_run: Some(true), ..order("replay") };
        match client.bulk(&trial).await.ok()? {
            BulkAnswer::Preview(found) => (found.count == TASKS as u64).then_some(()),
            BulkAnswer::Started(_) => None,
        }
    };
    eventually("all tasks have failed", PATIENCE, all_failed).await
}

fn order(action: &str) -> BulkRequest {
    let filter = Some("queue:many".to_owned());
    BulkRequest { action: action.to_owned(), filter, ..BulkRequest::default() }
}

async fn started(client: &Client, action: &str) -> anyhow::Result<BulkView> {
    match client.bulk(&order(action)).await? {
        BulkAnswer::Started(bulk) => Ok(bulk),
        BulkAnswer::Preview(found) => anyhow::bail!("only a trial: {found:?}"),
    }
}

/// Waits until an order has done something and not everything.
async fn in_the_middle(client: &Client, bulk: &BulkView) -> anyhow::Result<BulkView> {
    let seen = || async {
        let bulk = client.get_bulk(bulk.bulk_id, None).await.ok()?;
        (bulk.done >= MIDDLE).then_some(bulk)
    };
    let bulk = eventually("the order has come far", PATIENCE, seen).await?;
    let total = bulk.total.context("it was not counted")?;
    ensure!(bulk.done < total && !bulk.status.is_terminal(), "seen too late: {bulk:?}");
    Ok(bulk)
}

async fn end_of(client: &Client, bulk: &BulkView) -> anyhow::Result<BulkView> {
    let ended = || async {
        let wait = Some(Duration::from_secs(10));
        let bulk = client.get_bulk(bulk.bulk_id, wait).await.ok()?;
        bulk.status.is_terminal().then_some(bulk)
    };
    eventually("the order has ended", PATIENCE, ended).await
}

/// How many of the tasks are in this state, and in which runs they are.
async fn look_at_all(client: &Client, status: &str) -> anyhow::Result<(usize, HashSet<u32>)> {
    let filter = format!("queue:many status:{status}");
    let (mut tasks, mut runs, mut cursor) = (0, HashSet::new(), None);
    loop {
        let page = client.list_tasks(&filter, Some(200), cursor.as_deref()).await?;
        tasks += page.items.len();
        runs.extend(page.items.iter().map(|task| task.run));
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok((tasks, runs));
        }
    }
}
