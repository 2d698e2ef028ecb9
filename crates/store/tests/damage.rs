//! A damaged file: what is whole goes on.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use duly_core::back_off::BackOff;
use duly_core::filter::Filter;
use duly_core::id::{SessionId, TaskId};
use duly_core::lease::{Finish, Finished, Outcome};
use duly_core::name::{Lane, QueueName, TenantName, TypeName};
use duly_core::ports::clock::Clock as _;
use duly_core::ports::store::{
    Claim, DeadLetters as _, Error, Exchange, GroupDead, Home, Leases as _, ListDead, ListSettings,
    ListTasks, OpenSession, PauseQueue, Put, PutSettings, Queues as _, Rules, Sessions as _,
    SettingsLog as _, StoreHealth as _, Submit, Submitted, Tasks as _,
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
        delay: None,
        retries: 3,
        back_off: BackOff::default(),
        timeout: None,
        labels: BTreeMap::from([("k".to_owned(), "v".to_owned())]),
        payload: format!("\"{}\"", "x".repeat(payload_bytes)).into(),
        idempotency: None,
        links: None,
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
    assert!(
        matches!(
            stored[..],
            [Submitted::Stored { .. }, Submitted::Stored { .. }, Submitted::Stored { .. }]
        ),
        "{stored:?}"
    );
    Connection::open(&path).unwrap().execute(damage, [ids[0].as_bytes()]).unwrap();
    let store = open(&path);
    let session = SessionId::mint(store.now().await.unwrap(), 1);
    let types = vec![TypeName::new("email").unwrap()];
    let (name, home) = ("w".to_owned(), Home::Local);
    let opened =
        OpenSession { id: session, name, tenant: None, types, queues: vec![], home, owner: None };
    store.open_session(opened).await.unwrap();
    let claim = Claim::new(session, 1, 10);
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
async fn a_task_that_cannot_be_read_holds_up_no_other() {
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
    assert!(matches!(stored[..], [Submitted::Stored { .. }]), "tasks go on: {stored:?}");
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

/// Leases three tasks to a remote worker, the first in a batch of its own and the others in another,
/// damages the file and opens it again.
async fn reopen_after(damage: &[&str]) -> Leased {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("duly.db");
    let store = open(&path);
    let session = SessionId::mint(store.now().await.unwrap(), 1);
    let types = vec![TypeName::new("email").unwrap()];
    let (name, home) = ("w".to_owned(), Home::Remote);
    let opened =
        OpenSession { id: session, name, tenant: None, types, queues: vec![], home, owner: None };
    store.open_session(opened).await.unwrap();
    let tasks = vec![task(1, 10), task(2, 10), task(3, 10)];
    let ids = [tasks[0].id, tasks[1].id, tasks[2].id];
    store.submit(Submit { tasks, offer: None }).await.unwrap();
    for (sequence, max) in [(1, 1), (2, 2)] {
        let claim = Some(Claim { session, sequence, max, only: None });
        let exchange = Exchange { session, finishes: vec![], claim };
        assert_eq!(store.exchange(exchange).await.unwrap().leases.len(), max);
    }
    drop(store);
    let file = Connection::open(&path).unwrap();
    for statement in damage {
        file.execute(statement, []).unwrap();
    }
    drop(file);
    Leased { store: open(&path), session, ids, path, _directory: directory }
}

struct Leased {
    store: SqliteStore,
    session: SessionId,
    ids: [TaskId; 3],
    path: std::path::PathBuf,
    _directory: tempfile::TempDir,
}

impl Leased {
    /// The status of each task, and how often its lease was lost.
    async fn states(&self) -> Vec<(&'static str, u32)> {
        let mut states = Vec::new();
        for id in self.ids {
            let task = self.store.get(&TenantName::default_tenant(), id).await.unwrap().unwrap();
            states.push((task.status.as_str(), task.losses));
        }
        states
    }

    /// Finishes the three tasks in the session that had them; which outcomes are accepted.
    async fn finish(&self) -> usize {
        let outcome = || Outcome::Success { result: None };
        let finishes = self.ids.iter().map(|id| Finish::new(*id, 1, outcome())).collect();
        let exchange = Exchange { session: self.session, finishes, claim: None };
        let answer = self.store.exchange(exchange).await.unwrap();
        let accepted = answer.finished.iter().filter(|it| **it == Finished::Done);
        accepted.count()
    }

    fn rows(&self, table: &str) -> i64 {
        let count = format!("SELECT count(*) FROM {table}");
        Connection::open(&self.path).unwrap().query_row(&count, [], |row| row.get(0)).unwrap()
    }
}

const RUNS: (&str, u32) = ("RUNNING", 0);
const BACK: (&str, u32) = ("PENDING", 1);

#[tokio::test]
async fn leases_whose_batch_cannot_be_read_come_back() {
    for damage in [
        &["UPDATE grant_log SET leases = x'0102' WHERE sequence = 2"][..],
        &["UPDATE grant_log SET session = x'07' WHERE sequence = 2"],
        &["UPDATE grant_log SET sequence = -2 WHERE sequence = 2"],
        &[
            "UPDATE grant_log SET leases = zeroblob(39) WHERE sequence = 2",
            "UPDATE task SET session = x'01' WHERE id = (SELECT max(id) FROM task)",
        ],
    ] {
        let leased = reopen_after(damage).await;
        assert_eq!(leased.states().await, [RUNS, BACK, BACK], "{damage:?}");
        assert_eq!(leased.store.reclaimed(), 2, "{damage:?}");
        assert_eq!(leased.rows("grant_log"), 1, "{damage:?}: the row is gone");
        assert_eq!(leased.rows("due"), 2, "{damage:?}: they wait");
        assert_eq!(leased.finish().await, 1, "{damage:?}: what was taken back is refused");
        let Leased { store, path, .. } = leased;
        drop(store);
        assert_eq!(open(&path).reclaimed(), 0, "{damage:?}: it is repaired");
    }
}

#[tokio::test]
async fn a_moved_deadline_that_cannot_be_read_is_forgotten() {
    let damage = "INSERT INTO extension (task, epoch, deadline)
                  VALUES (x'00', 1, 5), (zeroblob(16), -1, 5), (zeroblob(17), 1, 5)";
    let leased = reopen_after(&[damage]).await;
    assert_eq!(leased.states().await, [RUNS; 3]);
    assert_eq!(leased.rows("extension"), 0);
    assert_eq!(leased.finish().await, 3);
}

#[tokio::test]
async fn a_session_that_cannot_be_read_is_over() {
    for damage in [
        "UPDATE session SET types = '{'",
        "UPDATE session SET queues = '[\"NO NAME\"]'",
        "UPDATE session SET tenant = ''",
        "UPDATE session SET id = x'01'",
    ] {
        let leased = reopen_after(&[damage]).await;
        assert_eq!(leased.states().await, [BACK; 3], "{damage}");
        assert_eq!(leased.rows("session WHERE ended_at IS NULL"), 0, "{damage}");
        assert_eq!(leased.rows("grant_log"), 0, "{damage}");
        assert!(leased.store.workers().await.unwrap().is_empty(), "{damage}");
    }
}

#[tokio::test]
async fn a_lane_that_cannot_be_read_keeps_no_other_from_running() {
    let damage = "INSERT INTO lane (tenant, queue, type) VALUES ('default', 'NO NAME', 'email')";
    let leased = reopen_after(&[damage]).await;
    assert_eq!(leased.finish().await, 3);
}
