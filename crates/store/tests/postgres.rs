//! What only PostgreSQL does: many nodes share it, and it has days.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use duly_core::back_off::BackOff;
use duly_core::id::{SessionId, TaskId};
use duly_core::lease::{Finish, Finished, Lease, Outcome};
use duly_core::name::{Lane, QueueName, TenantName, TypeName};
use duly_core::ports::clock::Clock as _;
use duly_core::ports::store::{
    CancelTasks, Claim, Control as _, Controlled, Exchange, Home, Leases as _, OpenSession,
    Pulse as _, Rules, Sessions as _, Submit, Submitted, Tasks as _,
};
use duly_core::state::Status;
use duly_core::task::{NewTask, Priority};
use duly_core::time::Timestamp;
use duly_store::clock::ManualClock;
use duly_store::conformance::Harness;
use duly_store::postgres::scratch::{self, Scratch};
use duly_store::postgres::{OpenError, PostgresStore};
use tokio_postgres::NoTls;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

struct World {
    clock: Arc<ManualClock>,
    nodes: [PostgresStore; 2],
    scratch: Scratch,
}

impl World {
    /// Two nodes on an empty database; nothing if there is no server to test on.
    async fn new() -> Option<Self> {
        let clock = Arc::new(Harness::clock());
        let scratch = Scratch::new(&scratch::server()?, clock.clone()).await;
        let url = scratch.url();
        let open = || PostgresStore::open_at(&url, Rules::default(), clock.clone());
        let nodes = [open().await.unwrap(), open().await.unwrap()];
        Some(Self { clock, nodes, scratch })
    }

    fn task(&self, number: u32, delay: Duration) -> NewTask {
        let due = self.clock.now().plus(delay);
        NewTask {
            id: TaskId::mint(due, number, 7),
            lane: Lane {
                tenant: TenantName::default_tenant(),
                queue: QueueName::default_queue(),
                task_type: TypeName::new("email").unwrap(),
            },
            priority: Priority::new(5).unwrap(),
            run_at: due,
            created_at: self.clock.now(),
            retries: 3,
            back_off: BackOff::default(),
            timeout: None,
            labels: std::collections::BTreeMap::new(),
            payload: Arc::from("{}"),
            idempotency: None,
        }
    }

    async fn submit(&self, node: usize, tasks: Vec<NewTask>) -> Vec<Submitted> {
        self.nodes[node].submit(Submit { tasks, offer: None }).await.unwrap()
    }

    async fn open(&self, node: usize, number: u64, home: Home) -> SessionId {
        let id = SessionId::mint(self.clock.now(), number);
        let types = vec![TypeName::new("email").unwrap()];
        let name = format!("worker-{number}");
        let session = OpenSession { id, name, tenant: None, types, queues: vec![], home };
        self.nodes[node].open_session(session).await.unwrap();
        id
    }

    async fn claim(&self, node: usize, session: SessionId, sequence: u64) -> Vec<Lease> {
        let claim = Some(Claim { session, sequence, max: 10 });
        let exchange = Exchange { session, finishes: vec![], claim };
        self.nodes[node].exchange(exchange).await.unwrap().leases
    }

    async fn status(&self, id: TaskId) -> Status {
        let task = self.nodes[0].get(&TenantName::default_tenant(), id).await.unwrap();
        task.unwrap().status
    }

    /// Waits until a node has heard of something, which another one does again and again: news may
    /// get lost while nodes come up.
    async fn hear(&self, teller: usize, listener: usize) {
        for number in 1.. {
            assert!(number < 100, "no news arrive");
            self.submit(teller, vec![self.task(number, Duration::ZERO)]).await;
            let hint =
                tokio::time::timeout(Duration::from_millis(200), self.nodes[listener].hint());
            if hint.await.is_ok() {
                return;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_node_stores_is_claimed_at_another() {
    let Some(world) = World::new().await else { return };
    let session = world.open(1, 1, Home::Local).await;
    assert!(world.claim(1, session, 1).await.is_empty());
    world.hear(0, 1).await;
    assert!(!world.claim(1, session, 1).await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_may_use_every_node() {
    let Some(world) = World::new().await else { return };
    let task = world.task(0, Duration::ZERO);
    world.submit(0, vec![task.clone()]).await;
    let session = world.open(1, 1, Home::Remote).await;
    let leases = world.claim(0, session, 1).await;
    assert_eq!(leases.iter().map(|it| it.task).collect::<Vec<_>>(), [task.id]);
    assert_eq!(world.claim(1, session, 1).await, leases, "the claim can be repeated elsewhere");
    let outcome = Outcome::Success { result: None };
    let finishes = vec![Finish::new(task.id, leases[0].epoch, outcome)];
    let exchange = Exchange { session, finishes, claim: None };
    let answer = world.nodes[1].exchange(exchange).await.unwrap();
    assert_eq!(answer.finished, [Finished::Done]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_node_sees_the_workers_of_the_others() {
    let Some(world) = World::new().await else { return };
    let own = [world.open(0, 1, Home::Local).await, world.open(1, 2, Home::Local).await];
    for (node, other) in [(0, 1), (1, 0)] {
        let seen = world.nodes[node].sessions().await.unwrap();
        assert_eq!(seen.iter().map(|it| it.opened.id).collect::<Vec<_>>(), [own[other]]);
        assert!(world.nodes[other].keep_alive(vec![own[other]]).await.unwrap().is_empty());
        let again = world.nodes[node].sessions().await.unwrap();
        assert!(again[0].beat > seen[0].beat, "a sign of life shows");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_share_no_task() {
    let Some(world) = World::new().await else { return };
    let tasks: Vec<_> = (0..500).map(|number| world.task(number, Duration::ZERO)).collect();
    let ids: HashSet<_> = tasks.iter().map(|task| task.id).collect();
    world.submit(0, tasks).await;
    let sessions = [world.open(0, 1, Home::Local).await, world.open(1, 2, Home::Local).await];
    // The second one was open before there was anything to claim, and may not have heard of it.
    world.hear(0, 1).await;
    let work = |node: usize| {
        let (world, session) = (&world, sessions[node]);
        async move {
            let (mut seen, mut sequence) = (Vec::new(), 0);
            loop {
                sequence += 1;
                let leases = world.claim(node, session, sequence).await;
                if leases.is_empty() {
                    return seen;
                }
                seen.extend(leases.iter().map(|lease| lease.task));
            }
        }
    };
    let (one, two) = tokio::join!(work(0), work(1));
    let all: Vec<_> = one.iter().chain(&two).collect();
    let distinct: HashSet<_> = all.iter().copied().copied().collect();
    assert_eq!(distinct.len(), all.len(), "no task was granted twice");
    assert!(distinct.is_superset(&ids));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_day_is_made_once_by_whoever_needs_it() {
    let Some(world) = World::new().await else { return };
    let far = |number| vec![world.task(number, 100 * DAY), world.task(number, 399 * DAY)];
    let both = tokio::join!(world.submit(0, far(1)), world.submit(1, far(2)));
    assert_eq!(both, (vec![Submitted::Stored; 2], vec![Submitted::Stored; 2]));
    assert_eq!(world.status(far(1)[1].id).await, Status::Pending);
}

/// A claim takes its due row first and then the task, a cancel the other way round.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_and_a_claim_do_not_wait_for_each_other() {
    let Some(world) = World::new().await else { return };
    let session = world.open(0, 1, Home::Local).await;
    let (client, connection) = tokio_postgres::connect(&world.scratch.url(), NoTls).await.unwrap();
    let mut driver = tokio::task::JoinSet::new();
    driver.spawn(connection);
    for number in 0..20_u32 {
        let task = world.task(number, Duration::ZERO);
        world.submit(0, vec![task.clone()]).await;
        // Holds the row until both wait for it.
        let hold = format!("BEGIN; SELECT FROM duly.task WHERE id = '{}' FOR UPDATE", task.id);
        client.batch_execute(&hold).await.unwrap();
        let tenant = TenantName::default_tenant();
        let order = CancelTasks { tenant, tasks: vec![task.id], reason: "raced".to_owned() };
        let release = async {
            let waiting = "SELECT count(*) >= 2 FROM pg_locks WHERE NOT granted AND database =
                (SELECT oid FROM pg_database WHERE datname = current_database())";
            for _ in 0..200 {
                let both: bool = client.query_one(waiting, &[]).await.unwrap().get(0);
                if both {
                    break;
                }
                tokio::task::yield_now().await;
            }
            client.batch_execute("COMMIT").await.unwrap();
        };
        let claim = world.claim(0, session, u64::from(number) + 1);
        let (leases, cancelled, ()) = tokio::join!(claim, world.nodes[1].cancel(order), release);
        assert_eq!(cancelled.unwrap(), [Controlled::Done]);
        assert_eq!(world.status(task.id).await, Status::Cancelled);
        for lease in leases {
            let success = Outcome::Success { result: None };
            let finishes = vec![Finish::new(lease.task, lease.epoch, success)];
            let exchange = Exchange { session, finishes, claim: None };
            let answer = world.nodes[0].exchange(exchange).await.unwrap();
            assert_eq!(answer.finished, [Finished::LeaseLost]);
        }
    }
}

#[tokio::test]
async fn a_database_that_cannot_be_used_is_named() {
    let Some(server) = scratch::server() else { return };
    let open = |url: String| async move {
        PostgresStore::open(&url, Rules::default()).await.err().expect("it cannot be opened")
    };
    let absent = open(format!("{}_absent", server.split('?').next().unwrap())).await;
    assert!(matches!(absent, OpenError::NoDatabase { .. }), "{absent}");
    let nobody = open("postgres://duly:secret@127.0.0.1:1/duly".to_owned()).await;
    assert!(matches!(nobody, OpenError::Unreachable { .. }), "{nobody}");
    assert!(!nobody.to_string().contains("secret"), "{nobody}");
    let nonsense = open("postgres://duly@:x/".to_owned()).await;
    assert!(matches!(nonsense, OpenError::Address(_)), "{nonsense}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_schema_is_refused() {
    let Some(world) = World::new().await else { return };
    let (client, connection) = tokio_postgres::connect(&world.scratch.url(), NoTls).await.unwrap();
    let mut driver = tokio::task::JoinSet::new();
    driver.spawn(connection);
    client.batch_execute("INSERT INTO duly.migration (version) VALUES (999)").await.unwrap();
    let refused = PostgresStore::open(&world.scratch.url(), Rules::default()).await.err();
    assert!(matches!(refused, Some(OpenError::Newer(_))), "{refused:?}");
    assert_eq!(world.nodes[0].now().await.unwrap(), Timestamp::from_millis(1_900_000_000_000));
}
