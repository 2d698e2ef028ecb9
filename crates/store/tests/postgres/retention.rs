//! Days that are over, and transactions that still need them.

use std::sync::Arc;
use std::time::Duration;

use duly_core::ports::clock::Clock as _;
use duly_core::ports::store::Home;
use duly_core::task::NewTask;
use duly_core::workflow::{Condition, Dependency, Links};

use crate::gate::Gate;
use crate::world::World;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A transaction is about to store or replay a task of a past day.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_day_in_use_is_not_dropped() {
    let Some(world) = World::new().await else { return };
    let (gate, session) = (Gate::new(&world).await, world.open(0, 1, Home::Local).await);
    let (task, day) = (world.task(1, Duration::ZERO), world.clock.now());
    world.submit(0, vec![task.clone()]).await;
    world.succeed(0, session, 1).await;
    world.clock.advance(10 * DAY);
    let keep = format!(
        "SET LOCAL duly.now_ms = {}; SELECT duly.keep_days(ARRAY['{}'::uuid])",
        world.clock.now().millis(),
        task.id
    );
    gate.shut(&keep).await;
    world.sweep(1).await;
    assert!(world.has_day(day).await);
    gate.open().await;
    world.sweep(1).await;
    assert!(!world.has_day(day).await);
}

/// A child of a later day has not ended: a replay or an explanation may still ask for its parent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_day_with_a_parent_of_an_open_child_is_not_dropped() {
    let Some(world) = World::new().await else { return };
    let session = world.open(0, 1, Home::Local).await;
    let (parent, day) = (world.task(1, Duration::ZERO), world.clock.now());
    world.submit(0, vec![parent.clone()]).await;
    let dependencies = vec![Dependency { parent: parent.id, on: Condition::Success }];
    let links = Links { dependencies, workflow: None, render: false };
    let child = NewTask { links: Some(Arc::new(links)), ..world.task(2, 5 * DAY) };
    world.submit(0, vec![child]).await;
    world.succeed(0, session, 1).await;
    world.clock.advance(3 * DAY);
    world.sweep(1).await;
    assert!(world.has_day(day).await, "the child waits");
    world.clock.advance(3 * DAY);
    world.succeed(0, session, 2).await;
    world.clock.advance(10 * DAY);
    world.sweep(1).await;
    assert!(!world.has_day(day).await);
}

/// To make sure that nothing of a day is kept blocks nothing: every grant and every outcome locks all
/// days, if only to find that it is not about them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_goes_on_while_a_day_is_looked_through() {
    let Some(world) = World::new().await else { return };
    let (gate, session) = (Gate::new(&world).await, world.open(0, 1, Home::Local).await);
    world.submit(0, vec![world.task(1, Duration::ZERO)]).await;
    world.succeed(0, session, 1).await;
    world.clock.advance(10 * DAY);
    // Before it can drop the day, it has to get past this.
    gate.shut("LOCK TABLE duly.log IN SHARE MODE").await;
    let look = async {
        assert!(gate.holds(1).await, "the day is held");
        let stopped = "SELECT count(*) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
            WHERE c.relname LIKE 'task_%' AND l.mode IN ('ShareLock', 'AccessExclusiveLock')";
        assert_eq!(gate.count(stopped).await, 0);
        gate.open().await;
    };
    tokio::join!(world.sweep(1), look);
}
