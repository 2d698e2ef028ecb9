//! Two nodes at the same rows at the same time: each race is brought about by a lock that holds both
//! calls until they are there, and is run both ways round.

use std::time::Duration;

use duly_core::audit::Author;
use duly_core::id::{SessionId, TaskId};
use duly_core::lease::{Finish, Finished, Lease, Outcome};
use duly_core::name::{QueueName, TenantName};
use duly_core::ports::clock::Clock as _;
use duly_core::ports::store::{
    AuditLog as _, CancelTasks, Claim, Control as _, Controlled, Ending, Exchange, Exchanged, Home,
    Leases as _, ListAudit, PauseQueue, Reap, Result, Sessions as _, Submitted, Tasks as _,
};
use duly_core::state::Status;
use duly_core::task::{Idempotency, NewTask, Task};
use duly_core::time::Timestamp;
use tokio::time::interval;

use crate::gate::Gate;
use crate::world::World;

const TIMES: u32 = 10;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl World {
    async fn finish(&self, node: usize, session: SessionId, task: TaskId, epoch: u32) -> Finished {
        let finishes = vec![Finish::new(task, epoch, Outcome::Success { result: None })];
        self.exchange(node, Exchange { session, finishes, claim: None }).await.finished[0]
    }

    /// As callers do: again, until it is answered.
    async fn exchange(&self, node: usize, exchange: Exchange) -> Exchanged {
        again(|| self.nodes[node].exchange(exchange.clone())).await
    }

    async fn read(&self, task: TaskId) -> Task {
        let tenant = TenantName::default_tenant();
        again(|| self.nodes[0].get(&tenant, task)).await.unwrap()
    }

    async fn die(&self, node: usize, session: SessionId) -> Vec<TaskId> {
        let seen = self.nodes[node].sessions().await.unwrap();
        let beat = seen.iter().find(|it| it.opened.id == session).map_or(0, |it| it.beat);
        self.nodes[node].end_session(session, Ending::Died { beat }).await.unwrap()
    }

    async fn cancel(&self, task: TaskId) {
        let tenant = TenantName::default_tenant();
        let order = CancelTasks { tenant, tasks: vec![task], reason: "over".to_owned() };
        assert_eq!(self.nodes[0].cancel(order).await.unwrap(), [Controlled::Done]);
    }

    /// A task that this session holds, and its epoch.
    async fn held(&self, number: u32, session: SessionId, sequence: u64) -> (TaskId, u32) {
        let task = self.task(number, Duration::ZERO);
        self.submit(0, vec![task.clone()]).await;
        let leases = self.claim(0, session, sequence).await;
        let lease = leases.iter().find(|lease| lease.task == task.id).unwrap();
        (lease.task, lease.epoch)
    }
}

/// A connection that has just ended may be met by one more call.
async fn again<T, F: Future<Output = Result<T>>>(call: impl Fn() -> F) -> T {
    let mut ticks = interval(Duration::from_millis(20));
    for _ in 0..10 {
        ticks.tick().await;
        if let Ok(answer) = call().await {
            return answer;
        }
    }
    call().await.unwrap()
}

fn row(task: TaskId) -> String {
    format!("SELECT FROM duly.task WHERE id = '{task}' FOR UPDATE")
}

/// A claim takes its due row first and then the task, a cancel the other way round.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_and_a_claim_do_not_wait_for_each_other() {
    let Some(world) = World::new().await else { return };
    let (gate, session) = (Gate::new(&world).await, world.open(0, 1, Home::Local).await);
    let mut races = 0;
    for number in 0..TIMES {
        let task = world.task(number, Duration::ZERO);
        world.submit(0, vec![task.clone()]).await;
        gate.shut(&row(task.id)).await;
        let tenant = TenantName::default_tenant();
        let order = CancelTasks { tenant, tasks: vec![task.id], reason: "raced".to_owned() };
        let release = async {
            let met = gate.holds(2).await;
            gate.open().await;
            met
        };
        let claim = world.claim(0, session, u64::from(number) + 1);
        let (leases, cancelled, met) = tokio::join!(claim, world.nodes[1].cancel(order), release);
        races += u32::from(met);
        assert_eq!(cancelled.unwrap(), [Controlled::Done]);
        assert_eq!(world.status(task.id).await, Status::Cancelled);
        for lease in leases {
            let answer = world.finish(0, session, lease.task, lease.epoch).await;
            assert_eq!(answer, Finished::LeaseLost);
        }
    }
    assert!(races > 0, "they met at the gate");
}

/// The audit log tells of the cancel exactly if it was carried out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_that_comes_too_late_has_no_audit_entry() {
    let Some(world) = World::new().await else { return };
    let (gate, session) = (Gate::new(&world).await, world.open(0, 1, Home::Local).await);
    let author = Author { actor: "key:7".into(), request_id: None };
    let acting = world.nodes[1].on_behalf_of(author);
    let mut races = 0;
    for number in 0..TIMES {
        let (task, epoch) = world.held(number, session, u64::from(number) + 1).await;
        gate.shut(&row(task)).await;
        let tenant = TenantName::default_tenant();
        let order = CancelTasks { tenant, tasks: vec![task], reason: "raced".to_owned() };
        let release = async {
            let met = gate.holds(2).await;
            gate.open().await;
            met
        };
        let finish = world.finish(0, session, task, epoch);
        let (finished, cancelled, met) = tokio::join!(finish, acting.cancel(order), release);
        races += u32::from(met);
        let is_done = cancelled.unwrap() == [Controlled::Done];
        assert_eq!(is_done, finished == Finished::LeaseLost);
        let target = Some(task.to_string());
        let page = ListAudit { target, limit: 10, ..ListAudit::default() };
        let entries = world.nodes[0].audit_log(page).await.unwrap();
        assert_eq!(entries.len(), usize::from(is_done), "{entries:?}");
        let was_running = |before: Option<&str>| before == Some(r#"{"status":"RUNNING"}"#);
        assert!(entries.iter().all(|entry| was_running(entry.before.as_deref())), "{entries:?}");
    }
    assert!(races > 0, "they met at the gate");
}

/// Of two users who pause a queue at the same time, one has paused it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_that_two_users_pause_has_one_audit_entry() {
    let Some(world) = World::new().await else { return };
    let gate = Gate::new(&world).await;
    let acting = |node: usize| {
        let author = Author { actor: format!("key:{node}").into(), request_id: None };
        world.nodes[node].on_behalf_of(author)
    };
    let (one, two) = (acting(0), acting(1));
    let order = PauseQueue {
        tenant: TenantName::default_tenant(),
        queue: QueueName::default_queue(),
        note: "down".to_owned(),
    };
    gate.shut("LOCK TABLE duly.pause IN EXCLUSIVE MODE").await;
    let release = async {
        let met = gate.holds(2).await;
        gate.open().await;
        met
    };
    let calls = (one.pause_queue(order.clone()), two.pause_queue(order));
    let (first, second, met) = tokio::join!(calls.0, calls.1, release);
    assert!(first.unwrap() && second.unwrap() && met);
    let page = ListAudit { limit: 10, ..ListAudit::default() };
    assert_eq!(world.nodes[0].audit_log(page).await.unwrap().len(), 1);
}

/// An edit may leave a row behind that a claim was about to take. Should it come to be the task's own
/// again while another claim takes it for a stale one, the task must not end up without any.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_waits_again_is_not_forgotten_with_a_stale_row() {
    let Some(world) = World::new().await else { return };
    let (gate, session) = (Gate::new(&world).await, world.open(0, 1, Home::Local).await);
    let task = world.task(1, Duration::ZERO);
    world.submit(0, vec![task.clone()]).await;
    let leases = world.claim(0, session, 1).await;
    let (client, _driver) = world.scratch.connect().await;
    let stale = "INSERT INTO duly.due (run_at, task, lane, rank)
        SELECT run_at, id, lane, rank FROM duly.task";
    client.batch_execute(stale).await.unwrap();
    gate.shut("SELECT FROM duly.due FOR UPDATE").await;
    let finishes = leases.iter().map(Lease::release).collect();
    let release = world.exchange(1, Exchange { session, finishes, claim: None });
    let take = async {
        assert!(gate.holds(1).await, "to wait again is to wait for the claim");
        gate.open_after("DELETE FROM duly.due").await;
    };
    tokio::join!(release, take);
    let again = world.claim(1, session, 2).await;
    assert_eq!(again.iter().map(|lease| lease.task).collect::<Vec<_>>(), [task.id]);
}

/// Whoever looks at late leases of a session while another node ends it, and dies, does not put off
/// the others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_ended_session_holds_is_overdue() {
    let Some(world) = World::new().await else { return };
    let (gate, session) = (Gate::new(&world).await, world.open(0, 1, Home::Local).await);
    let (late, other) = (world.task(1, Duration::ZERO), world.task(2, Duration::ZERO));
    let late = NewTask { timeout: Some(Duration::from_secs(1)), ..late };
    world.submit(0, vec![late.clone(), other.clone()]).await;
    assert_eq!(world.claim(0, session, 1).await.len(), 2);
    world.clock.advance(Duration::from_secs(60));
    let reap = || {
        let unacknowledged_before = Timestamp::from_millis(0);
        world.nodes[1].reap(Reap { unacknowledged_before, entropy: 1 })
    };
    gate.shut(&row(late.id)).await;
    let die = async {
        assert!(gate.holds(1).await, "the reaper is there");
        tokio::select! {
            _ = world.die(0, session) => panic!("it got past the gate"),
            came = gate.holds(2) => assert!(came, "the session has ended"),
        }
        gate.open().await;
    };
    let (reaped, ()) = tokio::join!(reap(), die);
    reaped.unwrap();
    reap().await.unwrap();
    assert_eq!(world.status(other.id).await, Status::Pending);
}

/// Who asks for the next batch has received the one before: it is not taken away any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_is_not_released_under_the_claim_that_acknowledges_it() {
    let Some(world) = World::new().await else { return };
    let (gate, session) = (Gate::new(&world).await, world.open(0, 1, Home::Remote).await);
    let mut races = 0;
    let mut before = world.held(0, session, 1).await;
    for number in 1..TIMES {
        world.clock.advance(Duration::from_secs(1));
        let task = world.task(number, Duration::ZERO);
        world.submit(0, vec![task.clone()]).await;
        // The claim holds its session while it waits for the task, and the release waits for both.
        gate.shut(&row(task.id)).await;
        let release = async {
            let claims = gate.holds(1).await;
            let unacknowledged_before = world.clock.now();
            let reap = world.nodes[1].reap(Reap { unacknowledged_before, entropy: 1 });
            let open = async {
                let met = gate.holds(2).await;
                gate.open().await;
                claims && met
            };
            tokio::join!(reap, open)
        };
        let claim = world.claim(0, session, u64::from(number) + 1);
        let (leases, (reaped, met)) = tokio::join!(claim, release);
        races += u32::from(met);
        assert_eq!(reaped.unwrap().taken_back.len(), 0);
        let (held, epoch) = before;
        assert_eq!(world.finish(0, session, held, epoch).await, Finished::Done);
        before = (leases[0].task, leases[0].epoch);
    }
    assert!(races > 0, "they met at the gate");
}

/// The first one wins, and the other one sees it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outcome_and_the_end_of_its_session_exclude_each_other() {
    let Some(world) = World::new().await else { return };
    let gate = Gate::new(&world).await;
    let mut both = [0, 0];
    let mut races = 0;
    for number in 0..TIMES {
        let session = world.open(0, u64::from(number) + 1, Home::Remote).await;
        let (task, epoch) = world.held(number, session, 1).await;
        gate.shut(&row(task)).await;
        let finish = async {
            if number % 2 == 1 {
                gate.holds(1).await;
            }
            world.finish(0, session, task, epoch).await
        };
        let die = async {
            if number % 2 == 0 {
                gate.holds(1).await;
            }
            world.die(1, session).await
        };
        let release = async {
            let met = gate.holds(2).await;
            gate.open().await;
            met
        };
        let (finished, taken, met) = tokio::join!(finish, die, release);
        races += u32::from(met);
        let after = world.read(task).await;
        match finished {
            Finished::Done => {
                assert_eq!((after.status, after.losses), (Status::Success, 0), "{after:?}");
                assert!(!taken.contains(&task), "what has ended is not taken back");
                both[0] += 1;
            }
            _ => {
                assert_eq!(finished, Finished::LeaseLost);
                assert_eq!((after.status, after.losses), (Status::Pending, 1), "{after:?}");
                world.cancel(task).await;
                both[1] += 1;
            }
        }
        assert_eq!(after.epoch, epoch);
    }
    assert!(races > 0, "they met at the gate");
    assert!(both[0] > 0, "an outcome that came first counts: {both:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_session_is_ended_once_by_two_nodes() {
    let Some(world) = World::new().await else { return };
    let gate = Gate::new(&world).await;
    let mut races = 0;
    for number in 0..TIMES {
        let session = world.open(0, u64::from(number) + 1, Home::Remote).await;
        let (task, _) = world.held(number, session, 1).await;
        gate.shut(&format!("SELECT FROM duly.session WHERE id = '{session}' FOR UPDATE")).await;
        let release = async {
            let met = gate.holds(2).await;
            gate.open().await;
            met
        };
        let (one, two, met) = tokio::join!(world.die(0, session), world.die(1, session), release);
        races += u32::from(met);
        let named = one.iter().chain(&two).filter(|it| **it == task).count();
        assert_eq!(named, 1, "one of them has put it back");
        let waits = format!("SELECT count(*) FROM duly.due WHERE task = '{task}'");
        assert_eq!(gate.count(&waits).await, 1, "it waits once");
        let after = world.read(task).await;
        assert_eq!((after.status, after.losses), (Status::Pending, 1), "it was lost once");
        world.cancel(task).await;
    }
    assert!(races > 0, "they met at the gate");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_due_row_is_granted_once_to_two_nodes() {
    let Some(world) = World::new().await else { return };
    let gate = Gate::new(&world).await;
    let sessions = [world.open(0, 1, Home::Remote).await, world.open(1, 2, Home::Remote).await];
    let mut races = 0;
    for number in 0..TIMES {
        let task = world.task(number, Duration::ZERO);
        world.submit(0, vec![task.clone()]).await;
        world.submit(1, vec![world.task(1000 + number, DAY)]).await;
        gate.shut("LOCK TABLE duly.due IN EXCLUSIVE MODE").await;
        let release = async {
            let met = gate.holds(1).await;
            gate.open().await;
            met
        };
        let sequence = u64::from(number) + 1;
        let claims = [world.claim(0, sessions[0], sequence), world.claim(1, sessions[1], sequence)];
        let [one, two] = claims;
        let (one, two, met) = tokio::join!(one, two, release);
        races += u32::from(met);
        let mut granted: Vec<_> = one.iter().chain(&two).map(|lease| lease.task).collect();
        if granted.is_empty() {
            // Each has seen the other's lock: the next claim has it.
            granted.extend(
                world.claim(0, sessions[0], sequence + 1000).await.iter().map(|it| it.task),
            );
        }
        assert_eq!(granted.iter().filter(|it| **it == task.id).count(), 1, "{granted:?}");
        assert_eq!(world.read(task.id).await.epoch, 1);
    }
    assert!(races > 0, "they met at the gate");
}

/// The ids lie on two days, so that only the key can tell that they are the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_key_gives_one_task_at_two_nodes_across_midnight() {
    let Some(world) = World::new().await else { return };
    let gate = Gate::new(&world).await;
    let mut races = 0;
    for number in 0..TIMES {
        let idempotency = Some(Idempotency { key: format!("key-{number}"), body: [7; 32] });
        let mut tasks = [world.task(2 * number, Duration::ZERO), world.task(2 * number + 1, DAY)];
        tasks.iter_mut().for_each(|task| task.idempotency.clone_from(&idempotency));
        let ids = [tasks[0].id, tasks[1].id];
        let [one, two] = tasks;
        gate.shut("LOCK TABLE duly.idempotency IN EXCLUSIVE MODE").await;
        let release = async {
            let met = gate.holds(2).await;
            gate.open().await;
            met
        };
        let (one, two, met) =
            tokio::join!(world.submit(0, vec![one]), world.submit(1, vec![two]), release);
        races += u32::from(met);
        let answers = [one[0], two[0]];
        let stored = answers.iter().position(|it| matches!(it, Submitted::Stored { .. })).unwrap();
        assert_eq!(answers[1 - stored], Submitted::Replayed { id: ids[stored] });
        let rows =
            format!("SELECT count(*) FROM duly.task WHERE id IN ('{}', '{}')", ids[0], ids[1]);
        assert_eq!(gate.count(&rows).await, 1);
    }
    assert!(races > 0, "they met at the gate");
}

/// All transactions write rows in the order of their ids, in whichever order they are named.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_in_opposite_orders_do_not_wait_for_each_other() {
    let Some(world) = World::new().await else { return };
    let gate = Gate::new(&world).await;
    gate.count("SELECT count(pg_stat_reset())").await;
    let mut races = 0;
    for round in 0..TIMES {
        let tasks: Vec<_> =
            (0..100).map(|number| world.task(round * 100 + number, Duration::ZERO)).collect();
        let ids: Vec<_> = tasks.iter().map(|task| task.id).collect();
        world.submit(0, tasks).await;
        let cancel = |node: usize, tasks: Vec<TaskId>| {
            let tenant = TenantName::default_tenant();
            world.nodes[node].cancel(CancelTasks { tenant, tasks, reason: "raced".to_owned() })
        };
        gate.shut(&row(ids[50])).await;
        let release = async {
            let met = gate.holds(2).await;
            gate.open().await;
            met
        };
        let backwards = ids.iter().rev().copied().collect();
        let (one, two, met) = tokio::join!(cancel(0, ids.clone()), cancel(1, backwards), release);
        races += u32::from(met);
        assert_eq!((one.unwrap().len(), two.unwrap().len()), (100, 100));
        for id in [ids[0], ids[50], ids[99]] {
            assert_eq!(world.status(id).await, Status::Cancelled);
        }
    }
    assert!(races > 0, "they met at the gate");
    let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    assert_eq!(gate.count(deadlocks).await, 0);
}

/// The connection of an exchange ends while its outcome is on its way. It is committed once, and a
/// claim that is repeated gets the same leases.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exchange_survives_the_end_of_its_connection() {
    let Some(world) = World::new().await else { return };
    let gate = Gate::new(&world).await;
    let session = world.open(0, 1, Home::Remote).await;
    for number in 0..TIMES {
        let sequence = 2 * u64::from(number) + 1;
        let (task, epoch) = world.held(2 * number, session, sequence).await;
        let next = world.task(2 * number + 1, Duration::ZERO);
        world.submit(0, vec![next.clone()]).await;
        gate.shut(&row(task)).await;
        let success = Outcome::Success { result: None };
        let claim = Some(Claim::new(session, sequence + 1, 10));
        let exchange =
            Exchange { session, finishes: vec![Finish::new(task, epoch, success)], claim };
        let cut = async {
            assert!(gate.holds(1).await, "it waits for its task");
            gate.cut().await;
            gate.open().await;
        };
        let (answer, ()) = tokio::join!(world.nodes[0].exchange(exchange.clone()), cut);
        // The caller asks again, whatever it was told.
        let again = world.exchange(0, exchange).await;
        if let Ok(answer) = answer {
            assert_eq!(answer.leases, again.leases);
        }
        assert_eq!(again.finished, [Finished::Done]);
        assert_eq!(again.leases.iter().map(|it| it.task).collect::<Vec<_>>(), [next.id]);
        let after = world.read(task).await;
        assert_eq!((after.status, after.charged), (Status::Success, 1), "{after:?}");
        let lease = &again.leases[0];
        assert_eq!(world.finish(0, session, lease.task, lease.epoch).await, Finished::Done);
    }
}
