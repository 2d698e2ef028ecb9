//! What a task's life costs PostgreSQL: bytes of log, and versions that stay on their page. Neither
//! depends on the machine. Alone in its program, since a server counts the log of all databases.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use duly_core::back_off::BackOff;
use duly_core::id::{SessionId, TaskId};
use duly_core::lease::{Finish, Finished, Outcome};
use duly_core::name::{Lane, QueueName, TenantName, TypeName};
use duly_core::ports::clock::Clock as _;
use duly_core::ports::store::{
    Claim, Exchange, Home, Leases as _, OpenSession, Rules, Sessions as _, Submit, Submitted,
    Tasks as _,
};
use duly_core::task::{NewTask, Priority};
use duly_store::clock::ManualClock;
use duly_store::conformance::Harness;
use duly_store::limit::PAYLOAD;
use duly_store::postgres::PostgresStore;
use duly_store::postgres::scratch::{self, Scratch};
use tokio::task::JoinSet;
use tokio_postgres::Client;

const BATCH: u32 = 500;
const BATCHES: u32 = 20;
const TASKS: u32 = BATCH * BATCHES;

struct World {
    clock: Arc<ManualClock>,
    store: PostgresStore,
    session: SessionId,
    client: Client,
    _driver: JoinSet<()>,
    _scratch: Scratch,
}

impl World {
    async fn new() -> Option<Self> {
        let clock = Arc::new(Harness::clock());
        let scratch = Scratch::new(&scratch::server()?, clock.clone()).await;
        let url = scratch.url();
        let store = PostgresStore::open_at(&url, Rules::default(), clock.clone()).await.unwrap();
        let session = SessionId::mint(clock.now(), 1);
        let types = vec![TypeName::new("email").unwrap()];
        let name = "worker".to_owned();
        let home = Home::Local;
        let open = OpenSession {
            id: session,
            name,
            tenant: None,
            types,
            queues: vec![],
            home,
            owner: None,
        };
        store.open_session(open).await.unwrap();
        let (client, driver) = scratch.connect().await;
        client.batch_execute("SELECT pg_stat_reset()").await.unwrap();
        Some(Self { clock, store, session, client, _driver: driver, _scratch: scratch })
    }

    fn tasks(&self, batch: u32) -> Vec<NewTask> {
        let task = |number: u32| NewTask {
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
            payload: Arc::from(PAYLOAD),
            idempotency: None,
            links: None,
        };
        (batch * BATCH..(batch + 1) * BATCH).map(task).collect()
    }

    async fn exchange(&self, finishes: Vec<Finish>, sequence: Option<u64>) -> Vec<Finish> {
        let session = self.session;
        let max = usize::try_from(BATCH).unwrap();
        let claim = sequence.map(|sequence| Claim::new(session, sequence, max));
        let exchanged = self.store.exchange(Exchange { session, finishes, claim }).await.unwrap();
        assert!(exchanged.finished.iter().all(|answer| *answer == Finished::Done));
        let success = Outcome::Success { result: None };
        let finish =
            |lease: duly_core::lease::Lease| Finish::new(lease.task, lease.epoch, success.clone());
        exchanged.leases.into_iter().map(finish).collect()
    }

    async fn log_bytes(&self) -> i64 {
        let select = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint";
        self.client.query_one(select, &[]).await.unwrap().get(0)
    }

    async fn bytes_per_task_since(&self, before: i64) -> i64 {
        (self.log_bytes().await - before) / i64::from(TASKS)
    }

    /// Stored, claimed and ended.
    async fn through_the_due_table(&self) -> i64 {
        let before = self.log_bytes().await;
        for batch in 0..BATCHES {
            let submit = Submit { tasks: self.tasks(batch), offer: None };
            self.store.submit(submit).await.unwrap();
        }
        let mut finishes = self.exchange(vec![], Some(1)).await;
        for batch in 1..BATCHES {
            assert_eq!(finishes.len(), usize::try_from(BATCH).unwrap());
            finishes = self.exchange(finishes, Some(u64::from(batch) + 1)).await;
        }
        self.exchange(finishes, None).await;
        self.bytes_per_task_since(before).await
    }

    /// Granted as they are stored, then ended.
    async fn handed_off(&self) -> i64 {
        let before = self.log_bytes().await;
        for batch in BATCHES..2 * BATCHES {
            let tasks = self.tasks(batch);
            let ids: Vec<_> = tasks.iter().map(|task| task.id).collect();
            let (session, sequence) = (self.session, u64::from(batch) + 1);
            let offer = Some(Claim::new(session, sequence, tasks.len()));
            let answers = self.store.submit(Submit { tasks, offer }).await.unwrap();
            assert!(answers.iter().all(|it| matches!(it, Submitted::HandedOff { epoch: 1, .. })));
            let success = Outcome::Success { result: None };
            let finish = |id: &TaskId| Finish::new(*id, 1, success.clone());
            self.exchange(ids.iter().map(finish).collect(), None).await;
        }
        self.bytes_per_task_since(before).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_life_costs_no_more_than_it_may() {
    let Some(world) = World::new().await else { return };
    let (through, handed) = (world.through_the_due_table().await, world.handed_off().await);
    say(&format!("log: {through} B per task through the due table, {handed} B by hand-off"));
    assert!((1..=1_200).contains(&through), "{through} B of log per task");
    assert!((1..=700).contains(&handed), "{handed} B of log per task that is handed off");
    let World { store, client, .. } = world;
    // A connection tells what it has done when it ends.
    drop(store);
    let select =
        "SELECT sum(n_tup_upd)::bigint, sum(n_tup_hot_upd)::bigint FROM pg_stat_user_tables
        WHERE schemaname = 'duly' AND relname LIKE 'task\\_%'";
    let mut ticks = tokio::time::interval(Duration::from_millis(50));
    for _ in 0..200 {
        let row = client.query_one(select, &[]).await.unwrap();
        let (updates, hot): (i64, i64) = (row.get(0), row.get(1));
        if updates >= i64::from(TASKS) * 3 {
            say(&format!("{hot} of {updates} updates of tasks stayed on their page"));
            assert!(hot * 100 >= updates * 90, "{hot} of {updates} updates stayed on their page");
            return;
        }
        ticks.tick().await;
    }
    panic!("the server does not tell what was updated");
}

/// Not by a macro: those are silent while a test passes.
fn say(text: &str) {
    writeln!(std::io::stderr().lock(), "{text}").unwrap();
}
