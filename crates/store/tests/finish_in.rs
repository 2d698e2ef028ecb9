//! Finish in a handler's own transaction leaves what the nodes' own finish leaves.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::sync::Arc;
use std::time::Duration;

use duly_core::back_off::BackOff;
use duly_core::id::{SessionId, TaskId};
use duly_core::lease::{Fence, Finish, Finished, Lease, Outcome};
use duly_core::limits::RESULT_BYTES;
use duly_core::log::LogChunk;
use duly_core::name::{Lane, QueueName, TenantName, TypeName};
use duly_core::ports::clock::Clock as _;
use duly_core::ports::store::{
    Claim, Control as _, Ending, Exchange, Home, Leases as _, OpenSession, Replay, ReplayTasks,
    Rules, Sessions as _, Submit, Tasks as _,
};
use duly_core::task::{NewTask, Priority};
use duly_store::clock::ManualClock;
use duly_store::conformance::Harness;
use duly_store::postgres::scratch::{self, Scratch};
use duly_store::postgres::{FinishError, PostgresStore, finish_in};
use tokio::task::JoinSet;
use tokio_postgres::Client;

struct World {
    clock: Arc<ManualClock>,
    store: PostgresStore,
    app: Client,
    _driver: JoinSet<()>,
    _scratch: Scratch,
}

impl World {
    /// A node and a handler's connection; nothing if there is no server to test on.
    async fn new() -> Option<Self> {
        let clock = Arc::new(Harness::clock());
        let scratch = Scratch::new(&scratch::server()?, clock.clone()).await;
        let url = scratch.url();
        let store = PostgresStore::open_at(&url, Rules::default(), clock.clone()).await.unwrap();
        let (app, driver) = scratch.connect().await;
        let set = format!(
            "SET duly.now_ms = {}; DROP TABLE IF EXISTS effect; CREATE TABLE effect (task uuid NOT NULL)",
            clock.now().millis()
        );
        app.batch_execute(&set).await.unwrap();
        Some(Self { clock, store, app, _driver: driver, _scratch: scratch })
    }

    /// Submits tasks and grants them to a new session, in one batch.
    async fn grant(&self, tasks: u32) -> (SessionId, Vec<Lease>) {
        let task = |number| NewTask {
            id: TaskId::mint(self.clock.now(), number, 7),
            lane: Lane {
                tenant: TenantName::default_tenant(),
                queue: QueueName::default_queue(),
                task_type: TypeName::new("email").unwrap(),
            },
            priority: Priority::new(5).unwrap(),
            run_at: self.clock.now(),
            delay: None,
            retries: 3,
            back_off: BackOff::default(),
            timeout: None,
            labels: std::collections::BTreeMap::new(),
            payload: Arc::from("{}"),
            idempotency: None,
            links: None,
        };
        let tasks = (0..tasks).map(task).collect();
        self.store.submit(Submit { tasks, offer: None }).await.unwrap();
        let session = self.open(1).await;
        (session, self.claim(session, 1).await)
    }

    async fn open(&self, number: u64) -> SessionId {
        let id = SessionId::mint(self.clock.now(), number);
        let types = vec![TypeName::new("email").unwrap()];
        let name = format!("worker-{number}");
        let queues = vec![];
        let session =
            OpenSession { id, name, tenant: None, types, queues, home: Home::Remote, owner: None };
        self.store.open_session(session).await.unwrap();
        id
    }

    async fn claim(&self, session: SessionId, sequence: u64) -> Vec<Lease> {
        let claim = Some(Claim::new(session, sequence, 10));
        let exchange = Exchange { session, finishes: vec![], claim };
        self.store.exchange(exchange).await.unwrap().leases
    }

    async fn report(&self, session: SessionId, finishes: Vec<Finish>) -> Vec<Finished> {
        let exchange = Exchange { session, finishes, claim: None };
        self.store.exchange(exchange).await.unwrap().finished
    }

    /// Has an effect and finishes under this lease, in one transaction.
    async fn finish(&mut self, fence: &Fence, result: Option<&str>) -> Result<(), FinishError> {
        let transaction = self.app.transaction().await.unwrap();
        let insert = format!("INSERT INTO effect VALUES ('{}')", fence.task);
        transaction.batch_execute(&insert).await.unwrap();
        finish_in(&transaction, fence, result).await?;
        Ok(transaction.commit().await?)
    }

    async fn text(&self, query: &str) -> String {
        self.app.query_one(query, &[]).await.unwrap().get(0)
    }

    /// How many leases of its batches live, and how many effects there are.
    async fn live_and_effects(&self) -> String {
        self.text(
            "SELECT concat((SELECT sum(live) FROM duly.grant_log), ' ',
                                 (SELECT count(*) FROM effect))",
        )
        .await
    }
}

fn fence(lease: &Lease, session: SessionId) -> Fence {
    Fence { task: lease.task, epoch: lease.epoch, session }
}

fn success(lease: &Lease, result: Option<&str>) -> Finish {
    let result = result.map(Arc::from);
    Finish::new(lease.task, lease.epoch, Outcome::Success { result })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_leaves_the_same_row_and_the_batch_is_told_once() {
    let Some(mut world) = World::new().await else { return };
    let (session, leases) = world.grant(3).await;
    let result = Some(r#"{"n":1}"#);
    world.finish(&fence(&leases[0], session), result).await.unwrap();
    assert_eq!(world.live_and_effects().await, "3 1");
    let other = success(&leases[1], result);
    assert_eq!(world.report(session, vec![other]).await, [Finished::Done]);
    for _ in 0..2 {
        let report = vec![success(&leases[0], None)];
        assert_eq!(world.report(session, report).await, [Finished::Done]);
        assert_eq!(world.live_and_effects().await, "1 1");
    }
    let rows = format!(
        "SELECT count(DISTINCT to_jsonb(t) - 'id')::text FROM duly.task t
         WHERE t.id IN ('{}', '{}')",
        leases[0].task, leases[1].task
    );
    assert_eq!(world.text(&rows).await, "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_reported_with_it_is_kept() {
    let Some(mut world) = World::new().await else { return };
    let (session, leases) = world.grant(1).await;
    world.finish(&fence(&leases[0], session), None).await.unwrap();
    let log = Some(LogChunk { offset: 0, text: Arc::from("the last words\n") });
    let report = Finish { log, ..success(&leases[0], None) };
    for _ in 0..2 {
        assert_eq!(world.report(session, vec![report.clone()]).await, [Finished::Done]);
        assert_eq!(world.live_and_effects().await, "0 1");
    }
    let logs = "SELECT concat(epoch, run, attempt, text) FROM duly.log";
    assert_eq!(world.text(logs).await, "111the last words\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_outcome_afterwards_is_refused() {
    let Some(mut world) = World::new().await else { return };
    let (session, leases) = world.grant(1).await;
    world.finish(&fence(&leases[0], session), None).await.unwrap();
    let release = vec![leases[0].release()];
    assert_eq!(world.report(session, release).await, [Finished::LeaseLost]);
    assert_eq!(world.live_and_effects().await, "0 1");
    assert_eq!(world.text("SELECT status::text FROM duly.task").await, "3");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_is_lost_rolls_everything_back() {
    let Some(mut world) = World::new().await else { return };
    let (session, leases) = world.grant(1).await;
    let stale = fence(&leases[0], session);
    for wrong in [
        Fence { epoch: stale.epoch + 1, ..stale },
        Fence { session: SessionId::mint(world.clock.now(), 99), ..stale },
        Fence { task: TaskId::mint(world.clock.now(), 99, 99), ..stale },
    ] {
        let refused = world.finish(&wrong, None).await;
        assert!(matches!(refused, Err(FinishError::LeaseLost)), "{refused:?}");
    }
    world.store.end_session(session, Ending::Closed).await.unwrap();
    let next = world.open(2).await;
    let again = world.claim(next, 1).await;
    let refused = world.finish(&stale, None).await;
    assert!(matches!(refused, Err(FinishError::LeaseLost)), "{refused:?}");
    assert_eq!(world.live_and_effects().await, "1 0");
    world.finish(&fence(&again[0], next), None).await.unwrap();
    assert_eq!(world.live_and_effects().await, "1 1");
    let refused = world.finish(&fence(&again[0], next), None).await;
    assert!(matches!(refused, Err(FinishError::AlreadyFinished)), "{refused:?}");
    assert_eq!(world.live_and_effects().await, "1 1");
}

/// The reaper comes while a handler is about to commit: one of the two wins, and the effect is there
/// exactly if the handler does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_and_whoever_takes_its_lease_back_have_one_winner() {
    let Some(mut world) = World::new().await else { return };
    let (session, leases) = world.grant(1).await;
    let fence = fence(&leases[0], session);
    let World { store, app, .. } = &mut world;
    let transaction = app.transaction().await.unwrap();
    let insert = format!("INSERT INTO effect VALUES ('{}')", fence.task);
    transaction.batch_execute(&insert).await.unwrap();
    finish_in(&transaction, &fence, None).await.unwrap();
    let (taken, committed) = tokio::join!(store.end_session(session, Ending::Closed), async {
        // The other one waits for the task's row, or has not come yet.
        tokio::task::yield_now().await;
        transaction.commit().await
    });
    committed.unwrap();
    assert_eq!(taken.unwrap(), [], "there was nothing left to take");
    assert_eq!(world.text("SELECT concat(status, ' ', losses) FROM duly.task").await, "3 0");
    assert_eq!(world.live_and_effects().await, " 1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_before_the_report_tells_the_batch() {
    let Some(mut world) = World::new().await else { return };
    let (session, leases) = world.grant(1).await;
    world.finish(&fence(&leases[0], session), None).await.unwrap();
    let replay = Replay { task: leases[0].task, run: 1, run_at: None };
    let tenant = TenantName::default_tenant();
    let order = ReplayTasks { tenant, tasks: vec![replay], payload: None };
    world.store.replay(order).await.unwrap();
    assert_eq!(world.live_and_effects().await, "0 1");
    let report = vec![success(&leases[0], None)];
    assert_eq!(world.report(session, report).await, [Finished::LeaseLost]);
    assert_eq!(world.live_and_effects().await, "0 1");
    assert_eq!(world.claim(session, 2).await.len(), 1, "the next run is granted as usual");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_that_cannot_be_kept_is_refused() {
    let Some(mut world) = World::new().await else { return };
    let (session, leases) = world.grant(1).await;
    let fence = fence(&leases[0], session);
    let large = format!("\"{}\"", "x".repeat(RESULT_BYTES));
    let refused = world.finish(&fence, Some(&large)).await;
    assert!(matches!(refused, Err(FinishError::ResultTooLarge(_))), "{refused:?}");
    let refused = world.finish(&fence, Some(r#""\u0000""#)).await;
    assert!(matches!(refused, Err(FinishError::InvalidResult(_))), "{refused:?}");
    let refused = world.finish(&fence, Some("no JSON")).await;
    assert!(matches!(refused, Err(FinishError::Postgres(_))), "{refused:?}");
    assert_eq!(world.live_and_effects().await, "1 0");
    world.clock.advance(Duration::from_secs(1));
    world.finish(&fence, Some(" {} ")).await.unwrap();
    assert_eq!(world.text("SELECT result FROM duly.task").await, "{}");
}
