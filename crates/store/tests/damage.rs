//! A file that somebody has damaged: what is whole goes on.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use duly_core::back_off::BackOff;
use duly_core::id::{SessionId, TaskId};
use duly_core::name::{Lane, QueueName, TenantName, TypeName};
use duly_core::ports::clock::Clock as _;
use duly_core::ports::store::{
    Claim, Exchange, Home, Leases as _, ListTasks, OpenSession, Pulse as _, Rules, Sessions as _,
    Submit, Submitted, Tasks as _,
};
use duly_core::task::{NewTask, Priority};
use duly_store::clock::SystemClock;
use duly_store::sqlite::SqliteStore;
use rusqlite::Connection;

fn task(ordinal: u32, payload_bytes: usize) -> NewTask {
    let now = SystemClock::default().now();
    NewTask {
        id: TaskId::mint(now, ordinal, 7),
        lane: Lane {
            tenant: TenantName::default_tenant(),
            queue: QueueName::default_queue(),
            task_type: TypeName::new("email").unwrap(),
        },
        priority: Priority::new(5).unwrap(),
        run_at: now,
        created_at: now,
        retries: 3,
        back_off: BackOff::default(),
        timeout: None,
        labels: BTreeMap::new(),
        payload: format!("\"{}\"", "x".repeat(payload_bytes)).into(),
        idempotency: None,
    }
}

fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, Arc::new(SystemClock::default()), Rules::default()).unwrap()
}

/// Stores a large task and two small ones, damages the file, and claims what is due after it was
/// opened again.
async fn claim_after(damage: &str) -> After {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("duly.db");
    let tasks = vec![task(1, 5000), task(2, 10), task(3, 10)];
    let ids = [tasks[0].id, tasks[1].id, tasks[2].id];
    let stored = open(&path).submit(Submit { tasks, offer: None }).await.unwrap();
    assert_eq!(stored, [Submitted::Stored; 3]);
    Connection::open(&path).unwrap().execute(damage, [ids[0].as_bytes()]).unwrap();
    let store = open(&path);
    let session = SessionId::mint(store.now().await.unwrap(), 1);
    let types = vec![TypeName::new("email").unwrap()];
    let (name, home) = ("w".to_owned(), Home::Local);
    let opened = OpenSession { id: session, name, tenant: None, types, queues: vec![], home };
    store.open_session(opened).await.unwrap();
    let claim = Claim { session, sequence: 1, max: 10 };
    let exchange = Exchange { session, finishes: vec![], claim: Some(claim) };
    let leases = store.exchange(exchange).await.unwrap().leases;
    let claimed = leases.into_iter().map(|lease| lease.task).collect();
    After { store, ids, claimed, _directory: directory }
}

struct After {
    store: SqliteStore,
    ids: [TaskId; 3],
    claimed: Vec<TaskId>,
    _directory: tempfile::TempDir,
}

impl After {
    async fn listed(&self) -> Vec<TaskId> {
        let page = ListTasks { tenant: TenantName::default_tenant(), before: None, limit: 10 };
        let page = self.store.list(page).await.unwrap();
        page.tasks.into_iter().map(|task| task.id).collect()
    }
}

#[tokio::test]
async fn a_task_that_cannot_be_read_holds_up_nobody() {
    for damage in [
        "DELETE FROM payload WHERE task = ?",
        "UPDATE task SET retries = -1 WHERE id = ?",
        "UPDATE task SET back_off = 'x', payload = NULL, labels = '[' WHERE id = ?",
    ] {
        let after = claim_after(damage).await;
        let [lost, one, two] = after.ids;
        let whole = matches!(after.claimed[..], [first, ..] if first == lost);
        assert_eq!(after.claimed[usize::from(whole)..], [one, two], "{damage}");
        after.store.check().await.unwrap();
        let error = after.store.get(&TenantName::default_tenant(), lost).await.unwrap_err();
        assert!(!error.is_retryable(), "{damage}: {error}");
        assert_eq!(after.listed().await, [two, one], "{damage}");
    }
}

#[tokio::test]
async fn an_instant_out_of_range_stops_neither_writer_nor_lists() {
    let damage = "UPDATE task SET run_at = -5, created_at = 9223372036854775807 WHERE id = ?";
    let after = claim_after(damage).await;
    assert_eq!(after.claimed, after.ids);
    assert_eq!(after.listed().await.len(), 3);
}
