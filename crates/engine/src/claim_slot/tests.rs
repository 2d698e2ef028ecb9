//! Which claims of a session the loops can take, and what a drain changes.

use std::time::Duration;

use duly_core::id::SessionId;
use duly_core::name::{QueueName, TenantName, TypeName};
use duly_core::ports::store::{Home, LaneFilter};

use super::*;

fn lane(task_type: &str) -> Lane {
    Lane {
        tenant: TenantName::default_tenant(),
        queue: QueueName::default_queue(),
        task_type: TypeName::new(task_type).unwrap(),
    }
}

fn slot() -> ClaimSlot {
    ClaimSlot::new(OpenSession {
        id: SessionId::mint(Timestamp::EPOCH, 1),
        name: "worker".to_owned(),
        tenant: None,
        types: ["email", "pdf"].map(|name| TypeName::new(name).unwrap()).to_vec(),
        queues: Vec::new(),
        home: Home::Remote,
        owner: None,
    })
}

#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_the_claim_that_is_being_granted() {
    let slot = slot();
    let leases = slot.place(1).unwrap();
    let taken = slot.take().unwrap();
    slot.set_draining(true);
    let mut ended = pin!(slot.taken_claims_ended());
    let second = Duration::from_secs(1);
    assert!(tokio::time::timeout(second, &mut ended).await.is_err(), "a claim is taken");
    assert!(slot.serve(taken, Vec::new()).is_empty());
    ended.await;
    assert!(leases.await.unwrap().is_empty());
}

#[tokio::test]
async fn a_draining_slot_hands_out_no_claim() {
    let slot = slot();
    let _leases = slot.place(1).unwrap();
    slot.set_draining(true);
    assert!(
        !slot.is_waiting() && slot.take().is_none() && slot.take_for_new(&lane("email")).is_none()
    );
    slot.set_draining(false);
    assert!(slot.is_waiting());
    // A claim that is dropped or put back no longer counts as taken.
    drop(slot.take());
    slot.taken_claims_ended().await;
    let _leases = slot.place(1).unwrap();
    slot.put_back(slot.take().unwrap());
    slot.taken_claims_ended().await;
    assert!(slot.take_for_new(&lane("email")).is_some());
}

#[tokio::test]
async fn a_claim_whose_worker_has_stopped_waiting_ends_with_a_drain() {
    let slot = slot();
    let claim = Claim::new(slot.session().id, 1, 1);
    for drained_first in [false, true] {
        slot.set_draining(drained_first);
        let leases = slot.place_numbered(claim.clone()).unwrap();
        slot.withdraw(1);
        slot.set_draining(true);
        assert!(leases.await.is_err(), "it would wait for ever");
    }
}

#[tokio::test]
async fn a_narrowed_claim_waits_for_its_lanes_only() {
    let slot = slot();
    let types = [TypeName::new("pdf").unwrap()].into();
    let only = Some(Arc::new(LaneFilter { types, ..LaneFilter::default() }));
    let claim = Claim { only, ..Claim::new(slot.session().id, 1, 1) };
    let _leases = slot.place_numbered(claim).unwrap();
    for (task_type, accepted) in [("email", false), ("sms", false), ("pdf", true)] {
        let lane = lane(task_type);
        assert_eq!(slot.has_claim_for(&lane), accepted, "{task_type}");
        assert_eq!(slot.take_for_new(&lane).is_some(), accepted, "{task_type}");
    }
}
