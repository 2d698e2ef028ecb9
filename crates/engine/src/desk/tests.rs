//! Which claims of a session are handed out, and what a drain means for them.

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

fn desk() -> Desk {
    Desk::new(OpenSession {
        id: SessionId::mint(Timestamp::EPOCH, 1),
        name: "worker".to_owned(),
        tenant: None,
        types: ["email", "pdf"].map(|name| TypeName::new(name).unwrap()).to_vec(),
        queues: Vec::new(),
        home: Home::Remote,
    })
}

#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_the_claim_that_is_being_granted() {
    let desk = desk();
    let leases = desk.place(1).unwrap();
    let taken = desk.take().unwrap();
    desk.set_draining(true);
    let mut ended = pin!(desk.claims_ended());
    let second = Duration::from_secs(1);
    assert!(tokio::time::timeout(second, &mut ended).await.is_err(), "a claim is out");
    assert!(desk.serve(taken, Vec::new()).is_empty());
    ended.await;
    assert!(leases.await.unwrap().is_empty());
}

#[tokio::test]
async fn a_draining_desk_hands_out_no_claim() {
    let desk = desk();
    let _leases = desk.place(1).unwrap();
    desk.set_draining(true);
    assert!(
        !desk.is_waiting() && desk.take().is_none() && desk.take_for_new(&lane("email")).is_none()
    );
    desk.set_draining(false);
    assert!(desk.is_waiting());
    // A claim that is dropped on the way, or put back, is out no more.
    drop(desk.take());
    desk.claims_ended().await;
    let _leases = desk.place(1).unwrap();
    desk.put_back(desk.take().unwrap());
    desk.claims_ended().await;
    assert!(desk.take_for_new(&lane("email")).is_some());
}

#[tokio::test]
async fn a_claim_whose_worker_has_stopped_waiting_ends_with_a_drain() {
    let desk = desk();
    let claim = Claim::new(desk.session().id, 1, 1);
    for drained_first in [false, true] {
        desk.set_draining(drained_first);
        let leases = desk.place_as(claim.clone()).unwrap();
        desk.withdraw(1);
        desk.set_draining(true);
        assert!(leases.await.is_err(), "it would wait for ever");
    }
}

#[tokio::test]
async fn a_narrowed_claim_waits_for_its_lanes_only() {
    let desk = desk();
    let types = [TypeName::new("pdf").unwrap()].into();
    let only = Some(Arc::new(LaneFilter { types, ..LaneFilter::default() }));
    let claim = Claim { only, ..Claim::new(desk.session().id, 1, 1) };
    let _leases = desk.place_as(claim).unwrap();
    for (task_type, accepted) in [("email", false), ("sms", false), ("pdf", true)] {
        let lane = lane(task_type);
        assert_eq!(desk.has_claim_for(&lane), accepted, "{task_type}");
        assert_eq!(desk.take_for_new(&lane).is_some(), accepted, "{task_type}");
    }
}
