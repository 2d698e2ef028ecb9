//! Workflows.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use duly_core::filter::Filter;
use duly_core::id::{SessionId, TaskId, WorkflowId};
use duly_core::lease::{Finish, Lease, Outcome};
use duly_core::name::TenantName;
use duly_core::ports::store::{
    Controlled, CountTasks, DeleteTasks, Edge, ListDead, ListTasks, ListWorkflows, Replay,
    ReplayTasks, ReplayedDownstream, Submitted, SubmittedWorkflow, Usage, WorkflowChange,
    WorkflowState,
};
use duly_core::state::Status;
use duly_core::task::{Idempotency, NewTask};
use duly_core::workflow::{
    Condition, Dependency, Links, Membership, NewWorkflow, WORKFLOW_CANCELLED, WORKFLOW_FAILED,
    WorkflowStatus,
};

use super::Harness;
use super::dependencies::cascade;
use super::harness::{fail, success};

fn own() -> TenantName {
    TenantName::default_tenant()
}

fn workflow_id(harness: &Harness) -> WorkflowId {
    WorkflowId::from_bytes(*harness.task("email").id.as_bytes())
}

/// A task of a workflow; its type is its key.
fn member(
    harness: &Harness,
    workflow: WorkflowId,
    key: &str,
    dependencies: Vec<Dependency>,
) -> NewTask {
    let workflow = Some(Membership { id: workflow, key: key.to_owned() });
    let links = Links { dependencies, workflow, render: false };
    NewTask {
        delay: Some(Duration::ZERO),
        retries: 0,
        links: Some(Arc::new(links)),
        ..harness.task(key)
    }
}

/// A workflow of tasks and the tasks that each depends on.
pub(super) fn workflow(harness: &Harness, tasks: &[(&str, &[(&str, Condition)])]) -> NewWorkflow {
    let id = workflow_id(harness);
    let mut made: Vec<NewTask> = Vec::new();
    let mut ids: BTreeMap<&str, TaskId> = BTreeMap::new();
    for (key, parents) in tasks {
        let dependency =
            |(parent, on): &(&str, Condition)| Dependency { parent: ids[parent], on: *on };
        let task = member(harness, id, key, parents.iter().map(dependency).collect());
        ids.insert(key, task.id);
        made.push(task);
    }
    NewWorkflow {
        id,
        tenant: own(),
        name: "demo".to_owned(),
        labels: BTreeMap::from([("team".to_owned(), "a".to_owned())]),
        fail_fast: false,
        idempotency: None,
        tasks: made,
    }
}

const ALL: [&str; 5] = ["a", "b", "c", "d", "e"];
const S: Condition = Condition::Success;

async fn store(harness: &Harness, workflow: &NewWorkflow) {
    let answer = harness.store().submit_workflow(workflow.clone()).await.unwrap();
    assert_eq!(answer, SubmittedWorkflow::Stored { at: harness.now() });
}

async fn state(harness: &Harness, id: WorkflowId) -> WorkflowState {
    harness.store().workflow(&own(), id).await.unwrap().expect("it is stored")
}

async fn status(harness: &Harness, id: WorkflowId) -> WorkflowStatus {
    state(harness, id).await.workflow.status
}

/// Runs the task with this key, which is due, to this end.
pub(super) async fn end(harness: &Harness, session: SessionId, key: &str, outcome: Outcome) {
    let leases = harness.claim(session, 10).await;
    for lease in leases {
        let outcome =
            if lease.lane.task_type.as_str() == key { outcome.clone() } else { Outcome::Release };
        harness.finish_one(session, &lease, outcome).await;
    }
}

async fn statuses(harness: &Harness, workflow: &NewWorkflow) -> Vec<Status> {
    let mut statuses = Vec::new();
    for task in &workflow.tasks {
        statuses.push(harness.get(task.id).await.status);
    }
    statuses
}

pub async fn it_reads_back_as_it_was(harness: Harness) {
    let new = workflow(&harness, &[("a", &[]), ("b", &[("a", S)]), ("c", &[("a", S), ("b", S)])]);
    for _ in 0..2 {
        store(&harness, &new).await;
    }
    let WorkflowState { workflow: found, counts, handled } = state(&harness, new.id).await;
    assert_eq!((found.name.as_str(), &found.labels, found.open), ("demo", &new.labels, 3));
    assert_eq!((found.status, counts, handled), (WorkflowStatus::Running, [2, 1, 0, 0, 0, 0], 0));
    let graph = harness.store().graph(&own(), new.id).await.unwrap().unwrap();
    let keys: Vec<_> = graph.nodes.iter().map(|node| node.key.as_str()).collect();
    assert_eq!(keys, ["a", "b", "c"]);
    let [a, b, c] = [0, 1, 2].map(|number| new.tasks[number].id);
    let edge = |parent, child| Edge { parent, child, on: S };
    assert_eq!(graph.edges, [edge(a, b), edge(a, c), edge(b, c)]);
    let links = harness.get(c).await.links.unwrap();
    assert_eq!(*links, *new.tasks[2].links.clone().unwrap());
    let other = TenantName::new("other").unwrap();
    assert_eq!(harness.store().workflow(&other, new.id).await.unwrap(), None);
    assert_eq!(harness.store().graph(&other, new.id).await.unwrap(), None);
}

pub async fn it_ends_with_its_last_task(harness: Harness) {
    let session = harness.session(&ALL).await;
    let new = workflow(&harness, &[("a", &[]), ("b", &[("a", S)]), ("c", &[("a", S)])]);
    store(&harness, &new).await;
    end(&harness, session, "a", success()).await;
    end(&harness, session, "b", success()).await;
    assert_eq!(status(&harness, new.id).await, WorkflowStatus::Running);
    harness.advance(Duration::from_secs(1));
    end(&harness, session, "c", success()).await;
    let ended = state(&harness, new.id).await.workflow;
    assert_eq!((ended.status, ended.open), (WorkflowStatus::Success, 0));
    assert_eq!(ended.finished_at, Some(harness.now()));
}

pub async fn a_failure_without_a_handler_fails_it(harness: Harness) {
    let session = harness.session(&ALL).await;
    let new = workflow(&harness, &[("a", &[]), ("b", &[("a", S)])]);
    store(&harness, &new).await;
    end(&harness, session, "a", fail()).await;
    cascade(&harness).await;
    assert_eq!(status(&harness, new.id).await, WorkflowStatus::Failed);
    assert_eq!(statuses(&harness, &new).await, [Status::Failed, Status::Cancelled]);
}

pub async fn a_handled_failure_does_not(harness: Harness) {
    let session = harness.session(&ALL).await;
    let new = workflow(&harness, &[("a", &[]), ("b", &[("a", Condition::Failure)])]);
    store(&harness, &new).await;
    end(&harness, session, "a", fail()).await;
    end(&harness, session, "b", success()).await;
    let ended = state(&harness, new.id).await;
    assert_eq!((ended.workflow.status, ended.handled), (WorkflowStatus::Success, 1));
}

pub async fn nothing_is_released_once_it_is_cancelled(harness: Harness) {
    let session = harness.session(&ALL).await;
    let new = workflow(&harness, &[("a", &[]), ("b", &[("a", S)]), ("c", &[("b", S)])]);
    store(&harness, &new).await;
    let lease = harness.claim_one(session).await;
    let cancel = || {
        let (store, id) = (harness.store(), new.id);
        async move { store.cancel_workflow(&own(), id, "enough".to_owned()).await }
    };
    assert_eq!(cancel().await.unwrap(), WorkflowChange::Done { tasks: 0 });
    harness.finish_one(session, &lease, success()).await;
    let expected = [Status::Success, Status::Blocked, Status::Blocked];
    assert_eq!(statuses(&harness, &new).await, expected);
    cascade(&harness).await;
    assert_eq!(status(&harness, new.id).await, WorkflowStatus::Cancelled);
    let error = harness.get(new.tasks[1].id).await.error.unwrap();
    assert_eq!((error.code.as_str(), error.message.as_str()), (WORKFLOW_CANCELLED, "enough"));
    assert_eq!(cancel().await.unwrap(), WorkflowChange::Done { tasks: 0 });
    let missing = workflow_id(&harness);
    let answer = harness.store().cancel_workflow(&own(), missing, String::new()).await.unwrap();
    assert_eq!(answer, WorkflowChange::Unknown);
}

pub async fn tasks_of_an_outcome_wait_once_it_is_cancelled(harness: Harness) {
    let session = harness.session(&ALL).await;
    let new = workflow(&harness, &[("a", &[])]);
    store(&harness, &new).await;
    let lease = harness.claim_one(session).await;
    harness.store().cancel_workflow(&own(), new.id, "enough".to_owned()).await.unwrap();
    let parent = Dependency { parent: lease.task, on: S };
    let then = member(&harness, new.id, "b", vec![parent]);
    let id = then.id;
    let finish =
        Finish { then: Some(Arc::from([then])), ..Finish::new(lease.task, lease.epoch, success()) };
    harness.finish(session, vec![finish]).await;
    assert_eq!(harness.get(id).await.status, Status::Blocked);
    cascade(&harness).await;
    assert_eq!(harness.get(id).await.status, Status::Cancelled);
    assert_eq!(status(&harness, new.id).await, WorkflowStatus::Cancelled);
}

pub async fn cancelling_it_takes_leases_back(harness: Harness) {
    let session = harness.session(&ALL).await;
    let new = workflow(&harness, &[("a", &[])]);
    store(&harness, &new).await;
    let lease = harness.claim_one(session).await;
    harness.store().cancel_workflow(&own(), new.id, String::new()).await.unwrap();
    cascade(&harness).await;
    assert_eq!(statuses(&harness, &new).await, [Status::Cancelled]);
    let late = harness.finish_one(session, &lease, success()).await;
    assert_eq!(late, duly_core::lease::Finished::LeaseLost);
}

pub async fn failing_fast_spares_what_handles_failures(harness: Harness) {
    let session = harness.session(&ALL).await;
    let tasks: &[(&str, &[(&str, Condition)])] = &[
        ("a", &[]),
        ("b", &[]),
        ("c", &[("b", Condition::Done)]),
        ("d", &[("c", S)]),
        ("e", &[("b", S)]),
    ];
    let new = NewWorkflow { fail_fast: true, ..workflow(&harness, tasks) };
    store(&harness, &new).await;
    end(&harness, session, "a", fail()).await;
    cascade(&harness).await;
    let expected =
        [Status::Failed, Status::Cancelled, Status::Pending, Status::Blocked, Status::Cancelled];
    assert_eq!(statuses(&harness, &new).await, expected);
    let error = harness.get(new.tasks[1].id).await.error.unwrap();
    assert_eq!(error.code, WORKFLOW_FAILED);
    end(&harness, session, "c", success()).await;
    end(&harness, session, "d", success()).await;
    assert_eq!(status(&harness, new.id).await, WorkflowStatus::Failed);
}

pub async fn a_retry_runs_what_failed_and_what_waited_for_it(harness: Harness) {
    let session = harness.session(&ALL).await;
    let new = workflow(&harness, &[("a", &[]), ("b", &[("a", S)]), ("c", &[("b", S)])]);
    store(&harness, &new).await;
    end(&harness, session, "a", fail()).await;
    cascade(&harness).await;
    assert_eq!(status(&harness, new.id).await, WorkflowStatus::Failed);
    harness.store().retry_workflow(&own(), new.id).await.unwrap();
    let expected = [Status::Pending, Status::Blocked, Status::Blocked];
    assert_eq!(statuses(&harness, &new).await, expected);
    let reopened = state(&harness, new.id).await.workflow;
    assert_eq!((reopened.status, reopened.open), (WorkflowStatus::Running, 3));
    for key in ["a", "b", "c"] {
        end(&harness, session, key, success()).await;
    }
    assert_eq!(status(&harness, new.id).await, WorkflowStatus::Success);
    assert_eq!(harness.get(new.tasks[1].id).await.run, 2);
}

pub async fn a_replay_may_take_what_depends_on_it_along(harness: Harness) {
    let session = harness.session(&ALL).await;
    let new = workflow(&harness, &[("a", &[]), ("b", &[("a", S)]), ("c", &[("b", S)])]);
    store(&harness, &new).await;
    for key in ["a", "b"] {
        end(&harness, session, key, success()).await;
    }
    let replay = |task, run| {
        let store = harness.store();
        async move { store.replay_downstream(&own(), task, run).await.unwrap() }
    };
    let [a, _, c] = [0, 1, 2].map(|number| new.tasks[number].id);
    let conflict = ReplayedDownstream::Conflict { task: c, status: Status::Pending };
    assert_eq!(replay(a, 1).await, conflict, "it has not ended");
    end(&harness, session, "c", success()).await;
    replay(a, 1).await;
    let expected = [Status::Pending, Status::Blocked, Status::Blocked];
    assert_eq!(statuses(&harness, &new).await, expected);
    for key in ["a", "b", "c"] {
        end(&harness, session, key, success()).await;
    }
    assert_eq!(status(&harness, new.id).await, WorkflowStatus::Success);
    assert_eq!(replay(a, 1).await, ReplayedDownstream::Done { tasks: 0 }, "it was done before");
    assert_eq!(replay(workflow_task(&harness), 1).await, ReplayedDownstream::Unknown);
}

fn workflow_task(harness: &Harness) -> TaskId {
    harness.task("a").id
}

pub async fn replaying_a_task_opens_it_again(harness: Harness) {
    let session = harness.session(&ALL).await;
    let new = workflow(&harness, &[("a", &[])]);
    store(&harness, &new).await;
    end(&harness, session, "a", success()).await;
    let tasks = vec![Replay { task: new.tasks[0].id, run: 1, run_at: None }];
    harness.store().replay(ReplayTasks { tenant: own(), tasks, payload: None }).await.unwrap();
    let reopened = state(&harness, new.id).await.workflow;
    assert_eq!((reopened.status, reopened.finished_at), (WorkflowStatus::Running, None));
    end(&harness, session, "a", fail()).await;
    assert_eq!(status(&harness, new.id).await, WorkflowStatus::Failed);
}

pub async fn tasks_join_it_while_it_runs(harness: Harness) {
    let session = harness.session(&ALL).await;
    let new = workflow(&harness, &[("a", &[])]);
    store(&harness, &new).await;
    let first = new.tasks[0].id;
    let late = member(&harness, new.id, "b", vec![Dependency { parent: first, on: S }]);
    let answer = harness.submit(&[late]).await;
    assert_eq!(answer, [Submitted::Blocked { at: harness.now() }]);
    end(&harness, session, "a", success()).await;
    assert_eq!(status(&harness, new.id).await, WorkflowStatus::Running);
    end(&harness, session, "b", success()).await;
    assert_eq!(status(&harness, new.id).await, WorkflowStatus::Success);
    let too_late = harness.submit(&[member(&harness, new.id, "c", vec![])]).await;
    assert_eq!(too_late, [Submitted::WorkflowEnded]);
    let nowhere = member(&harness, workflow_id(&harness), "c", vec![]);
    assert_eq!(harness.submit(&[nowhere]).await, [Submitted::UnknownWorkflow]);
}

pub async fn an_outcome_adds_tasks_before_it_ends(harness: Harness) {
    let session = harness.session(&ALL).await;
    let new = workflow(&harness, &[("a", &[])]);
    store(&harness, &new).await;
    let lease = harness.claim_one(session).await;
    let parent = Dependency { parent: lease.task, on: S };
    let then = member(&harness, new.id, "b", vec![parent]);
    let finish =
        Finish { then: Some(Arc::from([then])), ..Finish::new(lease.task, lease.epoch, success()) };
    harness.finish(session, vec![finish]).await;
    assert_eq!(state(&harness, new.id).await.workflow.open, 1);
    end(&harness, session, "b", success()).await;
    assert_eq!(status(&harness, new.id).await, WorkflowStatus::Success);
}

pub async fn the_same_key_gives_the_first_one(harness: Harness) {
    let keyed = |body| NewWorkflow {
        idempotency: Some(Idempotency { key: "k".to_owned(), body: [body; 32] }),
        ..workflow(&harness, &[("a", &[])])
    };
    let first = keyed(1);
    store(&harness, &first).await;
    let submit = |new| {
        let store = harness.store();
        async move { store.submit_workflow(new).await.unwrap() }
    };
    assert_eq!(submit(keyed(1)).await, SubmittedWorkflow::Replayed { id: first.id });
    assert_eq!(submit(keyed(2)).await, SubmittedWorkflow::KeyReused);
    harness.advance(Duration::from_secs(24 * 60 * 60));
    assert!(matches!(submit(keyed(2)).await, SubmittedWorkflow::Stored { .. }));
}

pub async fn an_unknown_parent_stores_nothing(harness: Harness) {
    let mut new = workflow(&harness, &[("a", &[]), ("b", &[])]);
    let parent = harness.task("a").id;
    new.tasks[1] = member(&harness, new.id, "b", vec![Dependency { parent, on: S }]);
    let answer = harness.store().submit_workflow(new.clone()).await.unwrap();
    assert_eq!(answer, SubmittedWorkflow::UnknownParent { parent });
    assert_eq!(harness.store().workflow(&own(), new.id).await.unwrap(), None);
    assert_eq!(harness.store().get(&own(), new.tasks[0].id).await.unwrap(), None);
}

pub async fn lists_show_the_newest_first(harness: Harness) {
    let session = harness.session(&ALL).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        let new = workflow(&harness, &[("a", &[])]);
        store(&harness, &new).await;
        ids.push(new.id);
    }
    end(&harness, session, "a", success()).await;
    let page = |status, before, limit| ListWorkflows {
        tenant: own(),
        status,
        name: Some("demo".to_owned()),
        labels: BTreeMap::from([("team".to_owned(), "a".to_owned())]),
        before,
        limit,
    };
    let list = |page| {
        let store = harness.store();
        async move {
            let found = store.workflows(page).await.unwrap();
            (found.workflows.iter().map(|it| it.id).collect::<Vec<_>>(), found.next_before)
        }
    };
    let (first, next) = list(page(None, None, 2)).await;
    assert_eq!((first, next), (vec![ids[2], ids[1]], Some(ids[1])));
    assert_eq!(list(page(None, next, 2)).await, (vec![ids[0]], None));
    let running = list(page(Some(WorkflowStatus::Running), None, 10)).await;
    assert_eq!(running.0, []);
    let other = ListWorkflows { name: Some("x".to_owned()), ..page(None, None, 10) };
    assert_eq!(list(other).await.0, []);
}

pub async fn it_goes_with_its_last_task(harness: Harness) {
    let session = harness.session(&ALL).await;
    let new = workflow(&harness, &[("a", &[]), ("b", &[("a", S)])]);
    store(&harness, &new).await;
    end(&harness, session, "a", success()).await;
    end(&harness, session, "b", success()).await;
    for (number, left) in [(0, true), (1, false)] {
        let tasks = vec![new.tasks[number].id];
        let order = DeleteTasks { tenant: own(), tasks, before: None };
        assert_eq!(harness.store().delete(order).await.unwrap(), [Controlled::Done]);
        let found = harness.store().workflow(&own(), new.id).await.unwrap();
        assert_eq!(found.is_some(), left);
    }
}

pub async fn a_wide_one_counts_every_task(harness: Harness) {
    let session = harness.session(&["a"]).await;
    let id = workflow_id(&harness);
    let root = member(&harness, id, "a", vec![]);
    let below = |_| member(&harness, id, "a", vec![Dependency { parent: root.id, on: S }]);
    let middle: Vec<_> = (0..1500).map(below).collect();
    let parents = middle.iter().map(|task| Dependency { parent: task.id, on: S }).collect();
    let last = member(&harness, id, "a", parents);
    let all = [vec![root], middle, vec![last]].concat();
    let new = NewWorkflow { id, tasks: all, ..workflow(&harness, &[]) };
    store(&harness, &new).await;
    let done = |lease: &Lease| Finish::new(lease.task, lease.epoch, success());
    for size in [1, 1000, 500, 1] {
        let leases = harness.claim(session, 1000).await;
        assert_eq!(leases.len(), size);
        harness.finish(session, leases.iter().map(done).collect()).await;
    }
    assert_eq!(state(&harness, id).await.counts, [0, 0, 0, 1502, 0, 0]);
    assert_eq!(status(&harness, id).await, WorkflowStatus::Success);
}

pub async fn a_filter_finds_its_tasks(harness: Harness) {
    let session = harness.session(&ALL).await;
    let new = workflow(&harness, &[("a", &[]), ("b", &[("a", S)]), ("c", &[])]);
    let other = workflow(&harness, &[("d", &[])]);
    store(&harness, &new).await;
    store(&harness, &other).await;
    harness.submit_one(harness.task("e")).await;
    end(&harness, session, "c", fail()).await;
    let filter = |statuses: &[Status]| Filter {
        workflow: Some(new.id),
        statuses: statuses.iter().copied().collect(),
        ..Filter::default()
    };
    let list = |filter| {
        let page = ListTasks { tenant: own(), filter, before: None, limit: 10 };
        let store = harness.store();
        async move {
            let found = store.list(page).await.unwrap().tasks;
            found.iter().map(|task| task.id).collect::<Vec<_>>()
        }
    };
    let [a, b, c] = [0, 1, 2].map(|number| new.tasks[number].id);
    assert_eq!(list(filter(&[])).await, [c, b, a]);
    assert_eq!(list(filter(&[Status::Failed])).await, [c]);
    assert_eq!(list(filter(&[Status::Blocked, Status::Pending])).await, [b, a]);
    let dead = ListDead { tenant: own(), filter: filter(&[]), before: None, limit: 10 };
    let dead = harness.store().dead_letters(dead).await.unwrap().tasks;
    assert_eq!(dead.iter().map(|task| task.id).collect::<Vec<_>>(), [c]);
    let which = CountTasks { tenant: own(), filter: filter(&[]), retried: false, before: None };
    assert_eq!(harness.store().count(which).await.unwrap().count, 3);
    let unknown = Filter { workflow: Some(workflow_id(&harness)), ..Filter::default() };
    assert_eq!(list(unknown).await, []);
}

pub async fn those_of_a_tenant_are_counted_until_they_end(harness: Harness) {
    let count = async |of| harness.store().usage(&own(), of, 10).await.unwrap().count;
    let session = harness.session(&ALL).await;
    let new = workflow(&harness, &[("a", &[]), ("b", &[("a", S)]), ("c", &[("a", S)])]);
    store(&harness, &new).await;
    assert_eq!(count(Usage::Workflows).await, 1);
    assert_eq!(count(Usage::WaitingTasks).await, 3, "blocked tasks wait too");
    for key in ["a", "b", "c"] {
        end(&harness, session, key, success()).await;
    }
    assert_eq!(count(Usage::Workflows).await, 0);
    assert_eq!(count(Usage::WaitingTasks).await, 0);
}
