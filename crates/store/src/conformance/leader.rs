//! The lead, and who could have it.

use std::time::Duration;

use duly_core::event::Event;
use duly_core::id::NodeId;
use duly_core::ports::store::Leader;

use super::Harness;
use super::outbox::{events, subscribe_to_all};

const TTL: Duration = Duration::from_secs(10);

/// A node by its number.
fn node(number: u8) -> NodeId {
    NodeId::from_bytes([number; 16])
}

async fn lead(harness: &Harness, number: u8) -> Leader {
    harness.store().lead(node(number), TTL).await.unwrap()
}

/// Whether others could lead; if not, this process always does.
async fn is_contested(harness: &Harness) -> bool {
    if harness.outlives_nodes() {
        return true;
    }
    let own = harness.store().node();
    let leader = Leader { node: own, term: 1, until: None };
    assert_eq!(harness.store().lead(own, TTL).await.unwrap(), leader);
    harness.store().resign(own).await.unwrap();
    assert_eq!(harness.store().leader().await.unwrap(), Some(leader));
    false
}

pub async fn there_is_one_at_a_time(harness: Harness) {
    if !is_contested(&harness).await {
        return;
    }
    assert_eq!(harness.store().leader().await.unwrap(), None);
    let first = lead(&harness, 1).await;
    assert_eq!((first.node, first.until), (node(1), Some(harness.now().plus(TTL))));
    assert_eq!(lead(&harness, 2).await, first, "a second one is told of the first");
    assert_eq!(harness.store().leader().await.unwrap(), Some(first));
}

pub async fn a_new_one_shows(harness: Harness) {
    subscribe_to_all(&harness, "all").await;
    if !is_contested(&harness).await {
        return assert_eq!(events(&harness, "all").await, [], "it is always the same");
    }
    let first = lead(&harness, 1).await;
    lead(&harness, 2).await;
    lead(&harness, 1).await;
    harness.advance(TTL);
    let second = lead(&harness, 2).await;
    let changed = |leader: Leader, at| Event::leader_changed(leader.node, leader.term, at);
    let expected = [changed(first, harness.now().minus(TTL)), changed(second, harness.now())];
    assert_eq!(events(&harness, "all").await, expected);
}

pub async fn one_that_renews_keeps_its_term(harness: Harness) {
    if !is_contested(&harness).await {
        return;
    }
    let first = lead(&harness, 1).await;
    harness.advance(TTL / 2);
    let renewed = lead(&harness, 1).await;
    assert_eq!((renewed.node, renewed.term), (node(1), first.term));
    harness.advance(TTL / 2);
    assert_eq!(lead(&harness, 2).await, renewed, "its time counts from the renewal");
}

pub async fn one_that_is_silent_is_replaced(harness: Harness) {
    if !is_contested(&harness).await {
        return;
    }
    let first = lead(&harness, 1).await;
    harness.advance(TTL);
    assert_eq!(harness.store().leader().await.unwrap(), None);
    let second = lead(&harness, 2).await;
    assert_eq!(second.node, node(2));
    assert!(second.term > first.term, "{second:?} after {first:?}");
    assert_eq!(lead(&harness, 1).await, second, "the former leader cannot renew");
    harness.store().resign(node(1)).await.unwrap();
    assert_eq!(harness.store().leader().await.unwrap(), Some(second), "nor resign for another");
}

pub async fn a_lead_that_ended_is_taken_anew_under_another_term(harness: Harness) {
    if !is_contested(&harness).await {
        return;
    }
    let first = lead(&harness, 1).await;
    harness.advance(TTL);
    let again = lead(&harness, 1).await;
    assert!(again.node == first.node && again.term > first.term, "{again:?} after {first:?}");
}

pub async fn resigning_makes_room_at_once(harness: Harness) {
    if !is_contested(&harness).await {
        return;
    }
    let first = lead(&harness, 1).await;
    harness.store().resign(node(1)).await.unwrap();
    assert_eq!(harness.store().leader().await.unwrap(), None);
    let second = lead(&harness, 2).await;
    assert!(second.node == node(2) && second.term > first.term, "{second:?} after {first:?}");
}

pub async fn of_many_candidates_one_wins(harness: Harness) {
    if !is_contested(&harness).await {
        return;
    }
    let candidates = (1..=8).map(|number| lead(&harness, number));
    let answers = futures_util::future::join_all(candidates).await;
    assert!(answers.iter().all(|leader| *leader == answers[0]), "{answers:?}");
    assert_eq!(harness.store().leader().await.unwrap(), Some(answers[0]));
}
