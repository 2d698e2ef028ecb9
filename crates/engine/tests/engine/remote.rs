//! Remote workers, through the engine's own interface.

#![expect(clippy::unwrap_used, reason = "a worker that cannot be made fails its test")]

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use duly_core::audit::Author;
use duly_core::id::SessionId;
use duly_core::lease::{Finished, Lease};
use duly_core::name::{TenantName, TypeName};
use duly_core::ports::store::{Claim, Extend, ExtendLeases, Extended, Heartbeat, LaneFilter};
use duly_core::ports::work_source::{TakenBack, Why};
use duly_core::state::Status;
use duly_core::submit::Draft;
use duly_engine::Engine;
use duly_engine::command::worker::{Error, HeartbeatAnswer, RemoteWorker};
use duly_engine::random::OsRandom;

use super::world::{TTL, World, draft, finish, must_wait, pass, settle, success};

const POLL: Duration = Duration::from_secs(3);

fn own() -> TenantName {
    TenantName::default_tenant()
}

/// A remote worker that serves the types `far` and `further`.
struct Remote<'a> {
    engine: &'a Engine,
    session: SessionId,
}

impl<'a> Remote<'a> {
    async fn register(engine: &'a Engine) -> Self {
        let types = ["far", "further"].map(|name| TypeName::new(name).unwrap()).to_vec();
        let worker =
            RemoteWorker { name: "remote".to_owned(), tenant: own(), types, queues: vec![] };
        let registered = engine.register(worker).await.unwrap();
        assert_eq!((registered.ttl, registered.heartbeat), (TTL, TTL / 3));
        Self { engine, session: registered.session }
    }

    async fn claim(&self, sequence: u64) -> Vec<Lease> {
        self.try_claim(sequence).await.unwrap()
    }

    async fn try_claim(&self, sequence: u64) -> Result<Vec<Lease>, Error> {
        let claim = Claim::new(self.session, sequence, 10);
        Ok(self.engine.claim(&own(), claim, POLL).await?.leases)
    }

    async fn beat(&self, received: &[u64]) -> Result<HeartbeatAnswer, Error> {
        let (session, received) = (self.session, received.to_vec());
        let beat = Heartbeat { session, received, unstarted: vec![] };
        self.engine.heartbeat(&own(), beat, Duration::ZERO).await
    }

    async fn finish(&self, lease: &Lease) -> Finished {
        let batch = vec![finish(lease, success())];
        self.engine.finish(&own(), self.session, batch).await.unwrap()[0]
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_reaches_a_remote_worker_as_it_is_submitted() {
    let world = World::new().await;
    let remote = Remote::register(&world.engine).await;
    let (leases, accepted) = tokio::join!(remote.claim(1), world.submit_when_idle(draft("far")));
    assert_eq!(leases[0].task, accepted.task.id);
    assert_eq!(remote.finish(&leases[0]).await, Finished::Done);
    assert_eq!(world.wait(accepted.task.id, POLL).await.status, Status::Success);
    assert_eq!(remote.finish(&leases[0]).await, Finished::Done, "twice is the same as once");
}

#[tokio::test(start_paused = true)]
async fn a_poll_ends_empty_and_the_same_number_is_asked_again() {
    let world = World::new().await;
    let remote = Remote::register(&world.engine).await;
    assert!(remote.claim(1).await.is_empty());
    let later = Draft { delay_seconds: Some(2.0), ..draft("far") };
    let task = world.submit(later).await.task;
    let before = world.now().await;
    assert_eq!(remote.claim(1).await[0].task, task.id);
    assert_eq!(world.now().await.since(before), Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn leases_that_did_not_arrive_come_with_the_same_number() {
    let world = World::new().await;
    let remote = Remote::register(&world.engine).await;
    let mut lost = Box::pin(remote.try_claim(1));
    must_wait(&mut lost).await;
    let task = world.submit(draft("far")).await.task;
    assert_eq!(world.get(task.id).await.status, Status::Running);
    drop(lost);
    let again = remote.claim(1).await;
    assert_eq!((again[0].task, again[0].epoch), (task.id, 1));
    assert_eq!(remote.claim(1).await, again, "as often as need be");
}

#[tokio::test(start_paused = true)]
async fn what_was_released_unacknowledged_comes_with_the_same_number() {
    let world = World::new().await;
    let remote = Remote::register(&world.engine).await;
    let mut lost = Box::pin(remote.try_claim(1));
    must_wait(&mut lost).await;
    let task = world.submit(draft("far")).await.task;
    drop(lost);
    for _ in 0..5 {
        pass(TTL / 2).await;
        remote.beat(&[]).await.unwrap();
    }
    assert_eq!(world.get(task.id).await.status, Status::Pending, "it was not acknowledged");
    let before = world.faults.exchanges();
    assert_eq!(remote.claim(1).await[0].epoch, 2, "the number is not spent");
    assert!(world.faults.exchanges() < before + 5, "and the store is not asked in vain");
}

#[tokio::test(start_paused = true)]
async fn a_poll_without_patience_looks_once() {
    let world = World::new().await;
    let remote = Remote::register(&world.engine).await;
    let task = world.submit(draft("far")).await.task;
    let claim = Claim::new(remote.session, 1, 10);
    let claimed = world.engine.claim(&own(), claim, Duration::ZERO).await.unwrap();
    assert_eq!(claimed.leases[0].task, task.id);
}

#[tokio::test(start_paused = true)]
async fn a_narrowed_claim_gets_only_its_types_and_does_not_spin() {
    let world = World::new().await;
    let remote = Remote::register(&world.engine).await;
    let waiting = world.submit(draft("far")).await.task;
    let types = [TypeName::new("further").unwrap()].into();
    let only = Some(Arc::new(LaneFilter { types, ..LaneFilter::default() }));
    let narrowed = Claim { only, ..Claim::new(remote.session, 1, 10) };
    let before = world.faults.exchanges();
    let tenant = own();
    let claim = || world.engine.claim(&tenant, narrowed.clone(), POLL);
    let submits = async {
        pass(POLL / 3).await;
        let unwanted = world.submit(draft("far")).await.task;
        pass(POLL / 3).await;
        unwanted
    };
    let (leases, unwanted) = tokio::join!(claim(), submits);
    assert!(leases.unwrap().leases.is_empty(), "other types are due, and not asked for");
    assert!(world.faults.exchanges() < before + 5, "the store is not asked again and again");
    let later = async {
        pass(POLL / 3).await;
        world.submit(draft("further")).await.task
    };
    let (leases, wanted) = tokio::join!(claim(), later);
    let leases = leases.unwrap().leases;
    assert_eq!((leases.len(), leases[0].task), (1, wanted.id));
    let rest: Vec<_> = remote.claim(2).await.iter().map(|lease| lease.task).collect();
    assert_eq!(rest, [waiting.id, unwanted.id]);
}

#[tokio::test(start_paused = true)]
async fn an_echo_of_a_claim_does_not_spin() {
    let world = World::new().await;
    let remote = Remote::register(&world.engine).await;
    let (leases, _) = tokio::join!(remote.claim(1), world.submit_when_idle(draft("far")));
    remote.finish(&leases[0]).await;
    world.submit(draft("far")).await;
    let before = world.faults.exchanges();
    assert!(remote.claim(1).await.is_empty(), "its caller has had its answer");
    assert!(world.faults.exchanges() < before + 5);
    assert_eq!(remote.claim(2).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn outcomes_of_remote_workers_are_refused_while_the_store_is_away() {
    let world = World::new().await;
    let remote = Remote::register(&world.engine).await;
    let (leases, _) = tokio::join!(remote.claim(1), world.submit_when_idle(draft("far")));
    settle().await;
    world.faults.fail_next(1);
    let batch = vec![finish(&leases[0], success())];
    let answer = world.engine.finish(&own(), remote.session, batch).await;
    assert!(matches!(answer, Err(Error::Store(error)) if error.is_retryable()));
    assert_eq!(remote.finish(&leases[0]).await, Finished::Done, "sent again, it is committed");
}

#[tokio::test(start_paused = true)]
async fn a_newer_claim_answers_the_older_one_with_nothing() {
    let world = World::new().await;
    let remote = Remote::register(&world.engine).await;
    let (older, newer, _) =
        tokio::join!(remote.claim(1), remote.claim(2), world.submit_when_idle(draft("far")));
    assert_eq!((older.len(), newer.len()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_silent_worker_loses_its_leases_and_is_refused() {
    let world = World::new().await;
    let silent = Remote::register(&world.engine).await;
    let (leases, accepted) = tokio::join!(silent.claim(1), world.submit_when_idle(draft("far")));
    let start = world.now().await;
    let next = Remote::register(&world.engine).await;
    let mut successor = Vec::new();
    while successor.is_empty() {
        next.beat(&[]).await.unwrap();
        successor = next.claim(1).await;
    }
    let took = successor[0].granted_at.since(start);
    assert!((TTL..TTL + TTL / 2).contains(&took), "noticed after {took:?}");
    assert_eq!((successor[0].task, successor[0].epoch), (accepted.task.id, 2));
    assert_eq!(silent.finish(&leases[0]).await, Finished::LeaseLost);
    assert!(matches!(silent.beat(&[]).await, Err(Error::UnknownSession)));
    assert!(matches!(silent.try_claim(2).await, Err(Error::UnknownSession)));
    let task = world.get(accepted.task.id).await;
    assert_eq!((task.status, task.losses), (Status::Running, 1));
    assert_eq!(next.finish(&successor[0]).await, Finished::Done);
}

#[tokio::test(start_paused = true)]
async fn no_worker_is_judged_while_the_sessions_cannot_be_read() {
    let world = World::new().await;
    let remote = Remote::register(&world.engine).await;
    pass(TTL / 2).await;
    world.faults.set_readable(false);
    pass(TTL * 5).await;
    world.faults.set_readable(true);
    pass(TTL / 2).await;
    assert!(remote.beat(&[]).await.is_ok(), "it has its full time after the gap");
    pass(TTL * 2).await;
    assert!(remote.beat(&[]).await.is_err(), "and not more");
}

#[tokio::test(start_paused = true)]
async fn no_worker_is_judged_while_the_store_refuses_heartbeats() {
    let world = World::among_others().await;
    let remote = Remote::register(&world.engine).await;
    pass(TTL / 2).await;
    world.faults.keep_alive_fails.store(true, Ordering::SeqCst);
    pass(TTL * 5).await;
    world.faults.keep_alive_fails.store(false, Ordering::SeqCst);
    pass(TTL / 2).await;
    assert!(remote.beat(&[]).await.is_ok(), "it has its full time afterwards");
    pass(TTL * 2).await;
    assert!(remote.beat(&[]).await.is_err(), "and not more");
}

#[tokio::test(start_paused = true)]
async fn without_remote_workers_sessions_are_hardly_read() {
    let world = World::new().await;
    pass(Duration::from_secs(600)).await;
    assert!(world.faults.calls("sessions") < 15, "{}", world.faults.calls("sessions"));
}

#[tokio::test(start_paused = true)]
async fn an_overdue_lease_is_taken_back_and_its_worker_told() {
    let world = World::new().await;
    let remote = Remote::register(&world.engine).await;
    let task = Draft { timeout_seconds: Some(1.0), retries: Some(0.0), ..draft("far") };
    let (leases, accepted) = tokio::join!(remote.claim(1), world.submit_when_idle(task));
    let told = async {
        loop {
            pass(TTL / 3).await;
            let news = remote.beat(&[1]).await.unwrap();
            if !news.taken_back.is_empty() {
                return news.taken_back;
            }
        }
    };
    let lost = TakenBack { task: accepted.task.id, epoch: leases[0].epoch, why: Why::Lost };
    assert_eq!(told.await, [lost]);
    let task = world.get(accepted.task.id).await;
    assert_eq!((task.status, task.error.unwrap().code.as_str()), (Status::Failed, "TIMEOUT"));
    let late = task.finished_at.unwrap().since(leases[0].deadline());
    assert!(late < Duration::from_millis(10), "{late:?} after its deadline");
}

#[tokio::test(start_paused = true)]
async fn an_extended_lease_is_left_alone() {
    let world = World::new().await;
    let remote = Remote::register(&world.engine).await;
    let task = Draft { timeout_seconds: Some(1.0), ..draft("far") };
    let (leases, accepted) = tokio::join!(remote.claim(1), world.submit_when_idle(task));
    let by = Duration::from_secs(100);
    let order = Extend { task: leases[0].task, epoch: leases[0].epoch, by };
    let order = ExtendLeases { session: remote.session, leases: vec![order] };
    let answers = world.engine.extend(&own(), order).await.unwrap();
    assert_eq!(answers, [Extended::Done { deadline: world.now().await.plus(by) }]);
    for _ in 0..20 {
        pass(TTL / 3).await;
        remote.beat(&[1]).await.unwrap();
    }
    assert_eq!(world.get(accepted.task.id).await.status, Status::Running);
    assert_eq!(remote.finish(&leases[0]).await, Finished::Done);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_leaves_hands_everything_back() {
    let world = World::new().await;
    let leaver = Remote::register(&world.engine).await;
    let (_, accepted) = tokio::join!(leaver.claim(1), world.submit_when_idle(draft("far")));
    world.engine.leave(&own(), leaver.session).await.unwrap();
    world.engine.leave(&own(), leaver.session).await.unwrap();
    let task = world.get(accepted.task.id).await;
    assert_eq!((task.status, task.losses, task.charged), (Status::Pending, 0, 0));
    assert!(matches!(leaver.try_claim(2).await, Err(Error::UnknownSession)));
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_beats_while_it_leaves_is_gone() {
    let world = World::new().await;
    let leaver = Remote::register(&world.engine).await;
    let tenant = own();
    world.faults.hold();
    let mut leaves = Box::pin(world.engine.leave(&tenant, leaver.session));
    must_wait(&mut leaves).await;
    leaver.beat(&[]).await.unwrap();
    // A loop that looks at the sessions now does so before the end.
    settle().await;
    world.faults.go_on();
    leaves.await.unwrap();
    assert!(world.submit(draft("far")).await.unserved, "nobody has a handler any more");
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_waits_is_answered_when_a_lease_is_cancelled() {
    let world = World::new().await;
    let remote = Remote::register(&world.engine).await;
    let task = world.submit(draft("far")).await.task;
    assert_eq!(remote.claim(1).await.len(), 1);
    let started = tokio::time::Instant::now();
    let claim = Claim::new(remote.session, 2, 10);
    let tenant = own();
    let waiting = world.engine.claim(&tenant, claim, POLL);
    let cancel = async {
        pass(Duration::from_millis(50)).await;
        world.engine.cancel(&own(), task.id, "enough".to_owned()).await.unwrap();
    };
    let (claimed, ()) = tokio::join!(waiting, cancel);
    let claimed = claimed.unwrap();
    assert!(claimed.leases.is_empty());
    let gone = TakenBack { task: task.id, epoch: 1, why: Why::Cancelled };
    assert_eq!(claimed.taken_back, [gone]);
    assert!(started.elapsed() < POLL, "{:?}", started.elapsed());
    // The same number brings what comes next.
    let next = world.submit(draft("far")).await.task;
    assert_eq!(remote.claim(2).await[0].task, next.id);
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_that_waits_is_answered_when_a_lease_is_cancelled() {
    let world = World::new().await;
    let remote = Remote::register(&world.engine).await;
    let task = world.submit(draft("far")).await.task;
    assert_eq!(remote.claim(1).await.len(), 1);
    let started = tokio::time::Instant::now();
    let beat = Heartbeat { session: remote.session, received: vec![1], unstarted: vec![task.id] };
    let tenant = own();
    let waiting = world.engine.heartbeat(&tenant, beat, TTL / 3);
    let cancel = async {
        pass(Duration::from_millis(50)).await;
        world.engine.cancel(&own(), task.id, "enough".to_owned()).await.unwrap();
    };
    let (news, ()) = tokio::join!(waiting, cancel);
    let gone = TakenBack { task: task.id, epoch: 1, why: Why::Cancelled };
    assert_eq!(news.unwrap().taken_back, [gone]);
    assert!(started.elapsed() < TTL / 3, "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_cancel_is_told_to_the_holder_alone() {
    let world = World::new().await;
    let (holder, other) =
        (Remote::register(&world.engine).await, Remote::register(&world.engine).await);
    let (leases, accepted) = tokio::join!(holder.claim(1), world.submit_when_idle(draft("far")));
    world.engine.cancel(&own(), accepted.task.id, "enough".to_owned()).await.unwrap();
    let lost = TakenBack { task: accepted.task.id, epoch: 1, why: Why::Cancelled };
    assert_eq!(holder.beat(&[1]).await.unwrap().taken_back, [lost]);
    assert_eq!(other.beat(&[]).await.unwrap().taken_back, []);
    assert_eq!(holder.finish(&leases[0]).await, Finished::LeaseLost);
}

#[tokio::test(start_paused = true)]
async fn the_session_of_another_tenant_does_not_exist() {
    let world = World::new().await;
    let remote = Remote::register(&world.engine).await;
    let (leases, _) = tokio::join!(remote.claim(1), world.submit_when_idle(draft("far")));
    let other = TenantName::new("other").unwrap();
    let claim = Claim::new(remote.session, 2, 1);
    let claimed = world.engine.claim(&other, claim, POLL).await;
    assert!(matches!(claimed, Err(Error::UnknownSession)));
    let batch = vec![finish(&leases[0], success())];
    let finished = world.engine.finish(&other, remote.session, batch).await.unwrap();
    assert_eq!(finished, [Finished::Unknown]);
    world.engine.leave(&other, remote.session).await.unwrap();
    assert_eq!(remote.finish(&leases[0]).await, Finished::Done);
}

#[tokio::test(start_paused = true)]
async fn a_restart_of_the_engine_is_survived() {
    let world = World::new().await;
    let remote = Remote::register(&world.engine).await;
    let (leases, _) = tokio::join!(remote.claim(1), world.submit_when_idle(draft("far")));
    world.engine.close().await;
    assert!(matches!(remote.try_claim(2).await, Err(Error::Closed)));
    let config = duly_engine::Config { session_ttl: TTL, is_scheduler: true };
    let next = Engine::start(world.store.clone(), Arc::new(OsRandom::new()), config);
    let again = Remote { engine: &next, session: remote.session };
    again.beat(&[1]).await.unwrap();
    assert_eq!(again.claim(1).await, leases);
    assert_eq!(again.finish(&leases[0]).await, Finished::Done);
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_another_node_was_told_is_learnt_before_the_next_beat() {
    let world = World::among_others().await;
    let remote = Remote::register(&world.engine).await;
    pass(Duration::from_millis(1)).await;
    assert!(world.store.drain(remote.session, true).await.unwrap());
    pass(TTL / 3).await;
    assert!(remote.beat(&[]).await.unwrap().drain);
    let accepted = world.submit(draft("far")).await;
    assert_eq!(remote.claim(1).await, [], "the wait is over, and nothing was granted");
    assert_eq!(world.get(accepted.task.id).await.status, Status::Pending);
    world.engine.drain_worker(&own(), remote.session, false).await.unwrap();
    assert!(!remote.beat(&[]).await.unwrap().drain);
    assert_eq!(remote.claim(1).await[0].task, accepted.task.id);
}

#[tokio::test(start_paused = true)]
async fn s09_a_lease_belongs_to_the_key_that_opened_its_session() {
    let world = World::new().await;
    let acting = |engine: &Engine, actor: &str| {
        engine.on_behalf_of(Author { actor: Arc::from(actor), request_id: None })
    };
    let (one, two) = (acting(&world.engine, "key:1"), acting(&world.engine, "key:2"));
    let remote = Remote::register(&one).await;
    let (leases, _) = tokio::join!(remote.claim(1), world.submit_when_idle(draft("far")));
    for thief in [&two, &world.engine, &acting(&world.engine, Author::ANONYMOUS)] {
        cannot_use(thief, remote.session, &leases[0]).await;
    }
    // Another node, or this one after a restart, reads whose the session is.
    let config = duly_engine::Config { session_ttl: TTL, is_scheduler: true };
    let node = Engine::start(world.store.clone(), Arc::new(OsRandom::new()), config);
    cannot_use(&acting(&node, "key:2"), remote.session, &leases[0]).await;
    let moved = acting(&node, "key:1");
    let moved = Remote { engine: &moved, session: remote.session };
    assert_eq!(moved.finish(&leases[0]).await, Finished::Done);
    assert_eq!(remote.finish(&leases[0]).await, Finished::Done);
}

#[tokio::test(start_paused = true)]
async fn s09_nobody_finishes_a_lease_whose_session_has_just_ended() {
    let world = World::new().await;
    let remote = Remote::register(&world.engine).await;
    let (leases, _) = tokio::join!(remote.claim(1), world.submit_when_idle(draft("far")));
    world.faults.hide_sessions();
    let config = duly_engine::Config { session_ttl: TTL, is_scheduler: false };
    let node = Engine::start(world.store.clone(), Arc::new(OsRandom::new()), config);
    let author = Author { actor: Arc::from("key:7"), request_id: None };
    let thief = Remote { engine: &node.on_behalf_of(author), session: remote.session };
    assert_eq!(thief.finish(&leases[0]).await, Finished::LeaseLost);
    assert_eq!(world.get(leases[0].task).await.status, Status::Running);
}

/// To another caller the session does not exist, and its lease stays as it is.
async fn cannot_use(engine: &Engine, session: SessionId, lease: &Lease) {
    let claimed = engine.claim(&own(), Claim::new(session, 2, 1), POLL).await;
    assert!(matches!(claimed, Err(Error::UnknownSession)));
    let beat = Heartbeat { session, received: vec![], unstarted: vec![] };
    let beaten = engine.heartbeat(&own(), beat, Duration::ZERO).await;
    assert!(matches!(beaten, Err(Error::UnknownSession)));
    let leases = vec![Extend { task: lease.task, epoch: lease.epoch, by: POLL }];
    let extended = engine.extend(&own(), ExtendLeases { session, leases }).await;
    assert!(matches!(extended, Err(Error::UnknownSession)));
    assert!(matches!(engine.session(&own(), session).await, Err(Error::UnknownSession)));
    let batch = vec![finish(lease, success())];
    let finished = engine.finish(&own(), session, batch).await.unwrap();
    assert_eq!(finished, [Finished::Unknown]);
    engine.leave(&own(), session).await.unwrap();
}

crate::stores::with_lost_hints!(
    all: a_task_reaches_a_remote_worker_as_it_is_submitted,
    a_poll_ends_empty_and_the_same_number_is_asked_again,
    leases_that_did_not_arrive_come_with_the_same_number,
    what_was_released_unacknowledged_comes_with_the_same_number,
    a_poll_without_patience_looks_once,
    a_narrowed_claim_gets_only_its_types_and_does_not_spin,
    an_echo_of_a_claim_does_not_spin,
    outcomes_of_remote_workers_are_refused_while_the_store_is_away,
    a_newer_claim_answers_the_older_one_with_nothing,
    a_silent_worker_loses_its_leases_and_is_refused,
    no_worker_is_judged_while_the_sessions_cannot_be_read,
    an_overdue_lease_is_taken_back_and_its_worker_told,
    an_extended_lease_is_left_alone,
    a_worker_that_leaves_hands_everything_back,
    a_claim_that_waits_is_answered_when_a_lease_is_cancelled,
    a_heartbeat_that_waits_is_answered_when_a_lease_is_cancelled,
    a_cancel_is_told_to_the_holder_alone,
    the_session_of_another_tenant_does_not_exist,
    s09_a_lease_belongs_to_the_key_that_opened_its_session,
    a_restart_of_the_engine_is_survived;
    one_process: without_remote_workers_sessions_are_hardly_read
);
