//! Tasks that depend on others, between the store and a worker.

#![expect(clippy::unwrap_used, reason = "a lease that cannot be had fails its test")]

use duly_core::id::TaskId;
use duly_core::lease::{Finished, Lease};
use duly_core::submit::Draft;
use duly_core::workflow::{Condition, Dependency};

use crate::world::{World, draft, finish, must_wait, success};

fn after(parent: TaskId) -> Draft {
    Draft { dependencies: vec![Dependency { parent, on: Condition::Success }], ..draft("echo") }
}

/// The lease of a task on which others depended before it was granted, one after the other.
async fn first_of_three(world: &World) -> Lease {
    let first = world.submit(draft("echo")).await.task.id;
    let second = world.submit(after(first)).await.task.id;
    world.submit(after(second)).await;
    world.source.claim(1).await.unwrap().remove(0)
}

#[tokio::test(start_paused = true)]
async fn an_edge_costs_one_exchange() {
    let world = World::new().await;
    let first = first_of_three(&world).await;
    let mut claim = world.source.claim(10);
    must_wait(&mut claim).await;
    let exchanges = world.faults.exchanges();
    world.source.finish(vec![finish(&first, success())]).await.unwrap();
    let second = claim.await.unwrap().remove(0);
    assert_eq!(world.faults.exchanges(), exchanges + 1);
    assert!(second.parents.unwrap().contains(&first.task.to_string()));
}

#[tokio::test(start_paused = true)]
async fn outcomes_are_committed_while_results_of_parents_are_read() {
    let world = World::new().await;
    let first = first_of_three(&world).await;
    world.submit(draft("echo")).await;
    let other = world.source.claim(1).await.unwrap().remove(0);
    let mut claim = world.source.claim(1);
    must_wait(&mut claim).await;
    world.faults.set_parents_readable(false);
    world.source.finish(vec![finish(&first, success())]).await.unwrap();
    must_wait(&mut claim).await;
    let done = world.source.finish(vec![finish(&other, success())]).await.unwrap();
    assert_eq!(done, [Finished::Done]);
    must_wait(&mut claim).await;
    world.faults.set_parents_readable(true);
    assert_eq!(claim.await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_comes_late_is_claimed_all_the_same() {
    let world = World::new().await;
    world.submit(draft("echo")).await;
    let lease = world.source.claim(1).await.unwrap().remove(0);
    world.submit(after(lease.task)).await;
    let claim = world.source.claim(1);
    world.source.finish(vec![finish(&lease, success())]).await.unwrap();
    assert_eq!(claim.await.unwrap().len(), 1);
}
