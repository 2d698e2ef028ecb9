//! How the schema comes about: migrations, functions, and databases of earlier releases.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use duly_core::id::{SessionId, TaskId};
use duly_core::name::TenantName;
use duly_core::name::TypeName;
use duly_core::ports::clock::Clock as _;
use duly_core::ports::store::{
    Claim, Control as _, Exchange, Home, Leases as _, OpenSession, Reap, Replay, ReplayTasks,
    Rules, Sessions as _, Tasks as _,
};
use duly_core::state::Status;
use duly_store::clock::ManualClock;
use duly_store::conformance::Harness;
use duly_store::postgres::database::Database;
use duly_store::postgres::{OpenError, PostgresStore, scratch};
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};

use crate::world::success;

/// The last version of the schema before functions had files of their own.
const RELEASED: i32 = 10;
/// How such a program keeps what it has applied.
const OLD_TABLE: &str = "CREATE SCHEMA duly;
    CREATE TABLE duly.migration (
        version    integer     NOT NULL PRIMARY KEY,
        applied_at timestamptz NOT NULL DEFAULT now(),
        oldest     integer
    )";
/// Names functions that a test has changed.
const MARKED: &str = "CREATE OR REPLACE FUNCTION duly.usual_back_off() RETURNS jsonb
    LANGUAGE sql IMMUTABLE AS $$ SELECT '{}'::jsonb $$";
const IS_MARKED: &str = "SELECT duly.usual_back_off() = '{}'";

/// An empty database that only one test uses.
struct Fresh {
    database: Database,
    client: Client,
    clock: Arc<ManualClock>,
    _driver: JoinSet<()>,
}

impl Fresh {
    async fn new(test: &str) -> Option<Self> {
        let server = scratch::server()?;
        let name = format!("duly_schema_{test}_{}", std::process::id());
        let database = Database::make(&server, &name).await.unwrap();
        let (client, connection) = tokio_postgres::connect(database.url(), NoTls).await.unwrap();
        let mut driver = JoinSet::new();
        driver.spawn(async move { drop(connection.await) });
        Some(Self { database, client, clock: Arc::new(Harness::clock()), _driver: driver })
    }

    async fn open(&self) -> Result<PostgresStore, OpenError> {
        PostgresStore::open_at(self.database.url(), Rules::default(), self.clock.clone()).await
    }

    async fn run(&self, statements: &str) {
        self.client.batch_execute(statements).await.unwrap();
    }

    async fn is(&self, question: &str) -> bool {
        self.client.query_one(question, &[]).await.unwrap().get(0)
    }

    /// Applies what the last release applied, and leaves tasks in every state.
    async fn as_released(&self) {
        self.run(OLD_TABLE).await;
        let mut files: Vec<_> = std::fs::read_dir(folder("migrations")).unwrap().collect();
        files.sort_by_key(|file| file.as_ref().unwrap().path());
        for (version, file) in (1..=RELEASED).zip(files) {
            self.run(&std::fs::read_to_string(file.unwrap().path()).unwrap()).await;
            let note = "INSERT INTO duly.migration (version, oldest) VALUES ($1, $1)";
            self.client.execute(note, &[&version]).await.unwrap();
        }
        self.run(&format!("SET duly.now_ms = {}", self.clock.now().millis())).await;
        self.run(include_str!("old_database.sql")).await;
    }

    /// The tasks by their queues.
    async fn tasks(&self) -> BTreeMap<String, TaskId> {
        let select =
            "SELECT l.queue, t.id::text FROM duly.task t JOIN duly.lane l ON l.id = t.lane";
        let rows = self.client.query(select, &[]).await.unwrap();
        rows.iter().map(|row| (row.get(0), row.get::<_, &str>(1).parse().unwrap())).collect()
    }

    async fn remove(self, stores: impl IntoIterator<Item = PostgresStore>) {
        stores.into_iter().for_each(drop);
        self.database.remove().await.unwrap();
    }
}

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name).join("postgres")
}

async fn status(store: &PostgresStore, task: TaskId) -> Status {
    store.get(&TenantName::default_tenant(), task).await.unwrap().unwrap().status
}

/// Claims and succeeds until nothing is due.
async fn drain(store: &PostgresStore, session: SessionId, sequence: &mut u64) {
    loop {
        *sequence += 1;
        let claim = Some(Claim::new(session, *sequence, 10));
        let exchange = Exchange { session, finishes: vec![], claim };
        let leases = store.exchange(exchange).await.unwrap().leases;
        if leases.is_empty() {
            return;
        }
        let exchange = Exchange { session, finishes: success(&leases), claim: None };
        store.exchange(exchange).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_of_the_released_schema_complete() {
    let Some(fresh) = Fresh::new("released").await else { return };
    fresh.as_released().await;
    let tasks = fresh.tasks().await;
    let store = fresh.open().await.unwrap();
    for (queue, expected) in [
        ("due", Status::Pending),
        ("future", Status::Pending),
        ("back-off", Status::Pending),
        ("quarantined", Status::Pending),
        ("running", Status::Running),
        ("success", Status::Success),
        ("finished-externally", Status::Success),
        ("failed", Status::Failed),
        ("cancelled", Status::Cancelled),
    ] {
        assert_eq!(status(&store, tasks[queue]).await, expected, "{queue}");
    }
    let adopted = "SELECT count(*) = 18 AND count(*) FILTER (WHERE checksum IS NULL) = 0
        FROM duly.migration";
    assert!(fresh.is(adopted).await, "checksums are stored");

    let (session, mut sequence) = (SessionId::mint(fresh.clock.now(), 2), 0);
    let (name, types) = ("new".to_owned(), vec![TypeName::new("email").unwrap()]);
    let home = Home::Local;
    let open =
        OpenSession { id: session, name, tenant: None, types, queues: vec![], home, owner: None };
    store.open_session(open).await.unwrap();
    drain(&store, session, &mut sequence).await;
    assert_eq!(status(&store, tasks["due"]).await, Status::Success);
    assert_eq!(status(&store, tasks["quarantined"]).await, Status::Success);
    assert_eq!(status(&store, tasks["back-off"]).await, Status::Pending, "it is not due yet");

    // The lease of the old session is overdue; the task waits for its next attempt, as others do.
    fresh.clock.advance(Duration::from_secs(60 * 60));
    let reap = Reap { unacknowledged_before: fresh.clock.now(), entropy: 1 };
    store.reap(reap).await.unwrap();
    let replay = |queue: &str| Replay { task: tasks[queue], run: 1, run_at: None };
    let tenant = TenantName::default_tenant();
    let replayed = vec![replay("failed"), replay("cancelled"), replay("finished-externally")];
    let order = ReplayTasks { tenant, tasks: replayed, payload: None };
    store.replay(order).await.unwrap();
    fresh.clock.advance(Duration::from_secs(2 * 60 * 60));
    drain(&store, session, &mut sequence).await;
    for (queue, task) in &tasks {
        assert_eq!(status(&store, *task).await, Status::Success, "{queue}");
    }
    let left = "SELECT NOT EXISTS (SELECT FROM duly.due) AND NOT EXISTS (SELECT FROM duly.dlq)
        AND coalesce((SELECT sum(live) FROM duly.grant_log), 0) = 0";
    assert!(fresh.is(left).await, "nothing waits, has failed or is leased");
    fresh.remove([store]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_from_between_releases_is_brought_up_to_date() {
    let Some(fresh) = Fresh::new("between").await else { return };
    drop(fresh.open().await.unwrap());
    fresh
        .run(
            "DELETE FROM duly.migration WHERE version > 10; DROP TABLE duly.functions;
             INSERT INTO duly.migration (version, oldest) SELECT n, n FROM generate_series(11, 15) n;
             ALTER TABLE duly.migration DROP COLUMN checksum;
             ALTER TABLE duly.task DROP COLUMN links, DROP COLUMN workflow;
             ALTER TABLE duly.session DROP COLUMN owner;
             DROP TABLE duly.edge, duly.blocked, duly.doomed, duly.workflow, duly.member,
                 duly.schedule, duly.schedule_version, duly.schedule_position, duly.slot, duly.audit,
                 duly.api_key, duly.api_key_use, duly.tenant, duly.application_tenant, duly.sink,
                 duly.wanted, duly.wanted_kinds, duly.outbox, duly.outbox_head, duly.event_mark;
             DROP SEQUENCE duly.event_number",
        )
        .await;
    let store = fresh.open().await.unwrap();
    assert!(fresh.is("SELECT max(version) = 23 FROM duly.migration").await);
    fresh.remove([store]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_applied_migration_is_refused() {
    let Some(fresh) = Fresh::new("changed").await else { return };
    drop(fresh.open().await.unwrap());
    fresh.run("UPDATE duly.migration SET checksum = 'other' WHERE version = 3").await;
    let refused = fresh.open().await.err().expect("it cannot be opened");
    assert!(matches!(refused, OpenError::Unsuitable(_)), "{refused:?}");
    let text = refused.to_string();
    for words in ["migration 3", "0003_queues_settings_reports.sql", "new migration"] {
        assert!(text.contains(words), "{words:?} is not in {text:?}");
    }
    fresh.remove([]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_higher_version_replaces_the_functions() {
    let Some(fresh) = Fresh::new("functions").await else { return };
    drop(fresh.open().await.unwrap());
    fresh.run(MARKED).await;
    drop(fresh.open().await.unwrap());
    assert!(fresh.is(IS_MARKED).await, "the same version touches nothing");
    fresh.run("INSERT INTO duly.functions (version) VALUES (9999)").await;
    drop(fresh.open().await.unwrap());
    assert!(fresh.is(IS_MARKED).await, "a lower version touches nothing");
    fresh.run("UPDATE duly.functions SET version = version - 10000").await;
    let store = fresh.open().await.unwrap();
    assert!(!fresh.is(IS_MARKED).await, "a higher version replaces them");
    fresh.remove([store]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_schema_has_exactly_the_functions_of_the_files() {
    let Some(fresh) = Fresh::new("list").await else { return };
    let store = fresh.open().await.unwrap();
    let mut defined = Vec::new();
    for file in std::fs::read_dir(folder("functions")).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let starts =
            text.lines().filter_map(|it| it.strip_prefix("CREATE OR REPLACE FUNCTION duly."));
        defined.extend(starts.map(|it| it.split('(').next().unwrap().to_owned()));
    }
    defined.sort_unstable();
    let select = "SELECT proname::text FROM pg_proc
        WHERE pronamespace = 'duly'::regnamespace ORDER BY proname COLLATE \"C\"";
    let rows = fresh.client.query(select, &[]).await.unwrap();
    let found: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(found, defined);
    fresh.remove([store]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_start_at_once_make_one_schema() {
    let Some(fresh) = Fresh::new("at_once").await else { return };
    let (one, two, three) = tokio::join!(fresh.open(), fresh.open(), fresh.open());
    let stores = [one.unwrap(), two.unwrap(), three.unwrap()];
    assert!(fresh.is("SELECT count(*) = 1 FROM duly.functions").await, "replaced once");
    fresh.remove(stores).await;
}
