//! Nodes that share a store: what others do to this one, and what the leader alone does.

#![expect(clippy::unwrap_used, reason = "a store that was poisoned fails its test")]

use std::sync::atomic::Ordering;
use std::time::Duration;

use duly_core::id::SessionId;
use duly_core::lease::Finished;
use duly_core::node::Role;
use duly_core::ports::store::{Ending, JoinNode, PutSettings};
use duly_core::ports::work_source::Closed;
use duly_core::settings::Settings;
use duly_core::submit::Draft;
use duly_engine::engine::LocalWorker;

use crate::world::{TTL, World, draft, finish, must_wait, pass, success};

/// Other nodes take a worker of this one for dead.
async fn end(world: &World, session: SessionId) {
    // The reference model has no other nodes that could see it die.
    world.store.end_session(session, Ending::Closed).await.unwrap();
    world.faults.ended.lock().unwrap().push(session);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_others_took_for_dead_commits_nothing_and_is_told() {
    let world = World::among_others().await;
    let (leases, task) = tokio::join!(world.source.claim(1), world.submit_when_idle(draft("echo")));
    let lease = leases.unwrap().remove(0);
    let mut waiting = world.source.claim(1);
    must_wait(&mut waiting).await;
    end(&world, world.faults.last_opened("test")).await;
    let refused = world.source.finish(vec![finish(&lease, success())]).await;
    assert_eq!(refused, Ok(vec![Finished::LeaseLost]), "the store refuses it already");
    assert_eq!(waiting.await, Err(Closed), "the worker is told within the time to live");
    pass(Duration::from_millis(1)).await;
    assert_eq!(world.source.finish(vec![finish(&lease, success())]).await, Err(Closed));
    assert_eq!(world.source.claim(1).await, Err(Closed));

    let types = vec![duly_core::name::TypeName::new("echo").unwrap()];
    let worker = LocalWorker { name: "again".to_owned(), types, queues: vec![] };
    let source = world.engine.open_worker(worker).await.unwrap();
    let again = source.claim(1).await.unwrap().remove(0);
    assert_eq!((again.task, again.epoch), (task.task.id, lease.epoch + 1));
    assert_eq!(source.finish(vec![finish(&again, success())]).await, Ok(vec![Finished::Done]));
}

#[tokio::test(start_paused = true)]
async fn the_systems_own_worker_comes_back_too() {
    let world = World::among_others().await;
    pass(Duration::from_millis(1)).await;
    let first = world.faults.last_opened("system");
    end(&world, first).await;
    pass(2 * TTL).await;
    assert_ne!(world.faults.last_opened("system"), first);
}

#[tokio::test(start_paused = true)]
async fn only_the_leader_sweeps() {
    let world = World::among_others().await;
    pass(TTL).await;
    assert_eq!(world.faults.calls("sweep"), 1, "the only node leads");
    world.faults.another_leads.store(true, Ordering::SeqCst);
    pass(TTL).await;
    pass(Duration::from_secs(5 * 60 * 60)).await;
    assert_eq!(world.faults.calls("sweep"), 1, "another one leads now");
    world.faults.another_leads.store(false, Ordering::SeqCst);
    pass(TTL).await;
    assert_eq!(world.faults.calls("sweep"), 2, "the lead came back");
    world.engine.close().await;
    assert_eq!(world.faults.calls("resign"), 1, "it makes room");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_stops_by_its_own_clock() {
    let world = World::among_others().await;
    pass(TTL).await;
    world.faults.lead_fails.store(true, Ordering::SeqCst);
    pass(TTL).await;
    pass(Duration::from_secs(5 * 60 * 60)).await;
    assert_eq!(world.faults.calls("sweep"), 1, "it has stopped");
    world.engine.close().await;
    assert_eq!(world.faults.calls("resign"), 0, "it leads no more");
}

#[tokio::test(start_paused = true)]
async fn a_node_is_known_by_what_it_says_until_it_closes() {
    let world = World::among_others().await;
    let node = JoinNode {
        name: "first".to_owned(),
        roles: Role::ALL.to_vec(),
        version: "1".to_owned(),
        address: None,
    };
    world.engine.introduce(node.clone()).await.unwrap();
    let cluster = world.engine.nodes().await.unwrap();
    assert_eq!((cluster.nodes.len(), &cluster.nodes[0].joined), (1, &node));
    assert_eq!(cluster.leader.map(|leader| leader.node), Some(cluster.nodes[0].id));
    end(&world, world.faults.last_opened("test")).await;
    pass(TTL).await;
    let joined = world.faults.calls("join");
    assert_eq!(joined, 2, "others may have forgotten the node as well");
    world.engine.close().await;
    assert!(world.store.nodes().await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn settings_that_another_node_changes_are_known_soon() {
    let world = World::among_others().await;
    assert_eq!(world.engine.settings_in_effect().await.unwrap().version, 0);
    let settings = Settings { retries: 7, ..Settings::default() };
    let put = PutSettings { expected: 0, settings, comment: None };
    world.store.put_settings(put).await.unwrap();
    let heard = tokio::time::timeout(TTL / 2, world.engine.settings_after(0)).await;
    assert_eq!(heard.expect("it gives signs of life more often").settings.retries, 7);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_another_node_opens_is_watched_soon() {
    let world = World::among_others().await;
    pass(TTL).await;
    let reads = world.faults.calls("sessions");
    pass(TTL).await;
    assert!(
        world.faults.calls("sessions") >= reads + 3,
        "no other process tells that there is one to watch"
    );
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_another_node_was_told_reaches_the_worker_of_this_one() {
    let world = World::among_others().await;
    let session = world.faults.last_opened("test");
    assert!(world.store.drain(session, true).await.unwrap());
    pass(TTL / 3 + Duration::from_millis(1)).await;
    let mut waiting = world.source.claim(1);
    let accepted = world.submit(draft("echo")).await;
    must_wait(&mut waiting).await;
    pass(TTL).await;
    must_wait(&mut waiting).await;
    assert!(world.store.drain(session, false).await.unwrap());
    assert_eq!(waiting.await.unwrap()[0].task, accepted.task.id, "it goes on within a heartbeat");
}

#[tokio::test(start_paused = true)]
async fn heartbeats_do_not_put_off_the_poll_that_makes_up_for_lost_hints() {
    let world = World::among_others_losing_hints().await;
    let mut claim = world.source.claim(1);
    must_wait(&mut claim).await;
    let task = Draft { delay_seconds: Some(1.0), ..draft("echo") };
    let task = world.submit(task).await.task;
    let found = tokio::time::timeout(Duration::from_secs(60), claim).await;
    assert_eq!(found.expect("it polls every half minute").unwrap()[0].task, task.id);
}
