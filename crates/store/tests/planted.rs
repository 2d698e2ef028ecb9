//! Each planted bug of the embedded store is caught: cases that pass without it fail with it.

#![cfg(feature = "planted-bugs")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use duly_core::audit::Author;
use duly_core::back_off::BackOff;
use duly_core::id::{SessionId, TaskId};
use duly_core::lease::{Finish, Finished, Outcome};
use duly_core::name::{Lane, QueueName, TenantName, TypeName};
use duly_core::ports::clock::Clock as _;
use duly_core::ports::store::{
    AuditLog as _, Claim, Ending, Exchange, Heartbeat, Home, Leases as _, OpenSession, PauseQueue,
    Rules, Sessions as _, Store, Submit, Tasks as _,
};
use duly_core::task::{NewTask, Priority};
use duly_core::time::Timestamp;
use duly_store::clock::ManualClock;
use duly_store::conformance::{Backend, Harness, dependencies, finish, schedules, session};
use duly_store::planted::PlantedBug;
use duly_store::sqlite::SqliteStore;

struct Bugged {
    clock: Arc<ManualClock>,
    store: Arc<SqliteStore>,
    directory: tempfile::TempDir,
}

impl Bugged {
    fn with(bug: Option<PlantedBug>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let clock = Arc::new(Harness::clock());
        let path = directory.path().join("duly.db");
        let store = SqliteStore::open(&path, clock.clone(), Rules::default()).unwrap();
        let store = match bug {
            Some(bug) => store.with_bug(bug),
            None => store,
        };
        Self { clock, store: Arc::new(store), directory }
    }
}

#[async_trait]
impl Backend for Bugged {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    fn clock(&self) -> &ManualClock {
        &self.clock
    }

    async fn crash(&mut self) {
        panic!("the cases here go without");
    }
}

/// Whether a case passes.
fn passes<F: Future<Output = ()>>(
    case: impl FnOnce(Harness) -> F + Send + 'static,
    bug: Option<PlantedBug>,
) -> bool {
    let run = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(case(Harness::new(Box::new(Bugged::with(bug)))));
    });
    run.join().is_ok()
}

/// The case tells a store with the bug from one without.
fn catches<F: Future<Output = ()>>(
    case: impl FnOnce(Harness) -> F + Copy + Send + 'static,
    bug: PlantedBug,
) {
    assert!(passes(case, None), "without {bug}");
    assert!(!passes(case, Some(bug)), "with {bug}");
}

#[test]
fn an_outcome_without_a_fence_is_caught() {
    catches(
        finish::a_stale_holder_is_refused_while_its_successor_runs,
        PlantedBug::FinishWithoutEpoch,
    );
    catches(
        finish::the_lease_of_another_session_cannot_be_finished,
        PlantedBug::FinishWithoutEpoch,
    );
}

#[test]
fn a_session_that_takes_what_others_hold_is_caught() {
    catches(session::its_end_leaves_what_other_sessions_hold_now, PlantedBug::ReapById);
}

#[test]
fn an_epoch_that_comes_again_is_caught() {
    catches(finish::every_grant_raises_the_epoch, PlantedBug::EpochResetOnRetry);
    catches(session::the_leases_of_a_dead_one_count_a_loss, PlantedBug::EpochResetOnRetry);
}

#[test]
fn a_session_back_from_the_dead_is_caught() {
    catches(session::a_beat_after_its_end_brings_nothing_back, PlantedBug::BeatAfterEnd);
    catches(session::remote_ones_are_listed_while_they_are_open, PlantedBug::BeatAfterEnd);
}

#[test]
fn parents_that_count_once_are_caught() {
    catches(dependencies::two_parents_in_one_batch_count_twice, PlantedBug::CountParentsOnce);
    catches(
        dependencies::a_thousand_parents_release_their_child_once,
        PlantedBug::CountParentsOnce,
    );
}

#[test]
fn a_release_before_the_commit_is_caught() {
    catches(dependencies::a_child_waits_for_its_parent, PlantedBug::ReleaseBeforeCommit);
}

#[test]
fn an_id_of_a_slot_without_the_generation_is_caught() {
    catches(
        schedules::a_slot_runs_again_though_a_client_has_kept_its_task,
        PlantedBug::SlotIdWithoutGeneration,
    );
}

/// A change whose entry cannot be written is not made.
#[tokio::test]
async fn an_audit_entry_outside_the_commit_is_caught() {
    for bug in [None, Some(PlantedBug::AuditOutsideCommit)] {
        let bugged = Bugged::with(bug);
        let other = rusqlite::Connection::open(bugged.directory.path().join("duly.db")).unwrap();
        let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON audit
            BEGIN SELECT RAISE(ABORT, 'no room'); END";
        other.execute_batch(refuse).unwrap();
        let author = Author { actor: Arc::from("key:7"), request_id: None };
        let (tenant, queue) = (TenantName::default_tenant(), QueueName::default_queue());
        let order = PauseQueue { tenant, queue, note: String::new() };
        let answer = bugged.store.on_behalf_of(author).pause_queue(order).await;
        let paused: i64 =
            other.query_row("SELECT count(*) FROM pause", [], |row| row.get(0)).unwrap();
        assert_eq!((answer.is_ok(), paused == 1), (bug.is_some(), bug.is_some()), "{bug:?}");
    }
}

/// A writer that cannot commit does not answer, unless it acknowledges too early.
#[tokio::test]
async fn an_acknowledgement_before_the_commit_is_caught() {
    for bug in [None, Some(PlantedBug::AcknowledgeBeforeCommit)] {
        let bugged = Bugged::with(bug);
        let (store, task) = (&bugged.store, new_task(bugged.clock.now()));
        let other = rusqlite::Connection::open(bugged.directory.path().join("duly.db")).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let submit = store.submit(Submit { tasks: vec![task.clone()], offer: None });
        let mut submit = std::pin::pin!(submit);
        let answered = tokio::time::timeout(Duration::ZERO, &mut submit).await.is_ok();
        let stored = store.get(&task.lane.tenant, task.id).await.unwrap().is_some();
        assert_eq!((answered, stored), (bug.is_some(), false), "{bug:?}");
        other.execute_batch("ROLLBACK").unwrap();
        if bug.is_none() {
            submit.await.unwrap();
            assert!(store.get(&task.lane.tenant, task.id).await.unwrap().is_some());
        }
    }
}

/// A case stops at its first failure; this is what else the bug does.
#[tokio::test]
async fn a_session_back_from_the_dead_commits_what_its_successor_runs() {
    let bugged = Bugged::with(Some(PlantedBug::BeatAfterEnd));
    let store = &bugged.store;
    let sessions = [1, 2].map(|number| SessionId::mint(bugged.clock.now(), number));
    let task = new_task(bugged.clock.now());
    store.submit(Submit { tasks: vec![task.clone()], offer: None }).await.unwrap();
    for (session, epoch) in sessions.into_iter().zip(1..) {
        store.open_session(remote(session)).await.unwrap();
        let claim = Some(Claim::new(session, 1, 1));
        let claimed = store.exchange(Exchange { session, finishes: vec![], claim }).await.unwrap();
        assert_eq!(claimed.leases[0].epoch, epoch);
        if epoch == 1 {
            store.end_session(session, Ending::Died { beat: 0 }).await.unwrap();
        }
    }
    let [dead, successor] = sessions;
    let beat = Heartbeat { session: dead, received: vec![], unstarted: vec![] };
    assert!(store.beat(beat).await.unwrap());
    for (session, epoch, answer) in [(successor, 2, Finished::LeaseLost), (dead, 1, Finished::Done)]
    {
        let finishes = vec![Finish::new(task.id, epoch, Outcome::Success { result: None })];
        let said = store.exchange(Exchange { session, finishes, claim: None }).await.unwrap();
        assert_eq!(said.finished, [answer]);
    }
}

fn remote(id: SessionId) -> OpenSession {
    let (name, types) = ("worker".to_owned(), vec![TypeName::new("email").unwrap()]);
    OpenSession { id, name, tenant: None, types, queues: vec![], home: Home::Remote, owner: None }
}

fn new_task(now: Timestamp) -> NewTask {
    NewTask {
        id: TaskId::mint(now, 1, 7),
        lane: Lane {
            tenant: TenantName::default_tenant(),
            queue: QueueName::default_queue(),
            task_type: TypeName::new("email").unwrap(),
        },
        priority: Priority::new(5).unwrap(),
        run_at: now,
        delay: None,
        retries: 3,
        back_off: BackOff::default(),
        timeout: None,
        labels: BTreeMap::new(),
        payload: Arc::from("{}"),
        idempotency: None,
        links: None,
    }
}

#[test]
fn bugs_are_known_by_their_names() {
    for bug in PlantedBug::ALL {
        assert_eq!(bug.to_string().parse::<PlantedBug>().unwrap(), bug);
    }
    assert!("no-such-bug".parse::<PlantedBug>().is_err());
}
