//! Tasks, workflows and queues that are looked at live.

use std::time::Duration;

use duly_core::lease::Outcome;
use duly_core::name::TenantName;
use duly_core::state::Status;
use tokio::time::Instant;

use super::run_one;
use crate::world::{World, draft, finish, must_wait, pass, success};

/// What a change may take to be seen.
const SOON: Duration = Duration::from_millis(300);

#[tokio::test(start_paused = true)]
async fn every_change_of_a_watched_task_is_seen_soon() {
    let world = World::new().await;
    let task = world.submit(draft("echo")).await.task.id;
    let mut feed = world.engine.watch_task(TenantName::default_tenant(), task);
    let status = async |feed: &mut duly_engine::command::watch::TaskFeed| {
        let began = Instant::now();
        let task = feed.next().await.unwrap().unwrap();
        assert!(began.elapsed() <= SOON, "{:?}", began.elapsed());
        (task.status, task.epoch)
    };
    assert_eq!(status(&mut feed).await, (Status::Pending, 0));
    let lease = world.source.claim(1).await.unwrap().remove(0);
    assert_eq!(status(&mut feed).await, (Status::Running, 1));
    world.source.finish(vec![finish(&lease, Outcome::Release)]).await.unwrap();
    assert_eq!(status(&mut feed).await, (Status::Pending, 1));
    let lease = world.source.claim(1).await.unwrap().remove(0);
    assert_eq!(status(&mut feed).await, (Status::Running, 2));
    world.source.finish(vec![finish(&lease, success())]).await.unwrap();
    assert_eq!(status(&mut feed).await, (Status::Success, 2));
    let mut next = Box::pin(feed.next());
    must_wait(&mut next).await;
}

#[tokio::test(start_paused = true)]
async fn a_task_of_another_tenant_is_as_one_that_is_not_there() {
    let world = World::new().await;
    let task = world.submit(draft("echo")).await.task.id;
    let mut feed = world.engine.watch_task(TenantName::new("other").unwrap(), task);
    assert_eq!(feed.next().await.unwrap(), None);
    world.source.claim(1).await.unwrap();
    let mut next = Box::pin(feed.next());
    must_wait(&mut next).await;
    assert!(tokio::time::timeout(Duration::from_secs(60), next).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn tasks_that_nobody_watches_are_not_read() {
    let world = World::new().await;
    let task = world.submit(draft("echo")).await.task.id;
    let feeds: Vec<_> =
        (0..100).map(|_| world.engine.watch_task(TenantName::default_tenant(), task)).collect();
    pass(Duration::from_secs(10)).await;
    let reads = world.faults.calls("tasks_of");
    assert!((10..100).contains(&reads), "{reads} reads for all of them");
    drop(feeds);
    pass(Duration::from_secs(1)).await;
    let before = world.faults.calls("tasks_of");
    pass(Duration::from_secs(3600)).await;
    assert_eq!(world.faults.calls("tasks_of"), before);
}

#[tokio::test(start_paused = true)]
async fn figures_of_queues_come_once_a_second_for_all() {
    let world = World::new().await;
    let tenant = TenantName::default_tenant();
    run_one(&world).await;
    world.submit(draft("unserved")).await;
    let mut feeds: Vec<_> = (0..20).map(|_| world.engine.samples(&tenant)).collect();
    let began = Instant::now();
    for _ in 0..3 {
        for feed in &mut feeds {
            let sample = feed.next().await;
            assert_eq!(sample.queues[0].state.waiting.count, 1);
        }
    }
    assert!((2..=3).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    let reads = world.faults.calls("queues");
    assert!(reads <= 4, "{reads} reads");
    let lateness = feeds[0].next().await.queues[0].lateness;
    assert!(lateness >= Duration::from_secs(2), "{lateness:?}");
    drop(feeds);
    pass(Duration::from_secs(60)).await;
    assert!(world.faults.calls("queues") <= reads + 2, "nobody looks any more");
}
