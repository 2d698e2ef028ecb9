//! A disk that is full: refusals that say so, reads that go on, and a cure without a restart.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use duly_core::id::TaskId;
use duly_core::state::Status;
use duly_testkit::disk::{Disk, Filler};
use duly_testkit::raw::{Answer, Connection};
use duly_testkit::wait::{eventually, within};
use duly_testkit::{Server, Target, report};

use super::{outcome, start};

const DISK_BYTES: usize = 8 << 20;
/// How long the cure may take once there is space.
const CURE: Duration = Duration::from_secs(10);
/// Submits that are tried while the disk is full.
const REFUSALS: usize = 20;
/// More than the disk holds.
const TOO_MANY: usize = 200;

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_answers_503_and_heals_without_a_restart() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let Some(disk) = Disk::mount(directory.path(), &format!("size={DISK_BYTES}"))? else {
        return Ok(());
    };
    let target = Target::start(Duration::ZERO).await?;
    let server = start(directory.path()).await?;
    let mut acked = BTreeSet::new();
    let held = server.client().submit(&target.held_task()).await?.task_id;
    within("the execution begins", target.wait_for(|log| log.in_flight == 1)).await??;
    acked.insert(held);

    let mut connection = Connection::open(server.url()).await?;
    let filler = fill_up(&disk, &mut connection, &mut acked).await?;
    for _ in 0..REFUSALS {
        assert_is_full(&submit(&mut connection).await?);
    }
    assert_is_not_ready(&mut connection).await?;
    assert_can_be_read(&server, &acked).await?;
    target.release();
    within("the execution ends", target.wait_for(|log| log.in_flight == 0)).await??;
    assert_is_full(&submit(&mut connection).await?);
    assert_eq!(server.client().get_task(held, None).await?.status, Status::Running);

    filler.remove()?;
    let cured = Instant::now();
    let is_ready = || async { server.client().ready().await.ok()?.is_ready().then_some(()) };
    eventually("the server is ready again", CURE, is_ready).await?;
    let cured = cured.elapsed();
    acked.insert(id_of(&submit(&mut connection).await?));
    assert_eq!(outcome(&server, held).await?.status, Status::Success);
    assert_eq!(target.log().executions.len(), 1, "the outcome was kept, not the work repeated");
    assert_holds(&server, &acked).await?;

    server.kill().await?;
    let server = start(directory.path()).await?;
    assert_holds(&server, &acked).await?;
    report::say(&format!(
        "a full disk: ready {} ms after there was space; {} acknowledged, all found then and after \
         a kill",
        cured.as_millis(),
        acked.len()
    ));
    Ok(())
}

/// The planted bug acknowledges what a full disk did not take.
#[cfg(feature = "planted-bugs")]
#[tokio::test(flavor = "multi_thread")]
async fn a_swallowed_full_disk_is_caught() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let Some(disk) = Disk::mount(directory.path(), &format!("size={DISK_BYTES}"))? else {
        return Ok(());
    };
    let bug = ["--planted-bug", "swallow-disk-full"];
    let server = Server::start(super::duly(), directory.path(), &bug).await?;
    let _filler = disk.take(DISK_BYTES / 8 * 5)?;
    let mut connection = Connection::open(server.url()).await?;
    let mut acked = BTreeSet::new();
    for _ in 0..TOO_MANY {
        acked.insert(id_of(&submit(&mut connection).await?));
    }
    let stored = server.all_tasks().await?.len();
    report::say(&format!("the planted bug: {TOO_MANY} acknowledged, {stored} stored"));
    assert!(stored < TOO_MANY, "the planted bug was not there");
    Ok(())
}

/// Fills the disk, mostly with tasks, to the last byte.
async fn fill_up(
    disk: &Disk,
    connection: &mut Connection,
    acked: &mut BTreeSet<TaskId>,
) -> anyhow::Result<Filler> {
    let mut filler = disk.take(DISK_BYTES / 8 * 5)?;
    submit_until_full(connection, acked).await?;
    filler.take_the_rest()?;
    use_up_the_log(connection, acked).await?;
    Ok(filler)
}

/// A task of 64 KiB that does not run today.
async fn submit(connection: &mut Connection) -> anyhow::Result<Answer> {
    let payload = "x".repeat(64 * 1024);
    let body = format!(r#"{{"type":"echo","payload":"{payload}","delaySeconds":86400}}"#);
    connection.post("/v1/tasks", body.as_bytes()).await
}

fn id_of(answer: &Answer) -> TaskId {
    assert_eq!(answer.status, 201, "{answer:?}");
    let id = answer.json()["taskId"].as_str().map(str::parse);
    id.and_then(Result::ok).expect("an answer to a submit names the task")
}

/// Submits until the disk has no room for one more.
async fn submit_until_full(
    connection: &mut Connection,
    acked: &mut BTreeSet<TaskId>,
) -> anyhow::Result<()> {
    for _ in 0..TOO_MANY {
        let answer = submit(connection).await?;
        if answer.status != 201 {
            assert_is_full(&answer);
            return Ok(());
        }
        acked.insert(id_of(&answer));
    }
    panic!("{TOO_MANY} tasks were taken by a full disk");
}

/// The log has room of its own where large tasks were begun and refused. Small ones use it up,
/// until not even a single page fits.
async fn use_up_the_log(
    connection: &mut Connection,
    acked: &mut BTreeSet<TaskId>,
) -> anyhow::Result<()> {
    for _ in 0..TOO_MANY {
        let answer =
            connection.post("/v1/tasks", br#"{"type":"echo","delaySeconds":86400}"#).await?;
        if answer.status == 201 {
            acked.insert(id_of(&answer));
            continue;
        }
        assert_is_full(&answer);
        if connection.get("/readyz").await?.status == 503 {
            return Ok(());
        }
    }
    panic!("{TOO_MANY} small tasks were taken by a full disk");
}

fn assert_is_full(answer: &Answer) {
    assert_eq!(answer.status, 503, "{answer:?}");
    assert_eq!(answer.code(), "STORE_UNAVAILABLE", "{answer:?}");
    assert!(answer.header("retry-after").is_some(), "{answer:?}");
    let detail = answer.json()["detail"].as_str().unwrap_or_default().to_owned();
    assert!(detail.contains("the disk is full"), "{detail}");
}

async fn assert_is_not_ready(connection: &mut Connection) -> anyhow::Result<()> {
    let answer = connection.get("/readyz").await?;
    assert_eq!(answer.status, 503, "{answer:?}");
    let reasons = answer.json()["reasons"].to_string();
    assert!(reasons.contains("the disk is full"), "{reasons}");
    assert_eq!(connection.get("/livez").await?.status, 200);
    Ok(())
}

async fn assert_can_be_read(server: &Server, acked: &BTreeSet<TaskId>) -> anyhow::Result<()> {
    for id in acked {
        server.client().get_task(*id, None).await?;
    }
    Ok(())
}

/// The server has all of these tasks, and no others.
async fn assert_holds(server: &Server, acked: &BTreeSet<TaskId>) -> anyhow::Result<()> {
    let tasks = server.all_tasks().await?;
    let found: BTreeSet<_> = tasks.iter().map(|task| task.task_id).collect();
    assert_eq!(&found, acked);
    Ok(())
}
