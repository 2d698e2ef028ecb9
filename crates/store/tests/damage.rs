//! A file that somebody has damaged: what is whole goes on.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use duly_core::back_off::BackOff;
use duly_core::filter::Filter;
use duly_core::id::{SessionId, TaskId};
use duly_core::lease::{Finish, Outcome};
use duly_core::name::{Lane, QueueName, TenantName, TypeName};
use duly_core::ports::clock::Clock as _;
use duly_core::ports::store::{
    Claim, DeadLetters as _, Error, Exchange, GroupDead, Home, Leases as _, ListDead, ListSettings,
    ListTasks, OpenSession, PauseQueue, Pulse as _, Put, PutSettings, Queues as _, Rules,
    Sessions as _, SettingsLog as _, Submit, Submitted, Tasks as _,
};
use duly_core::settings::Settings;
use duly_core::task::{Failure, NewTask, Priority};
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
        labels: BTreeMap::from([("k".to_owned(), "v".to_owned())]),
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
    After { store, ids, claimed, directory }
}

struct After {
    store: SqliteStore,
    ids: [TaskId; 3],
    claimed: Vec<TaskId>,
    directory: tempfile::TempDir,
}

impl After {
    async fn listed(&self, filter: &str) -> Vec<TaskId> {
        let filter = Filter::parse(filter, self.store.now().await.unwrap()).unwrap();
        let tenant = TenantName::default_tenant();
        let page = ListTasks { tenant, filter, before: None, limit: 10 };
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
        for filter in ["", "type:email", "label.k:v", "status:RUNNING", "worker:w"] {
            assert_eq!(after.listed(filter).await, [two, one], "{damage}, {filter}");
        }
        assert!(after.listed("error:x").await.is_empty(), "{damage}");
    }
}

#[tokio::test]
async fn an_instant_out_of_range_stops_neither_writer_nor_lists() {
    let damage = "UPDATE task SET run_at = -5, created_at = 9223372036854775807 WHERE id = ?";
    let after = claim_after(damage).await;
    assert_eq!(after.claimed, after.ids);
    assert_eq!(after.listed("").await.len(), 3);
}

#[tokio::test]
async fn a_dead_letter_that_cannot_be_read_hides_no_others() {
    for damage in ["UPDATE task SET error = '{' WHERE id = ?", "DELETE FROM task WHERE id = ?"] {
        let After { store, ids, claimed, directory } =
            claim_after("UPDATE task SET retries = 0 WHERE id = ?").await;
        let now = store.now().await.unwrap();
        let tenant = TenantName::default_tenant();
        let session = store.get(&tenant, ids[0]).await.unwrap().unwrap().session.unwrap();
        let outcome = || Outcome::Fail { error: Failure::new("X", "it broke") };
        let finishes = claimed.iter().map(|id| Finish::new(*id, 1, outcome())).collect();
        store.exchange(Exchange { session, finishes, claim: None }).await.unwrap();
        let file = directory.path().join("duly.db");
        Connection::open(file).unwrap().execute(damage, [ids[1].as_bytes()]).unwrap();
        for text in ["", "error:broke", "label.k:v", "worker:w"] {
            let filter = Filter::parse_dead(text, now).unwrap();
            let page = ListDead { tenant: tenant.clone(), filter, before: None, limit: 10 };
            let dead = store.dead_letters(page).await.unwrap().tasks;
            let dead: Vec<_> = dead.iter().map(|task| task.id).collect();
            assert_eq!(dead, [ids[2], ids[0]], "{damage}, {text}");
        }
        let which = GroupDead { tenant: tenant.clone(), filter: Filter::default(), limit: 10 };
        let groups = store.dead_groups(which).await.unwrap().groups;
        assert_eq!(groups.len(), 1, "{damage}");
    }
}

#[tokio::test]
async fn settings_that_cannot_be_read_can_be_set_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("duly.db");
    let put = |expected| PutSettings { expected, settings: Settings::default(), comment: None };
    open(&path).put_settings(put(0)).await.unwrap();
    Connection::open(&path).unwrap().execute("UPDATE settings SET body = '{'", []).unwrap();
    let store = open(&path);
    let stored = store.submit(Submit { tasks: vec![task(1, 10)], offer: None }).await.unwrap();
    assert_eq!(stored, [Submitted::Stored], "tasks go on");
    let error = store.settings().await.unwrap_err();
    assert!(matches!(error, Error::Corrupt { table: "settings", .. }), "{error}");
    let all = ListSettings { before: None, limit: 10 };
    assert!(store.settings_history(all).await.unwrap().is_empty());
    assert_eq!(store.put_settings(put(0)).await.unwrap(), Put::Conflict { current: 1 });
    assert_eq!(store.put_settings(put(1)).await.unwrap(), Put::Done { version: 2 });
    assert_eq!(store.settings().await.unwrap().version, 2);
}

#[tokio::test]
async fn a_batch_of_leases_that_cannot_be_read_hides_no_queue() {
    let After { store, directory, .. } =
        claim_after("UPDATE task SET losses = 0 WHERE id = ?").await;
    let damage = "INSERT INTO grant_log (session, sequence, granted_at, leases)
                  VALUES (x'00', 1, 0, zeroblob(20)), (zeroblob(16), 1, 0, x'00')";
    Connection::open(directory.path().join("duly.db")).unwrap().execute(damage, []).unwrap();
    let (tenant, queue) = (TenantName::default_tenant(), QueueName::default_queue());
    let state = store.queue(&tenant, &queue).await.unwrap().unwrap();
    assert_eq!((state.running.count, state.running.more), (3, false));
}

#[tokio::test]
async fn a_pause_that_cannot_be_read_keeps_nothing_closed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("duly.db");
    let tenant = TenantName::default_tenant();
    let store = open(&path);
    store.submit(Submit { tasks: vec![task(1, 10)], offer: None }).await.unwrap();
    let (queue, note) = (QueueName::default_queue(), String::new());
    let order = PauseQueue { tenant: tenant.clone(), queue: queue.clone(), note };
    assert!(store.pause_queue(order).await.unwrap());
    drop(store);
    let damage = "INSERT INTO pause (tenant, queue, since, note)
                  VALUES ('default', 'NO NAME', 0, ''), ('', 'mail', 0, ''),
                         ('default', CAST(x'ff' AS TEXT), 0, '')";
    Connection::open(&path).unwrap().execute(damage, []).unwrap();
    let store = open(&path);
    let state = store.queue(&tenant, &queue).await.unwrap().unwrap();
    assert!(state.paused.is_some(), "the other pause holds");
    assert!(store.resume_queue(&tenant, &queue).await.unwrap());
}
