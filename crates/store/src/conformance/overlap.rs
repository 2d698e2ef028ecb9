//! Slots that come while what an earlier one has started has not ended.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use duly_core::id::{TaskId, WorkflowId};
use duly_core::lease::Finished;
use duly_core::ports::store::{Decide, Decided, SlotOrder, SlotOutcome};
use duly_core::schedule::{Overlap, SLOT_REPLACED, Schedule, SkipReason, SlotRun};
use duly_core::state::Status;
use duly_core::task::NewTask;
use duly_core::time::Timestamp;
use duly_core::workflow::{Links, Membership, NewWorkflow, WorkflowStatus};

use super::Harness;
use super::harness::success;
use super::schedules::{change, decide, decided, find, outcomes, own, put, task_of};

const MINUTE: Duration = Duration::from_secs(60);

fn ran(task: &NewTask) -> SlotOutcome {
    SlotOutcome::Ran(SlotRun::Task(task.id))
}

/// Decides the slot of now, a minute after the one before.
async fn next_slot(harness: &Harness, overlap: Overlap) -> (NewTask, SlotOutcome) {
    harness.advance(MINUTE);
    let schedule = find(harness).await;
    let task = task_of(harness, harness.now());
    let slots = outcomes(harness, &decide(&schedule, overlap, std::slice::from_ref(&task))).await;
    (task, slots[0])
}

async fn created(harness: &Harness) -> Schedule {
    change(harness, put(harness, "nightly", 1)).await
}

pub async fn a_slot_is_skipped_while_the_one_before_has_not_ended(harness: Harness) {
    let session = harness.session(&["email"]).await;
    created(&harness).await;
    let (first, outcome) = next_slot(&harness, Overlap::Skip).await;
    assert_eq!(outcome, ran(&first));
    let overlap = SlotOutcome::Skipped(SkipReason::Overlap);
    assert_eq!(next_slot(&harness, Overlap::Skip).await.1, overlap, "it waits");
    let lease = harness.claim_one(session).await;
    assert_eq!(next_slot(&harness, Overlap::Skip).await.1, overlap, "it runs");
    harness.finish_one(session, &lease, success()).await;
    let (last, outcome) = next_slot(&harness, Overlap::Skip).await;
    assert_eq!(outcome, ran(&last));
}

pub async fn one_slot_waits_for_the_one_before(harness: Harness) {
    let session = harness.session(&["email"]).await;
    created(&harness).await;
    next_slot(&harness, Overlap::BufferOne).await;
    let lease = harness.claim_one(session).await;
    let (second, outcome) = next_slot(&harness, Overlap::BufferOne).await;
    assert_eq!(outcome, ran(&second));
    assert_eq!(harness.get(second.id).await.status, Status::Blocked);
    let buffered = SlotOutcome::Skipped(SkipReason::Buffered);
    assert_eq!(next_slot(&harness, Overlap::BufferOne).await.1, buffered);
    harness.finish_one(session, &lease, super::harness::fail()).await;
    assert_eq!(harness.claim_one(session).await.task, second.id, "any end will do");
    let (third, outcome) = next_slot(&harness, Overlap::BufferOne).await;
    assert_eq!(outcome, ran(&third));
    assert_eq!(harness.get(third.id).await.status, Status::Blocked);
}

pub async fn slots_may_run_side_by_side(harness: Harness) {
    let session = harness.session(&["email"]).await;
    created(&harness).await;
    let (first, _) = next_slot(&harness, Overlap::Allow).await;
    let (second, outcome) = next_slot(&harness, Overlap::Allow).await;
    assert_eq!(outcome, ran(&second));
    let leases = harness.claim(session, 10).await;
    assert_eq!(super::harness::ids(&leases), [first.id, second.id]);
}

pub async fn a_slot_takes_the_place_of_the_one_before(harness: Harness) {
    let session = harness.session(&["email"]).await;
    created(&harness).await;
    let (first, _) = next_slot(&harness, Overlap::CancelOther).await;
    let lease = harness.claim_one(session).await;
    harness.advance(MINUTE);
    let schedule = find(&harness).await;
    let second = task_of(&harness, harness.now());
    let order = decide(&schedule, Overlap::CancelOther, std::slice::from_ref(&second));
    let Decided::Done { slots, cancelled } = decided(&harness, &order).await else {
        panic!("it is stale");
    };
    assert_eq!(slots, [ran(&second)]);
    // The answer that named it may be lost.
    let named = [(first.id, Some((session, lease.epoch)))];
    assert!(cancelled.is_empty() || cancelled == named, "{cancelled:?}");
    let task = harness.get(first.id).await;
    assert_eq!(
        (task.status, task.error.unwrap().code.as_str()),
        (Status::Cancelled, SLOT_REPLACED)
    );
    let late = harness.finish_one(session, &lease, success()).await;
    assert_eq!(late, Finished::LeaseLost);
    let (third, _) = next_slot(&harness, Overlap::CancelOther).await;
    assert_eq!(harness.get(second.id).await.status, Status::Cancelled, "it waited");
    assert_eq!(harness.claim_one(session).await.task, third.id);
}

pub async fn slots_of_one_call_overlap_too(harness: Harness) {
    let schedule = created(&harness).await;
    harness.advance(MINUTE * 2);
    let earlier = Timestamp::from_millis(harness.now().millis() - 60_000);
    let tasks = [task_of(&harness, earlier), task_of(&harness, harness.now())];
    let order = decide(&schedule, Overlap::Skip, &tasks);
    let skipped = SlotOutcome::Skipped(SkipReason::Overlap);
    assert_eq!(outcomes(&harness, &order).await, [ran(&tasks[0]), skipped]);
}

fn workflow_of(harness: &Harness, slot: Timestamp, number: u64) -> NewWorkflow {
    let id = WorkflowId::mint(slot, 0, number);
    let member = |key: &str| {
        let links =
            Links { workflow: Some(Membership { id, key: key.to_owned() }), ..Links::default() };
        NewTask { links: Some(Arc::new(links)), ..task_of(harness, slot) }
    };
    NewWorkflow {
        id,
        tenant: own(),
        name: "report".to_owned(),
        labels: BTreeMap::new(),
        fail_fast: false,
        idempotency: None,
        tasks: vec![member("one"), member("two")],
    }
}

async fn next_workflow(harness: &Harness, overlap: Overlap, number: u64) -> SlotOutcome {
    harness.advance(MINUTE);
    let schedule = find(harness).await;
    let slot = harness.now();
    let workflow = workflow_of(harness, slot, number);
    let order = Decide {
        moves: Some((schedule.position, slot)),
        slots: vec![(slot, SlotOrder::Workflow(Box::new(workflow)))],
        ..decide(&schedule, overlap, &[])
    };
    outcomes(harness, &order).await[0]
}

async fn status_of(harness: &Harness, outcome: SlotOutcome) -> WorkflowStatus {
    let SlotOutcome::Ran(SlotRun::Workflow(id)) = outcome else { panic!("{outcome:?}") };
    harness.store().workflow(&own(), id).await.unwrap().unwrap().workflow.status
}

pub async fn a_workflow_is_what_a_slot_has_started(harness: Harness) {
    let session = harness.session(&["email"]).await;
    created(&harness).await;
    let first = next_workflow(&harness, Overlap::Skip, 1).await;
    assert_eq!(status_of(&harness, first).await, WorkflowStatus::Running);
    let overlap = SlotOutcome::Skipped(SkipReason::Overlap);
    assert_eq!(next_workflow(&harness, Overlap::Skip, 2).await, overlap);
    assert_eq!(next_workflow(&harness, Overlap::BufferOne, 3).await, overlap);
    for lease in harness.claim(session, 10).await {
        harness.finish_one(session, &lease, success()).await;
    }
    let second = next_workflow(&harness, Overlap::CancelOther, 4).await;
    let third = next_workflow(&harness, Overlap::CancelOther, 5).await;
    while harness.store().cascade(10).await.unwrap().more {}
    assert_eq!(status_of(&harness, second).await, WorkflowStatus::Cancelled);
    assert_eq!(status_of(&harness, third).await, WorkflowStatus::Running);
}

pub async fn what_waits_for_a_withdrawn_task_is_withdrawn_too(harness: Harness) {
    let schedule = created(&harness).await;
    let (first, _) = next_slot(&harness, Overlap::BufferOne).await;
    let (second, _) = next_slot(&harness, Overlap::BufferOne).await;
    let gone = async |id: TaskId| harness.store().get(&own(), id).await.unwrap().is_none();
    assert_eq!(harness.get(second.id).await.status, Status::Blocked);
    let edit = duly_core::ports::store::PutSchedule {
        definition: duly_core::schedule::Definition {
            rule: Arc::from("{\"every\":\"3m\"}"),
            ..schedule.definition
        },
        ..put(&harness, "nightly", 2)
    };
    let edited = change(&harness, edit).await;
    assert!(gone(first.id).await && gone(second.id).await);
    assert!(edited.position < first.run_at, "both are decided again");
}
