//! The processes that have the store open.

use std::time::Duration;

use duly_core::event::Event;
use duly_core::limits::NODE_MEMORY;
use duly_core::node::Role;
use duly_core::ports::store::JoinNode;

use super::Harness;
use super::outbox::{events, subscribe_to_all};

fn introduction(name: &str) -> JoinNode {
    JoinNode {
        name: name.to_owned(),
        roles: vec![Role::Api, Role::Worker],
        version: "1.2.3".to_owned(),
        address: Some("127.0.0.1:8080".to_owned()),
    }
}

pub async fn one_that_joins_is_listed_until_it_leaves(harness: Harness) {
    let store = harness.store();
    assert!(store.nodes().await.unwrap().is_empty(), "no node has joined");
    store.join(introduction("first")).await.unwrap();
    let nodes = store.nodes().await.unwrap();
    assert_eq!(nodes.len(), 1);
    assert_eq!((nodes[0].id, &nodes[0].joined), (store.node(), &introduction("first")));
    assert_eq!((nodes[0].started_at, nodes[0].beat_at), (harness.now(), harness.now()));
    store.leave().await.unwrap();
    assert!(store.nodes().await.unwrap().is_empty());
}

pub async fn joining_again_changes_what_it_says(harness: Harness) {
    let store = harness.store();
    store.join(introduction("first")).await.unwrap();
    let started = harness.now();
    harness.advance(Duration::from_secs(5));
    store.join(introduction("second")).await.unwrap();
    let nodes = store.nodes().await.unwrap();
    assert_eq!(nodes.len(), 1);
    assert_eq!(nodes[0].joined.name, "second");
    assert_eq!(nodes[0].started_at, started);
}

pub async fn who_joins_and_leaves_shows(harness: Harness) {
    subscribe_to_all(&harness, "all").await;
    let store = harness.store();
    store.join(introduction("first")).await.unwrap();
    store.join(introduction("first")).await.unwrap();
    store.leave().await.unwrap();
    store.leave().await.unwrap();
    let id = store.node();
    let expected = [
        Event::node_joined(id, "first", harness.now()),
        Event::node_left(id, "first", harness.now()),
    ];
    assert_eq!(events(&harness, "all").await, expected, "once each");
}

pub async fn signs_of_life_show(harness: Harness) {
    let store = harness.store();
    store.join(introduction("first")).await.unwrap();
    harness.advance(Duration::from_secs(5));
    assert!(store.keep_alive(Vec::new()).await.unwrap().is_empty());
    assert_eq!(store.nodes().await.unwrap()[0].beat_at, harness.now());
}

pub async fn one_that_is_silent_for_a_day_is_forgotten(mut harness: Harness) {
    harness.store().join(introduction("first")).await.unwrap();
    harness.crash().await;
    let store = harness.store();
    store.join(introduction("second")).await.unwrap();
    harness.advance(NODE_MEMORY + Duration::from_secs(1));
    assert!(store.keep_alive(Vec::new()).await.unwrap().is_empty());
    // The leader does it: no other node needs to join.
    store.lead(store.node(), Duration::from_secs(10)).await.unwrap();
    let nodes = store.nodes().await.unwrap();
    let names: Vec<_> = nodes.iter().map(|node| node.joined.name.as_str()).collect();
    assert_eq!(names, ["second"]);
}
