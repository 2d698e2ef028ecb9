//! What attempts report while they run, and which callers are woken.

use std::time::Duration;

use duly_core::id::TaskId;
use duly_core::log::LogChunk;
use duly_core::name::TenantName;
use duly_core::ports::store::{LogPage, LogPosition, ReadLogs, ReportItem, Reported};
use duly_core::ports::work_source::ReportFailed;
use duly_core::state::Status;
use tokio::time::Instant;

use crate::world::{World, draft, finish, settle, success};

const MINUTE: Duration = Duration::from_secs(60);

async fn logs(world: &World, task: TaskId, after: LogPosition) -> LogPage {
    let (tenant, limit) = (TenantName::default_tenant(), usize::MAX);
    let read = ReadLogs { tenant, task, epoch: None, after, limit };
    let page = world.engine.logs(read, MINUTE).await.expect("the store answers");
    page.expect("the task is stored")
}

fn line(task: TaskId, text: &str) -> Vec<ReportItem> {
    let log = Some(LogChunk { offset: 0, text: text.into() });
    vec![ReportItem { task, epoch: 1, progress: None, log }]
}

#[tokio::test(start_paused = true)]
async fn reports_of_a_local_attempt_show_at_once() {
    let world = World::new().await;
    let task = world.submit(draft("echo")).await.task.id;
    let lease = world.source.claim(1).await.unwrap().remove(0);
    let start = Instant::now();
    let waiting = logs(&world, task, LogPosition::default());
    let (page, answers) = tokio::join!(waiting, world.source.report(line(task, "x")));
    assert_eq!((page.parts.len(), answers), (1, Ok(vec![Reported::Done])));
    let ending = world.source.finish(vec![finish(&lease, success())]);
    let (page, _) = tokio::join!(logs(&world, task, page.next), ending);
    assert_eq!((page.parts.len(), page.live), (0, false), "the end shows too");
    assert!(start.elapsed().is_zero());
    assert_eq!(world.source.report(line(task, "x")).await, Ok(vec![Reported::LeaseLost]));
}

#[tokio::test(start_paused = true)]
async fn a_report_does_not_wake_a_caller_that_waits_for_the_outcome() {
    let world = World::new().await;
    let task = world.submit(draft("echo")).await.task.id;
    world.source.claim(1).await.unwrap();
    let start = Instant::now();
    let waiting = world.wait(task, Duration::from_secs(5));
    let (seen, _) = tokio::join!(waiting, world.source.report(line(task, "x")));
    assert_eq!((seen.status, start.elapsed().as_secs()), (Status::Running, 5));
}

#[tokio::test(start_paused = true)]
async fn a_report_is_not_kept_for_a_store_that_is_away() {
    let world = World::new().await;
    let task = world.submit(draft("echo")).await.task.id;
    world.source.claim(1).await.unwrap();
    settle().await;
    world.faults.fail_next(1);
    assert_eq!(world.source.report(line(task, "x")).await, Err(ReportFailed));
    assert_eq!(world.source.report(line(task, "y")).await, Ok(vec![Reported::Done]));
    assert_eq!(&*logs(&world, task, LogPosition::default()).await.parts[0].text, "y");
}

crate::stores::with_lost_hints!(
    all: reports_of_a_local_attempt_show_at_once,
    a_report_does_not_wake_a_caller_that_waits_for_the_outcome,
    a_report_is_not_kept_for_a_store_that_is_away
);
