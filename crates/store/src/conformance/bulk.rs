//! Orders for many tasks.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use duly_core::filter::Filter;
use duly_core::id::{SessionId, TaskId};
use duly_core::lease::Lease;
use duly_core::name::{QueueName, TenantName, TypeName};
use duly_core::ports::store::{
    BulkStep, CancelTasks, Controlled, CountTasks, DeleteTasks, Order, Replay, ReplayTasks,
    RetryTasks, TaskCount,
};
use duly_core::progress::Progress;
use duly_core::state::Status;

use super::Harness;
use super::harness::{fail, retry, success};

fn tenant() -> TenantName {
    TenantName::default_tenant()
}

/// Ends a task of this type.
async fn ended(harness: &Harness, failed: bool) -> TaskId {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    let lease = harness.claim_one(session).await;
    harness.finish_one(session, &lease, if failed { fail() } else { success() }).await;
    id
}

/// A task that carries out orders, and who runs it.
async fn carrier(harness: &Harness) -> (SessionId, Lease) {
    let session = harness.session(&["carrier"]).await;
    harness.submit_one(harness.task("carrier")).await;
    (session, harness.claim_one(session).await)
}

async fn step(
    harness: &Harness,
    (session, lease): &(SessionId, Lease),
    order: Order,
    progress: Progress,
) -> Option<Vec<Controlled>> {
    let (task, epoch, session) = (lease.task, lease.epoch, *session);
    let step = BulkStep { session, task, epoch, order, progress };
    harness.store().carry_out(step).await.unwrap()
}

fn replay(task: TaskId) -> Order {
    let tasks = vec![Replay { task, run: 1, run_at: None }];
    Order::Replay(ReplayTasks { tenant: tenant(), tasks, payload: None })
}

async fn count(harness: &Harness, filter: Filter) -> u64 {
    let which = CountTasks { tenant: tenant(), filter, retried: false, before: None };
    let TaskCount { count, next_before } = harness.store().count(which).await.unwrap();
    assert_eq!(next_before, None, "so few are counted in one go");
    count
}

pub async fn tasks_are_counted_as_a_list_finds_them(harness: Harness) {
    for failed in [true, true, false] {
        ended(&harness, failed).await;
    }
    let mut other = harness.task("letter");
    other.lane.queue = QueueName::new("mail").unwrap();
    harness.submit_one(other).await;
    let mut foreign = harness.task("letter");
    foreign.lane.tenant = TenantName::new("other").unwrap();
    harness.submit_one(foreign).await;
    assert_eq!(count(&harness, Filter::default()).await, 4);
    let failed = Filter { statuses: [Status::Failed].into(), ..Filter::default() };
    assert_eq!(count(&harness, failed.clone()).await, 2);
    let queue = Some(QueueName::new("mail").unwrap());
    assert_eq!(count(&harness, Filter { queue, ..Filter::default() }).await, 1);
    let task_type = Some(TypeName::new("email").unwrap());
    assert_eq!(count(&harness, Filter { task_type, ..Filter::default() }).await, 3);
    let retried =
        CountTasks { tenant: tenant(), filter: Filter::default(), retried: true, before: None };
    assert_eq!(harness.store().count(retried).await.unwrap().count, 3, "those that were tried");
    let mut own = harness.task("letter");
    own.lane.queue = QueueName::system();
    harness.submit_one(own).await;
    assert_eq!(count(&harness, Filter::default()).await, 4, "the system's own do not count");
    let nothing = Some(TypeName::new("nothing").unwrap());
    assert_eq!(count(&harness, Filter { task_type: nothing, ..failed }).await, 0);
}

pub async fn a_task_that_failed_with_its_workers_was_not_tried(harness: Harness) {
    harness.submit_one(harness.task("email")).await;
    harness.lose("email", duly_core::limits::LOSSES).await;
    ended(&harness, true).await;
    for statuses in [BTreeSet::from([Status::Failed]), BTreeSet::new()] {
        let filter = Filter { statuses, ..Filter::default() };
        let which = CountTasks { tenant: tenant(), filter, retried: true, before: None };
        assert_eq!(harness.store().count(which.clone()).await.unwrap().count, 1, "{which:?}");
        let all = CountTasks { retried: false, ..which };
        assert_eq!(harness.store().count(all).await.unwrap().count, 2);
    }
}

pub async fn only_ended_tasks_are_deleted(harness: Harness) {
    let (gone, failed) = (ended(&harness, false).await, ended(&harness, true).await);
    let waits = harness.submit_one(harness.task("email")).await;
    let mut foreign = harness.task("email");
    foreign.lane.tenant = TenantName::new("other").unwrap();
    let foreign = harness.submit_one(foreign).await;
    let session = harness.session(&["letter"]).await;
    let runs = harness.submit_one(harness.task("letter")).await;
    harness.claim_one(session).await;
    let tasks = vec![gone, waits, failed, foreign, gone, runs];
    let early = DeleteTasks { tenant: tenant(), tasks: vec![gone], before: Some(harness.now()) };
    let late = Controlled::Conflict { status: Status::Success };
    assert_eq!(harness.store().delete(early).await.unwrap(), [late], "it ended only now");
    let before = Some(harness.now().plus(Duration::from_millis(1)));
    let order = DeleteTasks { tenant: tenant(), tasks, before };
    let conflict = |status| Controlled::Conflict { status };
    let (waiting, running) = (conflict(Status::Pending), conflict(Status::Running));
    let answers = harness.store().delete(order).await.unwrap();
    let done = Controlled::Done;
    assert_eq!(answers, [done, waiting, done, done, done, running]);
    for id in [gone, failed] {
        assert_eq!(harness.store().get(&tenant(), id).await.unwrap(), None);
    }
    assert_eq!(harness.get(waits).await.status, Status::Pending);
    assert_eq!(harness.get(runs).await.status, Status::Running);
    let other = TenantName::new("other").unwrap();
    assert!(harness.store().get(&other, foreign).await.unwrap().is_some());
    let failed = Filter { statuses: [Status::Failed].into(), ..Filter::default() };
    assert_eq!(count(&harness, failed).await, 0, "nor is it a dead letter any more");
}

pub async fn an_order_and_its_progress_are_one(harness: Harness) {
    let (first, second) = (ended(&harness, true).await, ended(&harness, false).await);
    let carrier = carrier(&harness).await;
    let checkpoint = Some(Arc::from(r#""here""#));
    let progress = Progress { total: Some(9), checkpoint, ..Progress::new(0, None) };
    let answers = step(&harness, &carrier, replay(first), progress.clone()).await;
    assert_eq!(answers, Some(vec![Controlled::Done]));
    let kept = harness.get(carrier.1.task).await.progress.expect("it was written").progress;
    assert_eq!(kept, Progress { done: 1, ..progress });
    assert_eq!(harness.get(first).await.run, 2);
    let next = Progress::new(1, Some(9));
    let delete = DeleteTasks { tenant: tenant(), tasks: vec![first, second], before: None };
    let answers = step(&harness, &carrier, Order::Delete(delete), next).await;
    let conflict = Controlled::Conflict { status: Status::Pending };
    assert_eq!(answers, Some(vec![conflict, Controlled::Done]));
    let kept = harness.get(carrier.1.task).await.progress.expect("it was written").progress;
    assert_eq!((kept.done, kept.checkpoint.as_deref()), (2, Some(r#""here""#)));
}

pub async fn every_order_can_be_carried_out(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let waits = harness.submit_one(harness.task("email")).await;
    let lease = harness.claim_one(session).await;
    harness.finish_one(session, &lease, retry()).await;
    let carrier = carrier(&harness).await;
    let tasks = vec![waits];
    let order = Order::Retry(RetryTasks { tenant: tenant(), tasks: tasks.clone() });
    let answers = step(&harness, &carrier, order, Progress::new(0, None)).await;
    assert_eq!(answers, Some(vec![Controlled::Done]));
    assert_eq!(harness.get(waits).await.run_at, harness.now());
    let reason = "enough".to_owned();
    let order = Order::Cancel(CancelTasks { tenant: tenant(), tasks, reason });
    step(&harness, &carrier, order, Progress::new(1, None)).await;
    assert_eq!(harness.get(waits).await.status, Status::Cancelled);
    let kept = harness.get(carrier.1.task).await.progress.expect("it was written").progress;
    assert_eq!(kept.done, 2);
}

pub async fn a_worker_that_has_lost_its_lease_changes_nothing(harness: Harness) {
    let id = ended(&harness, true).await;
    let carrier = carrier(&harness).await;
    let reason = "stop".to_owned();
    let order = CancelTasks { tenant: tenant(), tasks: vec![carrier.1.task], reason };
    harness.store().cancel(order).await.unwrap();
    let answers = step(&harness, &carrier, replay(id), Progress::new(0, None)).await;
    assert_eq!(answers, None);
    assert_eq!(harness.get(id).await.status, Status::Failed);
    let (_, lease) = &carrier;
    let stranger = (harness.session(&["carrier"]).await, lease.clone());
    assert_eq!(step(&harness, &stranger, replay(id), Progress::new(0, None)).await, None);
    assert_eq!(harness.get(id).await.run, 1);
}
