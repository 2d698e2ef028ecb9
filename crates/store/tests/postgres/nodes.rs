//! What one node does and the others see.

use std::collections::HashSet;
use std::time::Duration;

use duly_core::lease::{Finish, Finished, Outcome};
use duly_core::ports::store::{Exchange, Home, Leases as _, Sessions as _, Submitted};
use duly_core::state::Status;

use crate::world::World;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_node_stores_is_claimed_at_another() {
    let Some(world) = World::new().await else { return };
    let session = world.open(1, 1, Home::Local).await;
    assert!(world.claim(1, session, 1).await.is_empty());
    world.await_notification(0, 1).await;
    assert!(!world.claim(1, session, 1).await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_may_use_every_node() {
    let Some(world) = World::new().await else { return };
    let task = world.task(0, Duration::ZERO);
    world.submit(0, vec![task.clone()]).await;
    let session = world.open(1, 1, Home::Remote).await;
    let leases = world.claim(0, session, 1).await;
    assert_eq!(leases.iter().map(|it| it.task).collect::<Vec<_>>(), [task.id]);
    assert_eq!(
        world.claim(1, session, 1).await,
        leases,
        "the claim can be repeated on another node"
    );
    let outcome = Outcome::Success { result: None };
    let finishes = vec![Finish::new(task.id, leases[0].epoch, outcome)];
    let exchange = Exchange { session, finishes, claim: None };
    let answer = world.nodes[1].exchange(exchange).await.unwrap();
    assert_eq!(answer.finished, [Finished::Done]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_node_sees_the_workers_of_the_others() {
    let Some(world) = World::new().await else { return };
    let own = [world.open(0, 1, Home::Local).await, world.open(1, 2, Home::Local).await];
    for (node, other) in [(0, 1), (1, 0)] {
        let seen = world.nodes[node].sessions().await.unwrap();
        assert_eq!(seen.iter().map(|it| it.opened.id).collect::<Vec<_>>(), [own[other]]);
        assert!(world.nodes[other].keep_alive(vec![own[other]]).await.unwrap().is_empty());
        let again = world.nodes[node].sessions().await.unwrap();
        assert!(again[0].beat > seen[0].beat, "a sign of life shows");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_share_no_task() {
    let Some(world) = World::new().await else { return };
    let tasks: Vec<_> = (0..500).map(|number| world.task(number, Duration::ZERO)).collect();
    let ids: HashSet<_> = tasks.iter().map(|task| task.id).collect();
    world.submit(0, tasks).await;
    let sessions = [world.open(0, 1, Home::Local).await, world.open(1, 2, Home::Local).await];
    // The second one was open before there was anything to claim, and may not have been notified of it.
    world.await_notification(0, 1).await;
    let work = |node: usize| {
        let (world, session) = (&world, sessions[node]);
        async move {
            let (mut seen, mut sequence) = (Vec::new(), 0);
            loop {
                sequence += 1;
                let leases = world.claim(node, session, sequence).await;
                if leases.is_empty() {
                    return seen;
                }
                seen.extend(leases.iter().map(|lease| lease.task));
            }
        }
    };
    let (one, two) = tokio::join!(work(0), work(1));
    let all: Vec<_> = one.iter().chain(&two).collect();
    let distinct: HashSet<_> = all.iter().copied().copied().collect();
    assert_eq!(distinct.len(), all.len(), "no task was granted twice");
    assert!(distinct.is_superset(&ids));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_day_is_created_once() {
    let Some(world) = World::new().await else { return };
    let far = |number| vec![world.task(number, 100 * DAY), world.task(number, 399 * DAY)];
    let both = tokio::join!(world.submit(0, far(1)), world.submit(1, far(2)));
    let stored = |it: &Submitted| matches!(it, Submitted::Stored { .. });
    assert!(both.0.iter().chain(&both.1).all(stored), "{both:?}");
    assert_eq!((both.0.len(), both.1.len()), (2, 2));
    assert_eq!(world.status(far(1)[1].id).await, Status::Pending);
}
