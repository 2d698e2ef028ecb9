//! Queues in one file: whom they wake, and what a question about them may depend on.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use duly_core::back_off::BackOff;
use duly_core::id::{SessionId, TaskId};
use duly_core::limits::COUNT_LEASES;
use duly_core::name::{Lane, QueueName, TenantName, TypeName};
use duly_core::ports::clock::Clock as _;
use duly_core::ports::store::{
    Claim, Counted, Exchange, Hint, Home, Leases as _, OpenSession, PauseQueue, Queues as _, Rules,
    Sessions as _, StoreHealth as _, Submit, Submitted, Tasks as _,
};
use duly_core::task::{NewTask, Priority};
use duly_core::time::Timestamp;
use duly_store::clock::SystemClock;
use duly_store::sqlite::SqliteStore;
use rusqlite::{Connection, params};
use tempfile::TempDir;

/// Far longer than an answer takes on a busy machine, and shorter than a writer waits for a lock.
const PATIENCE: Duration = Duration::from_secs(4);

struct File {
    directory: TempDir,
    store: SqliteStore,
}

impl File {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let clock = Arc::new(SystemClock::default());
        let store = SqliteStore::open(&path(&directory), clock, Rules::default()).unwrap();
        Self { directory, store }
    }

    /// Another connection to the file.
    fn connect(&self) -> Connection {
        Connection::open(path(&self.directory)).unwrap()
    }

    async fn submit(&self, lane: &Lane, run_at: Timestamp) -> TaskId {
        let id = TaskId::mint(run_at, 1, 7);
        let task = NewTask {
            id,
            lane: lane.clone(),
            priority: Priority::new(5).unwrap(),
            run_at,
            delay: None,
            retries: 3,
            back_off: BackOff::default(),
            timeout: None,
            labels: BTreeMap::new(),
            payload: Arc::from("{}"),
            idempotency: None,
            links: None,
        };
        let stored = self.store.submit(Submit { tasks: vec![task], offer: None }).await.unwrap();
        assert!(matches!(stored[..], [Submitted::Stored { .. }]), "{stored:?}");
        id
    }

    async fn open_session(&self, home: Home) -> SessionId {
        let id = SessionId::mint(self.store.now().await.unwrap(), 1);
        let types = vec![TypeName::new("email").unwrap()];
        let (name, tenant, queues) = ("w".to_owned(), None, Vec::new());
        let session = OpenSession { id, name, tenant, types, queues, home, owner: None };
        self.store.open_session(session).await.unwrap();
        id
    }

    async fn running(&self) -> Counted {
        let lane = lane("default");
        let state = self.store.queue(&lane.tenant, &lane.queue).await.unwrap();
        state.unwrap().running
    }
}

fn path(directory: &TempDir) -> PathBuf {
    directory.path().join("duly.db")
}

fn lane(queue: &str) -> Lane {
    Lane {
        tenant: TenantName::default_tenant(),
        queue: QueueName::new(queue).unwrap(),
        task_type: TypeName::new("email").unwrap(),
    }
}

#[tokio::test]
async fn a_submit_to_a_paused_queue_wakes_no_worker() {
    let file = File::new();
    let now = SystemClock::default().now();
    let (mail, other) = (lane("mail"), lane("other"));
    file.submit(&mail, now).await;
    file.store.hint().await;
    let Lane { tenant, queue, .. } = mail.clone();
    let order = PauseQueue { tenant, queue, note: String::new() };
    assert!(file.store.pause_queue(order).await.unwrap());

    let soon = now.plus(Duration::from_secs(60));
    let later = now.plus(Duration::from_secs(120));
    file.submit(&mail, soon).await;
    file.submit(&other, later).await;
    let expected = Hint { due: later, lanes: Some(BTreeSet::from([other])) };
    assert_eq!(file.store.hint().await, expected, "nothing of the paused queue is in it");
    assert!(file.store.resume_queue(&mail.tenant, &mail.queue).await.unwrap());
    assert_eq!(file.store.hint().await, Hint::anywhere(now), "what waited meanwhile is known");
}

#[tokio::test]
async fn who_serves_a_lane_is_told_while_nothing_can_be_written() {
    let file = File::new();
    let session = file.open_session(Home::Remote).await;
    let lock = file.connect();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mail = lane("mail");
    let found = tokio::time::timeout(PATIENCE, file.store.serving(&mail)).await;
    assert_eq!(found.expect("it does not wait").unwrap(), [session]);
}

#[tokio::test]
async fn what_runs_for_others_makes_no_number_uncertain() {
    let file = File::new();
    let session = file.open_session(Home::Local).await;
    file.submit(&lane("default"), SystemClock::default().now()).await;
    let claim = Claim::new(session, 1, 10);
    let exchange = Exchange { session, finishes: vec![], claim: Some(claim) };
    assert_eq!(file.store.exchange(exchange).await.unwrap().leases.len(), 1);
    assert_eq!(file.running().await, Counted { count: 1, more: false });

    // Before the own session, so that a count from the first on meets it first.
    let foreign = [0_u8; 16];
    let connection = file.connect();
    let (many, home) = (vec![0_u8; 20 * (COUNT_LEASES as usize + 1)], true);
    let text = "INSERT INTO session (id, name, opened_at, home, tenant) VALUES (?, 'w', 0, ?, ?)";
    connection.execute(text, params![foreign, home, "other"]).unwrap();
    let text = "INSERT INTO grant_log (session, sequence, granted_at, leases) VALUES (?, 1, 0, ?)";
    connection.execute(text, params![foreign, many]).unwrap();
    assert_eq!(file.running().await, Counted { count: 1, more: false });

    connection.execute("UPDATE session SET tenant = NULL WHERE id = ?", [foreign]).unwrap();
    assert!(file.running().await.more, "these may be anybody's, and are too many");
}
