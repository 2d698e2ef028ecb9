//! Tasks that depend on each other, at two nodes at the same time. STORAGE knows three ways to lose a
//! child: an edge that its parent's end cannot know of, an edge that is read with an old snapshot, and
//! two parents that are counted once. Each has its race here, held at a lock until both calls are there.

use std::sync::Arc;
use std::time::Duration;

use duly_core::id::{SessionId, TaskId, WorkflowId};
use duly_core::lease::{Fence, Finish, Finished, Lease};
use duly_core::name::{TenantName, TypeName};
use duly_core::ports::clock::Clock as _;
use duly_core::ports::store::{
    Bulk as _, Claim, Controlled, DeleteTasks, Exchange, Home, Leases as _, OpenSession,
    Sessions as _, Submitted, SubmittedWorkflow, WorkflowChange, Workflows as _,
};
use duly_core::state::Status;
use duly_core::task::NewTask;
use duly_core::workflow::{Condition, Dependency, Links, Membership, NewWorkflow, WorkflowStatus};
use duly_store::postgres::finish_in;

use crate::gate::Gate;
use crate::world::{World, success};

const TIMES: u32 = 6;

impl World {
    /// A task that depends on others.
    fn child(&self, number: u32, parents: &[TaskId]) -> NewTask {
        let on = Condition::Success;
        let dependencies = parents.iter().map(|parent| Dependency { parent: *parent, on });
        let links = Links { dependencies: dependencies.collect(), workflow: None, render: false };
        let delay = Some(Duration::ZERO);
        NewTask { delay, links: Some(Arc::new(links)), ..self.task(number, Duration::ZERO) }
    }

    /// Tasks that this session holds.
    async fn leases(&self, numbers: &[u32], session: SessionId, sequence: u64) -> Vec<Lease> {
        let tasks = numbers.iter().map(|number| self.task(*number, Duration::ZERO)).collect();
        self.submit(0, tasks).await;
        let leases = self.claim(0, session, sequence).await;
        assert_eq!(leases.len(), numbers.len());
        leases
    }

    async fn end(&self, node: usize, session: SessionId, leases: &[Lease]) {
        let exchange = Exchange { session, finishes: success(leases), claim: None };
        let finished = self.nodes[node].exchange(exchange).await.unwrap().finished;
        assert!(finished.iter().all(|it| *it == Finished::Done), "{finished:?}");
    }

    /// The task waits for its time, once, and for no parent.
    async fn assert_released(&self, gate: &Gate, task: TaskId) {
        assert_eq!(self.status(task).await, Status::Pending);
        for (table, rows) in [("due", 1), ("blocked", 0)] {
            let count = format!("SELECT count(*) FROM duly.{table} WHERE task = '{task}'");
            assert_eq!(gate.count(&count).await, rows, "in {table}");
        }
        let (client, _driver) = self.scratch.connect().await;
        client.batch_execute(&format!("DELETE FROM duly.due WHERE task = '{task}'")).await.unwrap();
    }

    /// A workflow of a chain of tasks.
    async fn chain(&self, number: u32, length: u32) -> NewWorkflow {
        let bytes = *self.task(number, Duration::ZERO).id.as_bytes();
        let id = WorkflowId::from_bytes(bytes);
        let mut tasks: Vec<NewTask> = Vec::new();
        for place in 0..length {
            let parents: Vec<_> = tasks.last().map(|task| task.id).into_iter().collect();
            let task = self.child(number + place, &parents);
            let mut links = (**task.links.as_ref().unwrap()).clone();
            links.workflow = Some(Membership { id, key: format!("t{place}") });
            tasks.push(NewTask { links: Some(Arc::new(links)), ..task });
        }
        let workflow = NewWorkflow {
            id,
            tenant: TenantName::default_tenant(),
            name: String::new(),
            labels: std::collections::BTreeMap::new(),
            fail_fast: false,
            idempotency: None,
            tasks,
        };
        let stored = self.nodes[0].submit_workflow(workflow.clone()).await.unwrap();
        assert!(matches!(stored, SubmittedWorkflow::Stored { .. }), "{stored:?}");
        workflow
    }
}

fn row(task: TaskId) -> String {
    format!("SELECT FROM duly.task WHERE id = '{task}' FOR UPDATE")
}

/// Runs two calls that a gate holds, the first of them first; whether both were held.
async fn in_order<A, B>(
    gate: &Gate,
    first: impl Future<Output = A>,
    second: impl Future<Output = B>,
) -> (A, B, bool) {
    let second = async {
        gate.holds(1).await;
        second.await
    };
    let release = async {
        let met = gate.holds(2).await;
        gate.open().await;
        met
    };
    tokio::join!(first, second, release)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_that_is_submitted_while_its_parent_ends_is_released() {
    let Some(world) = World::new().await else { return };
    let (gate, session) = (Gate::new(&world).await, world.open(0, 1, Home::Local).await);
    let mut races = 0;
    for number in 0..TIMES {
        let leases = world.leases(&[2 * number], session, u64::from(number) + 1).await;
        let child = world.child(2 * number + 1, &[leases[0].task]);
        gate.shut(&row(leases[0].task)).await;
        let end = world.end(0, session, &leases);
        let submit = world.submit(1, vec![child.clone()]);
        let at = world.clock.now();
        let met = if number % 2 == 0 {
            let (_, answers, met) = in_order(&gate, end, submit).await;
            assert_eq!(answers, [Submitted::Stored { at }], "its parent has ended");
            met
        } else {
            let (answers, _, met) = in_order(&gate, submit, end).await;
            assert_eq!(answers, [Submitted::Blocked { at }]);
            met
        };
        races += u32::from(met);
        world.assert_released(&gate, child.id).await;
    }
    assert!(races > 1, "they met at the gate");
}

/// The parent's end has begun, and with it its snapshot, when the edge is committed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edge_that_is_committed_while_its_parent_ends_is_seen() {
    let Some(world) = World::new().await else { return };
    let (gate, session) = (Gate::new(&world).await, world.open(0, 1, Home::Local).await);
    let leases = world.leases(&[0], session, 1).await;
    let child = world.child(1, &[leases[0].task]);
    gate.shut("LOCK TABLE duly.edge IN EXCLUSIVE MODE").await;
    let submit = world.submit(1, vec![child.clone()]);
    let (_, _, met) = in_order(&gate, submit, world.end(0, session, &leases)).await;
    assert!(met, "they met at the gate");
    world.assert_released(&gate, child.id).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_parents_that_end_at_once_release_their_child_once() {
    let Some(world) = World::new().await else { return };
    let (gate, session) = (Gate::new(&world).await, world.open(0, 1, Home::Local).await);
    let mut races = 0;
    for number in 0..TIMES {
        let numbers = [3 * number, 3 * number + 1];
        let leases = world.leases(&numbers, session, u64::from(number) + 1).await;
        let child = world.child(3 * number + 2, &[leases[0].task, leases[1].task]);
        world.submit(0, vec![child.clone()]).await;
        gate.shut(&row(child.id)).await;
        let (one, two) = (world.end(0, session, &leases[..1]), world.end(1, session, &leases[1..]));
        let (_, _, met) = in_order(&gate, one, two).await;
        races += u32::from(met);
        world.assert_released(&gate, child.id).await;
    }
    assert!(races > 0, "they met at the gate");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_parents_in_one_batch_are_counted_twice() {
    let Some(world) = World::new().await else { return };
    let (gate, session) = (Gate::new(&world).await, world.open(0, 1, Home::Local).await);
    let leases = world.leases(&[0, 1, 2], session, 1).await;
    let parents: Vec<_> = leases.iter().map(|lease| lease.task).collect();
    let child = world.child(3, &parents);
    world.submit(0, vec![child.clone()]).await;
    world.end(0, session, &leases[..2]).await;
    assert_eq!(world.status(child.id).await, Status::Blocked);
    world.end(0, session, &leases[2..]).await;
    world.assert_released(&gate, child.id).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_released_after_a_workflow_was_cancelled() {
    let Some(world) = World::new().await else { return };
    let (gate, session) = (Gate::new(&world).await, world.open(0, 1, Home::Local).await);
    let mut races = 0;
    for number in 0..TIMES {
        let workflow = world.chain(10 * number, 3).await;
        let leases = world.claim(0, session, u64::from(number) + 1).await;
        gate.shut(&format!("SELECT FROM duly.workflow WHERE id = '{}' FOR UPDATE", workflow.id))
            .await;
        let tenant = TenantName::default_tenant();
        let cancel = world.nodes[1].cancel_workflow(&tenant, workflow.id, "over".to_owned());
        let end = world.end(0, session, &leases);
        let (cancelled, expected, met) = if number % 2 == 0 {
            let (cancelled, _, met) = in_order(&gate, cancel, end).await;
            (cancelled, Status::Blocked, met)
        } else {
            let (_, cancelled, met) = in_order(&gate, end, cancel).await;
            (cancelled, Status::Pending, met)
        };
        races += u32::from(met);
        assert_eq!(cancelled.unwrap(), WorkflowChange::Done { tasks: 0 });
        assert_eq!(world.status(workflow.tasks[1].id).await, expected);
        while world.nodes[number as usize % 2].cascade(1).await.unwrap().more {}
        let state = world.nodes[0].workflow(&tenant, workflow.id).await.unwrap().unwrap();
        let ended = (state.workflow.status, state.workflow.open, state.counts);
        assert_eq!(ended, (WorkflowStatus::Cancelled, 0, [0, 0, 0, 1, 0, 2]));
    }
    assert!(races > 1, "they met at the gate");
    let left = "SELECT count(*) FROM duly.blocked";
    assert_eq!(gate.count(left).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_two_tasks_of_a_workflow_end_it() {
    let Some(world) = World::new().await else { return };
    let (gate, session) = (Gate::new(&world).await, world.open(0, 1, Home::Local).await);
    let workflow = world.chain(0, 1).await;
    let mut other = world.chain(5, 1).await.tasks.remove(0);
    other.id = world.task(9, Duration::ZERO).id;
    other.links = workflow.tasks[0].links.clone();
    world.submit(1, vec![other]).await;
    let leases = world.claim(0, session, 1).await;
    let of = |task: TaskId| leases.iter().filter(move |it| it.task == task).cloned();
    let one: Vec<_> = of(workflow.tasks[0].id).collect();
    let two: Vec<_> = leases.iter().filter(|it| it.task != one[0].task).cloned().collect();
    gate.shut("SELECT FROM duly.workflow FOR UPDATE").await;
    let ends = (world.end(0, session, &one), world.end(1, session, &two));
    let (_, _, met) = in_order(&gate, ends.0, ends.1).await;
    assert!(met, "they met at the gate");
    let tenant = TenantName::default_tenant();
    let state = world.nodes[0].workflow(&tenant, workflow.id).await.unwrap().unwrap();
    assert_eq!((state.workflow.status, state.workflow.open), (WorkflowStatus::Success, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parent_is_deleted_or_gets_a_child() {
    let Some(world) = World::new().await else { return };
    let (gate, session) = (Gate::new(&world).await, world.open(0, 1, Home::Local).await);
    let mut races = 0;
    for number in 0..TIMES {
        let leases = world.leases(&[2 * number], session, u64::from(number) + 1).await;
        let parent = leases[0].task;
        world.end(0, session, &leases).await;
        let child = world.child(2 * number + 1, &[parent]);
        let tenant = TenantName::default_tenant();
        let order = DeleteTasks { tenant, tasks: vec![parent], before: None };
        gate.shut(&row(parent)).await;
        let (submit, delete) = (world.submit(1, vec![child.clone()]), world.nodes[0].delete(order));
        let met = if number % 2 == 0 {
            let (deleted, answers, met) = in_order(&gate, delete, submit).await;
            assert_eq!(deleted.unwrap(), [Controlled::Done]);
            assert_eq!(answers, [Submitted::UnknownParent { parent }]);
            met
        } else {
            let (answers, deleted, met) = in_order(&gate, submit, delete).await;
            assert_eq!(deleted.unwrap(), [Controlled::OpenChildren]);
            assert_eq!(answers, [Submitted::Stored { at: world.clock.now() }]);
            world.assert_released(&gate, child.id).await;
            met
        };
        races += u32::from(met);
    }
    assert!(races > 1, "they met at the gate");
}

/// An application's transaction may read with one snapshot all along; then it fails where it could lose a
/// child, and is tried again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handlers_own_transaction_releases_children() {
    let Some(world) = World::new().await else { return };
    let (gate, session) = (Gate::new(&world).await, world.open(0, 1, Home::Local).await);
    let leases = world.leases(&[0], session, 1).await;
    let fence = Fence { task: leases[0].task, epoch: leases[0].epoch, session };
    let first = world.child(1, &[fence.task]);
    world.submit(0, vec![first.clone()]).await;
    let (mut client, _driver) = world.scratch.connect().await;
    let whole = client.build_transaction();
    let transaction = whole
        .isolation_level(tokio_postgres::IsolationLevel::RepeatableRead)
        .start()
        .await
        .unwrap();
    transaction.execute("SELECT 1", &[]).await.unwrap();
    let second = world.child(2, &[fence.task]);
    world.submit(0, vec![second.clone()]).await;
    finish_in(&transaction, &fence, None).await.unwrap_err();
    drop(transaction);
    let transaction = client.transaction().await.unwrap();
    finish_in(&transaction, &fence, None).await.unwrap();
    assert_eq!(world.status(first.id).await, Status::Blocked, "not committed yet");
    let third = world.child(3, &[fence.task]);
    let commit = async {
        assert!(gate.holds(1).await, "a new child waits for the outcome");
        transaction.commit().await.unwrap();
    };
    let (answers, ()) = tokio::join!(world.submit(1, vec![third.clone()]), commit);
    assert!(matches!(answers[..], [Submitted::Stored { .. }]), "{answers:?}");
    let claim = Some(Claim::new(session, 2, 10));
    let exchange = Exchange { session, finishes: success(&leases), claim };
    let leases = world.nodes[0].exchange(exchange).await.unwrap().leases;
    let granted: Vec<_> = leases.iter().map(|lease| lease.task).collect();
    assert_eq!(granted, [first.id, second.id, third.id], "the report shows what was released");
}

/// A chain costs one commit per edge, also where each task has a lane that this node sees nothing due in.
#[tokio::test]
async fn a_released_task_is_granted_by_the_same_exchange() {
    let Some(world) = World::new().await else { return };
    let types = ["one", "two", "three"].map(|name| TypeName::new(name).unwrap());
    let id = SessionId::mint(world.clock.now(), 1);
    let open = OpenSession {
        id,
        name: "worker".to_owned(),
        tenant: None,
        types: types.to_vec(),
        queues: vec![],
        home: Home::Local,
        owner: None,
    };
    world.nodes[0].open_session(open).await.unwrap();
    let mut parent = None;
    for (number, task_type) in (0..).zip(&types) {
        let parents: Vec<_> = parent.into_iter().collect();
        let mut task = world.child(number, &parents);
        task.lane.task_type = task_type.clone();
        parent = Some(task.id);
        world.submit(1, vec![task]).await;
    }
    let mut finishes: Vec<Finish> = Vec::new();
    for (sequence, task_type) in (1..).zip(&types) {
        let claim = Some(Claim::new(id, sequence, 10));
        let wanted = finishes.first().map(|ended| vec![ended.task]);
        let exchange = Exchange { session: id, finishes, claim };
        let answer = world.nodes[1].exchange(exchange).await.unwrap();
        let leases = answer.leases;
        let names: Vec<_> = leases.iter().map(|lease| &lease.lane.task_type).collect();
        assert_eq!(names, [task_type]);
        assert_eq!(leases[0].has_parents, sequence > 1, "the first has no parents");
        let parents = answer.parents.map(|lists| lists[0].iter().map(|it| it.task).collect());
        assert_eq!(parents, wanted, "they come along");
        finishes = success(&leases);
    }
}
