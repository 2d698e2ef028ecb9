//! Tasks that wait for other tasks.

use std::sync::Arc;
use std::time::Duration;

use duly_core::id::{SessionId, TaskId};
use duly_core::lease::{Finish, Finished, Lease, Outcome};
use duly_core::limits::{CASCADE_STEP, LOSSES, PARENT_BYTES};
use duly_core::name::TenantName;
use duly_core::ports::store::{
    CancelTasks, Controlled, Cutoffs, DeleteTasks, EditTask, Exchange, ListTasks, Replay,
    ReplayTasks, Submitted, Sweep, TaskChange,
};
use duly_core::state::Status;
use duly_core::submit::Start;
use duly_core::task::NewTask;
use duly_core::workflow::{Condition, DEPENDENCY_NOT_MET, Dependency, EdgeState, Links};

use super::Harness;
use super::harness::{fail, ids, success};

fn own() -> TenantName {
    TenantName::default_tenant()
}

fn on(parent: TaskId, on: Condition) -> Dependency {
    Dependency { parent, on }
}

fn after(parent: TaskId) -> Dependency {
    on(parent, Condition::Success)
}

/// A task that depends on others.
fn child(harness: &Harness, dependencies: &[Dependency]) -> NewTask {
    let links = Links { dependencies: dependencies.to_vec(), ..Links::default() };
    NewTask { delay: Some(Duration::ZERO), links: Some(Arc::new(links)), ..harness.task("email") }
}

/// Stores a task that is blocked.
async fn block(harness: &Harness, task: NewTask) -> TaskId {
    let answer = harness.submit(std::slice::from_ref(&task)).await;
    assert_eq!(answer, [Submitted::Blocked { at: harness.now() }]);
    task.id
}

async fn status(harness: &Harness, id: TaskId) -> Status {
    harness.get(id).await.status
}

async fn cancel(harness: &Harness, id: TaskId) {
    let order = CancelTasks { tenant: own(), tasks: vec![id], reason: "no more".into() };
    assert_eq!(harness.store().cancel(order).await.unwrap(), [Controlled::Done]);
}

/// Cancels all that can no longer start.
pub(super) async fn cascade(harness: &Harness) {
    while harness.store().cascade(CASCADE_STEP).await.unwrap().more {}
}

async fn delete(harness: &Harness, id: TaskId) -> Controlled {
    let order = DeleteTasks { tenant: own(), tasks: vec![id], before: None };
    harness.store().delete(order).await.unwrap()[0]
}

/// Runs the only due task to this end.
async fn end_one(harness: &Harness, session: SessionId, outcome: Outcome) -> TaskId {
    let lease = harness.claim_one(session).await;
    assert_eq!(harness.finish_one(session, &lease, outcome).await, Finished::Done);
    lease.task
}

pub async fn a_child_waits_for_its_parent(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let parent = harness.submit_one(harness.task("email")).await;
    let id = block(&harness, child(&harness, &[after(parent)])).await;
    let links = harness.get(id).await.links.expect("it has a parent");
    assert_eq!(links.dependencies, [after(parent)]);
    assert_eq!(harness.get(parent).await.links, None);
    let lease = harness.claim_one(session).await;
    assert_eq!((lease.task, lease.has_parents, lease.has_children), (parent, false, true));
    assert_eq!(status(&harness, id).await, Status::Blocked, "its parent has not ended");
    harness.finish_one(session, &lease, success()).await;
    let lease = harness.claim_one(session).await;
    assert_eq!((lease.task, lease.has_parents, lease.has_children), (id, true, false));
}

pub async fn a_child_is_granted_in_the_exchange_of_its_parent(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let parent = harness.submit_one(harness.task("email")).await;
    let id = block(&harness, child(&harness, &[after(parent)])).await;
    let lease = harness.claim_one(session).await;
    let exchange = Exchange {
        session,
        finishes: vec![Finish::new(lease.task, lease.epoch, success())],
        claim: Some(harness.next_claim(session, 10)),
    };
    let answer = harness.store().exchange(exchange).await.unwrap();
    assert_eq!((answer.finished, ids(&answer.leases)), (vec![Finished::Done], vec![id]));
}

pub async fn two_parents_in_one_batch_count_twice(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let tasks: Vec<_> = (0..3).map(|_| harness.task("email")).collect();
    harness.submit(&tasks).await;
    let parents: Vec<_> = tasks.iter().map(|task| after(task.id)).collect();
    let id = block(&harness, child(&harness, &parents)).await;
    let leases = harness.claim(session, 10).await;
    let done = |lease: &Lease| Finish::new(lease.task, lease.epoch, success());
    harness.finish(session, leases[..2].iter().map(done).collect()).await;
    assert_eq!(status(&harness, id).await, Status::Blocked);
    harness.finish(session, leases[2..].iter().map(done).collect()).await;
    assert_eq!(status(&harness, id).await, Status::Pending);
    assert_eq!(harness.claim_one(session).await.task, id);
}

pub async fn a_parent_that_has_ended_counts_at_once(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let parent = harness.submit_one(harness.task("email")).await;
    end_one(&harness, session, success()).await;
    let id = harness.submit_one(child(&harness, &[after(parent)])).await;
    assert_eq!(harness.claim_one(session).await.task, id);
    block(&harness, child(&harness, &[on(parent, Condition::Failure)])).await;
}

pub async fn conditions_decide(harness: Harness) {
    let session = harness.session(&["email"]).await;
    for (outcome, wanted) in [
        (Some(success()), [Status::Pending, Status::Cancelled, Status::Pending]),
        (Some(fail()), [Status::Cancelled, Status::Pending, Status::Pending]),
        (None, [Status::Cancelled, Status::Cancelled, Status::Pending]),
    ] {
        let parent = harness.submit_one(harness.task("email")).await;
        let mut children = Vec::new();
        for condition in Condition::ALL {
            children.push(block(&harness, child(&harness, &[on(parent, condition)])).await);
        }
        match outcome {
            Some(outcome) => drop(end_one(&harness, session, outcome).await),
            None => cancel(&harness, parent).await,
        }
        cascade(&harness).await;
        for (id, wanted) in children.into_iter().zip(wanted) {
            assert_eq!(status(&harness, id).await, wanted);
            if wanted == Status::Pending {
                cancel(&harness, id).await;
            }
        }
    }
}

pub async fn what_can_never_start_is_cancelled_with_all_below_it(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let parent = harness.submit_one(harness.task("email")).await;
    let first = block(&harness, child(&harness, &[after(parent)])).await;
    let second = block(&harness, child(&harness, &[after(first)])).await;
    let always = block(&harness, child(&harness, &[on(second, Condition::Done)])).await;
    end_one(&harness, session, fail()).await;
    assert_eq!(status(&harness, first).await, Status::Blocked, "that is left to the cascade");
    cascade(&harness).await;
    let task = harness.get(first).await;
    let error = task.error.expect("it says why");
    assert_eq!((task.status, error.code.as_str()), (Status::Cancelled, DEPENDENCY_NOT_MET));
    assert!(error.message.contains(&parent.to_string()), "{}", error.message);
    assert_eq!(status(&harness, second).await, Status::Cancelled);
    assert_eq!(harness.claim_one(session).await.task, always);
}

pub async fn every_way_to_end_counts(harness: Harness) {
    let done = |parent| child(&harness, &[on(parent, Condition::Done)]);
    // Overdue, with no attempt left.
    let late =
        NewTask { timeout: Some(Duration::from_secs(1)), retries: 0, ..harness.task("email") };
    let session = harness.remote(&["email"]).await;
    let parent = harness.submit_one(late).await;
    let overdue = block(&harness, done(parent)).await;
    let claim = harness.next_claim(session, 1);
    let sequence = claim.sequence;
    assert_eq!(harness.ask(claim).await.leases.len(), 1);
    harness.beat(session, &[sequence], &[]).await;
    harness.advance(Duration::from_secs(60));
    harness.reap().await;
    assert_eq!(status(&harness, parent).await, Status::Failed);
    assert_eq!(status(&harness, overdue).await, Status::Pending);
    cancel(&harness, overdue).await;
    // Lost with its workers too often.
    let parent = harness.submit_one(harness.task("email")).await;
    let lost = block(&harness, done(parent)).await;
    harness.leave(session).await;
    harness.lose("email", LOSSES).await;
    assert_eq!(status(&harness, lost).await, Status::Pending);
    cancel(&harness, lost).await;
    // Cancelled while it runs.
    let session = harness.session(&["email"]).await;
    let parent = harness.submit_one(harness.task("email")).await;
    let cancelled = block(&harness, done(parent)).await;
    harness.claim_one(session).await;
    cancel(&harness, parent).await;
    assert_eq!(harness.claim_one(session).await.task, cancelled);
}

pub async fn a_delay_counts_from_the_release(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let parent = harness.submit_one(harness.task("email")).await;
    let delay = Duration::from_secs(30);
    let delayed = NewTask { delay: Some(delay), ..child(&harness, &[after(parent)]) };
    let delayed = block(&harness, delayed).await;
    let at = harness.now().plus(Duration::from_secs(100));
    let timed = NewTask { delay: None, run_at: at, ..child(&harness, &[after(parent)]) };
    let timed = block(&harness, timed).await;
    harness.advance(Duration::from_secs(10));
    end_one(&harness, session, success()).await;
    assert_eq!(harness.get(delayed).await.run_at, harness.now().plus(delay));
    assert_eq!(harness.get(timed).await.run_at, at);
    assert!(harness.claim(session, 10).await.is_empty());
    harness.advance(delay);
    assert_eq!(harness.claim_one(session).await.task, delayed);
}

pub async fn unknown_parents_are_refused(harness: Harness) {
    let missing = harness.task("email").id;
    let mut foreign = harness.task("email");
    foreign.lane.tenant = TenantName::new("other").unwrap();
    let foreign = harness.submit_one(foreign).await;
    for parent in [missing, foreign] {
        let task = child(&harness, &[after(parent)]);
        let refused = harness.submit(std::slice::from_ref(&task)).await;
        assert_eq!(refused, [Submitted::UnknownParent { parent }]);
        assert_eq!(harness.store().get(&own(), task.id).await.unwrap(), None);
    }
}

pub async fn a_replayed_parent_does_not_count_again(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let first = harness.submit_one(harness.task("email")).await;
    let second = harness.submit_one(harness.task_in("email", Duration::from_secs(600))).await;
    let id = block(&harness, child(&harness, &[after(first), after(second)])).await;
    end_one(&harness, session, success()).await;
    let tasks = vec![Replay { task: first, run: 1, run_at: None }];
    let order = ReplayTasks { tenant: own(), tasks, payload: None };
    harness.store().replay(order).await.unwrap();
    end_one(&harness, session, success()).await;
    assert_eq!(status(&harness, id).await, Status::Blocked, "its other parent has not ended");
    harness.advance(Duration::from_secs(600));
    end_one(&harness, session, success()).await;
    assert_eq!(status(&harness, id).await, Status::Pending);
}

pub async fn a_blocked_task_can_be_cancelled_and_changed(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let parent = harness.submit_one(harness.task("email")).await;
    let changed = block(&harness, child(&harness, &[after(parent)])).await;
    let cancelled = block(&harness, child(&harness, &[after(parent)])).await;
    cancel(&harness, cancelled).await;
    let change = TaskChange {
        payload: Some(Arc::from("7")),
        start: Some(Start::After(Duration::from_secs(5))),
        ..TaskChange::default()
    };
    let order = EditTask { tenant: own(), task: changed, change };
    assert_eq!(harness.store().edit(order).await.unwrap(), Controlled::Done);
    end_one(&harness, session, success()).await;
    assert_eq!(status(&harness, cancelled).await, Status::Cancelled);
    assert!(harness.claim(session, 10).await.is_empty(), "its delay counts from the release");
    harness.advance(Duration::from_secs(5));
    let lease = harness.claim_one(session).await;
    assert_eq!((lease.task, &*lease.payload), (changed, "7"));
}

pub async fn a_parent_of_open_tasks_stays(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let parent = harness.submit_one(harness.task("email")).await;
    let id = block(&harness, child(&harness, &[after(parent)])).await;
    end_one(&harness, session, success()).await;
    assert_eq!(delete(&harness, parent).await, Controlled::OpenChildren);
    harness.advance(Duration::from_secs(3600));
    let cutoffs = Cutoffs { success: Some(harness.now()), ..Cutoffs::default() };
    let sweep = Sweep { cutoffs, ..Sweep::default() };
    assert_eq!(harness.store().sweep(sweep).await.unwrap().deleted, 0);
    end_one(&harness, session, success()).await;
    assert_eq!(delete(&harness, parent).await, Controlled::Done);
    let links = harness.get(id).await.links;
    assert!(links.is_none_or(|links| links.dependencies.is_empty()), "the edge is gone");
    assert_eq!(delete(&harness, id).await, Controlled::Done);
}

pub async fn parents_show_how_they_ended(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let good = harness.submit_one(harness.task("email")).await;
    end_one(&harness, session, success()).await;
    let bad = harness.submit_one(harness.task("email")).await;
    end_one(&harness, session, fail()).await;
    let large = harness.submit_one(harness.task("email")).await;
    let result = Some(Arc::from(format!("\"{}\"", "x".repeat(PARENT_BYTES))));
    end_one(&harness, session, Outcome::Success { result }).await;
    let all = [after(good), on(bad, Condition::Done), after(large)];
    let id = harness.submit_one(child(&harness, &all)).await;
    let parents = harness.store().parents(vec![id, good]).await.unwrap();
    assert!(parents[1].is_empty());
    let [first, second, third] = &parents[0][..] else { panic!("{parents:?}") };
    assert_eq!(
        (first.task, first.status, first.edge),
        (good, Status::Success, EdgeState::Satisfied)
    );
    assert_eq!(first.result.as_deref(), Some(r#"{"ok":true}"#));
    assert_eq!(second.error.as_ref().map(|error| error.code.as_str()), Some("HOPELESS"));
    assert_eq!((third.task, third.result.as_ref()), (large, None), "too large to be handed on");
}

pub async fn an_outcome_stores_its_tasks_once(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let parent = harness.submit_one(harness.task("email")).await;
    let lease = harness.claim_one(session).await;
    let then = [child(&harness, &[after(parent)]), child(&harness, &[after(parent)])];
    let last = child(&harness, &[after(then[0].id), after(then[1].id)]);
    let tasks: Arc<[NewTask]> = Arc::from([then.as_slice(), std::slice::from_ref(&last)].concat());
    let stale = Finish { then: Some(Arc::clone(&tasks)), ..Finish::new(parent, 7, success()) };
    assert_eq!(harness.finish(session, vec![stale]).await, [Finished::LeaseLost]);
    assert_eq!(harness.store().get(&own(), last.id).await.unwrap(), None, "it was refused");
    let finish = Finish { then: Some(tasks), ..Finish::new(parent, lease.epoch, success()) };
    for _ in 0..2 {
        assert_eq!(harness.finish(session, vec![finish.clone()]).await, [Finished::Done]);
    }
    assert_eq!(status(&harness, last.id).await, Status::Blocked);
    let leases = harness.claim(session, 10).await;
    assert_eq!(ids(&leases), [then[0].id, then[1].id]);
    let done = |lease: &Lease| Finish::new(lease.task, lease.epoch, success());
    harness.finish(session, leases.iter().map(done).collect()).await;
    assert_eq!(harness.claim_one(session).await.task, last.id);
}

pub async fn blocked_tasks_are_listed(harness: Harness) {
    let parent = harness.submit_one(harness.task("email")).await;
    let first = block(&harness, child(&harness, &[after(parent)])).await;
    let second = block(&harness, child(&harness, &[after(parent)])).await;
    let filter = duly_core::filter::Filter {
        statuses: [Status::Blocked].into(),
        ..duly_core::filter::Filter::default()
    };
    let page = ListTasks { tenant: own(), filter, before: None, limit: 10 };
    let found = harness.store().list(page).await.unwrap().tasks;
    let found: Vec<_> = found.iter().map(|task| task.id).collect();
    assert_eq!(found, [second, first]);
}

pub async fn edges_outlive_a_restart(mut harness: Harness) {
    let parent = harness.submit_one(harness.task("email")).await;
    let id = block(&harness, child(&harness, &[after(parent)])).await;
    harness.crash().await;
    let session = harness.session(&["email"]).await;
    end_one(&harness, session, success()).await;
    assert_eq!(harness.claim_one(session).await.task, id);
}

pub async fn a_thousand_parents_release_their_child_once(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let tasks: Vec<_> = (0..1000).map(|_| harness.task("email")).collect();
    harness.submit(&tasks).await;
    let parents: Vec<_> = tasks.iter().map(|task| after(task.id)).collect();
    let id = block(&harness, child(&harness, &parents)).await;
    let done = |lease: &Lease| Finish::new(lease.task, lease.epoch, success());
    for _ in 0..4 {
        let leases = harness.claim(session, 250).await;
        assert_eq!(status(&harness, id).await, Status::Blocked);
        let halves = leases.split_at(125);
        let (first, second) = (halves.0.iter().map(done), halves.1.iter().map(done));
        tokio::join!(
            harness.finish(session, first.collect()),
            harness.finish(session, second.collect())
        );
    }
    assert_eq!(harness.claim_one(session).await.task, id);
    assert!(harness.claim(session, 10).await.is_empty());
}
