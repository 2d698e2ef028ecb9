//! Why does a task not run, also while the store is in trouble or the task moves on?

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use duly_core::id::{SessionId, TaskId};
use duly_core::name::{TenantName, TypeName};
use duly_core::ports::store::{Counted, Home, OpenSession};
use duly_core::state::Status;
use duly_engine::command::explain::{Explanation, Reason};
use duly_engine::command::worker::RemoteWorker;

use crate::world::{World, draft};

async fn explain(world: &World, id: TaskId) -> Explanation {
    world.engine.explain(&TenantName::default_tenant(), id).await.unwrap().unwrap()
}

#[tokio::test(start_paused = true)]
async fn workers_are_counted_without_reading_all_sessions() {
    let world = World::new().await;
    let near = world.submit(draft("echo")).await.task.id;
    let far = world.submit(draft("far")).await.task.id;
    assert_eq!(explain(&world, far).await.reasons, [Reason::NoWorker, behind(1)]);
    let types = vec![TypeName::new("far").unwrap()];
    let tenant = TenantName::default_tenant();
    let worker =
        RemoteWorker { name: "here".to_owned(), tenant, types, queues: vec![], owner: None };
    world.engine.register(worker).await.unwrap();
    let remote = OpenSession {
        id: SessionId::mint(world.now().await, 7),
        name: "through another node".to_owned(),
        tenant: None,
        types: vec![TypeName::new("echo").unwrap(), TypeName::new("far").unwrap()],
        queues: vec![],
        home: Home::Remote,
    };
    world.store.open_session(remote).await.unwrap();

    world.faults.set_readable(false);
    let reasons = explain(&world, near).await.reasons;
    assert_eq!(reasons, [Reason::Next { workers: 2 }], "its own, and the remote one");
    world.engine.cancel(&TenantName::default_tenant(), near, String::new()).await.unwrap();
    let reasons = explain(&world, far).await.reasons;
    assert_eq!(reasons, [Reason::Next { workers: 2 }], "one is known twice");
}

#[tokio::test(start_paused = true)]
async fn workers_that_drain_are_not_waited_for() {
    let world = World::new().await;
    let far = world.submit(draft("far")).await.task.id;
    let tenant = TenantName::default_tenant();
    let types = vec![TypeName::new("far").unwrap()];
    let here = RemoteWorker { name: "here".to_owned(), tenant, types, queues: vec![], owner: None };
    let here = world.engine.register(here).await.unwrap().session;
    let remote = OpenSession {
        id: SessionId::mint(world.now().await, 7),
        name: "through another node".to_owned(),
        tenant: None,
        types: vec![TypeName::new("far").unwrap()],
        queues: vec![],
        home: Home::Remote,
    };
    let other = remote.id;
    world.store.open_session(remote).await.unwrap();
    let tenant = TenantName::default_tenant();
    world.engine.drain_worker(&tenant, here, true).await.unwrap();
    assert_eq!(explain(&world, far).await.reasons, [Reason::Next { workers: 1 }]);
    world.engine.drain_worker(&tenant, other, true).await.unwrap();
    assert_eq!(explain(&world, far).await.reasons, [Reason::WorkersDrain { workers: 2 }]);
    world.engine.drain_worker(&tenant, here, false).await.unwrap();
    assert_eq!(explain(&world, far).await.reasons, [Reason::Next { workers: 1 }]);
}

fn behind(count: u32) -> Reason {
    Reason::BehindOthers(Counted { count, more: false })
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_cancelled_meanwhile_does_not_run() {
    let world = World::new().await;
    let id = world.submit(draft("echo")).await.task.id;
    world.faults.cancel_at_place(id);
    let explained = explain(&world, id).await;
    assert_eq!(
        (explained.task.status, explained.reasons),
        (Status::Cancelled, vec![Reason::Ended])
    );
}

crate::stores::with_lost_hints!(
    all: workers_are_counted_without_reading_all_sessions,
    workers_that_drain_are_not_waited_for,
    a_task_that_is_cancelled_meanwhile_does_not_run
);
