//! Two nodes, and what tests do with them.

use std::sync::Arc;
use std::time::Duration;

use duly_core::back_off::BackOff;
use duly_core::id::{SessionId, TaskId};
use duly_core::lease::{Finish, Finished, Lease, Outcome};
use duly_core::name::{Lane, QueueName, TenantName, TypeName};
use duly_core::ports::clock::Clock as _;
use duly_core::ports::store::{
    Claim, Cutoffs, Exchange, Expiry as _, Home, Leases as _, OpenSession, Rules, Sessions as _,
    StoreHealth as _, Submit, Submitted, Sweep, Tasks as _,
};
use duly_core::state::Status;
use duly_core::task::{NewTask, Priority};
use duly_core::time::Timestamp;
use duly_store::clock::ManualClock;
use duly_store::conformance::Harness;
use duly_store::postgres::PostgresStore;
use duly_store::postgres::scratch::{self, Scratch};

/// Two nodes on one database.
pub(crate) struct World {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) nodes: [PostgresStore; 2],
    pub(crate) scratch: Scratch,
}

impl World {
    /// Two nodes on an empty database; nothing if there is no server to test on.
    pub(crate) async fn new() -> Option<Self> {
        Self::with_settings(&[]).await
    }

    /// The same with settings for the nodes' connections.
    pub(crate) async fn with_settings(settings: &[(&str, &str)]) -> Option<Self> {
        let clock = Arc::new(Harness::clock());
        let scratch = Scratch::new(&scratch::server()?, clock.clone()).await;
        // It ends with what is set for its connections.
        let mut url = scratch.url();
        for (name, value) in settings {
            url.push_str(&format!("%20-c%20{name}%3D{value}"));
        }
        let open = || PostgresStore::open_at(&url, Rules::default(), clock.clone());
        let nodes = [open().await.unwrap(), open().await.unwrap()];
        Some(Self { clock, nodes, scratch })
    }

    /// Another node, which this user runs.
    pub(crate) async fn open_as(&self, user: &str) -> PostgresStore {
        let url = self.scratch.url();
        let place = url.rsplit_once('@').unwrap().1;
        let url = format!("postgres://{user}@{place}");
        PostgresStore::open_at(&url, Rules::default(), self.clock.clone()).await.unwrap()
    }

    pub(crate) fn task(&self, number: u32, delay: Duration) -> NewTask {
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
            delay: None,
            retries: 3,
            back_off: BackOff::default(),
            timeout: None,
            labels: std::collections::BTreeMap::new(),
            payload: Arc::from("{}"),
            idempotency: None,
            links: None,
        }
    }

    pub(crate) async fn submit(&self, node: usize, tasks: Vec<NewTask>) -> Vec<Submitted> {
        self.nodes[node].submit(Submit { tasks, offer: None }).await.unwrap()
    }

    pub(crate) async fn open(&self, node: usize, number: u64, home: Home) -> SessionId {
        let id = SessionId::mint(self.clock.now(), number);
        let types = vec![TypeName::new("email").unwrap()];
        let name = format!("worker-{number}");
        let session =
            OpenSession { id, name, tenant: None, types, queues: vec![], home, owner: None };
        self.nodes[node].open_session(session).await.unwrap();
        id
    }

    pub(crate) async fn claim(&self, node: usize, session: SessionId, sequence: u64) -> Vec<Lease> {
        let claim = Some(Claim::new(session, sequence, 10));
        let exchange = Exchange { session, finishes: vec![], claim };
        self.nodes[node].exchange(exchange).await.unwrap().leases
    }

    /// A session gets what is due and ends it well.
    pub(crate) async fn succeed(&self, node: usize, session: SessionId, sequence: u64) {
        let finishes = success(&self.claim(node, session, sequence).await);
        let ended = vec![Finished::Done; finishes.len()];
        let exchange = Exchange { session, finishes, claim: None };
        assert_eq!(self.nodes[node].exchange(exchange).await.unwrap().finished, ended);
    }

    /// Sweeps all successes.
    pub(crate) async fn sweep(&self, node: usize) {
        let cutoffs = Cutoffs { success: Some(self.clock.now()), ..Cutoffs::default() };
        let mut sweep = Sweep { cutoffs, ..Sweep::default() };
        loop {
            sweep.after = self.nodes[node].sweep(sweep.clone()).await.unwrap().next;
            if sweep.after.is_none() {
                return;
            }
        }
    }

    /// Whether tasks of this day have a partition.
    pub(crate) async fn has_day(&self, at: Timestamp) -> bool {
        let (client, _driver) = self.scratch.connect().await;
        let day = "SELECT to_regclass('duly.task_' || to_char(
            to_timestamp($1::bigint / 1000) AT TIME ZONE 'UTC', 'YYYYMMDD')) IS NOT NULL";
        client.query_one(day, &[&at.millis()]).await.unwrap().get(0)
    }

    pub(crate) async fn status(&self, id: TaskId) -> Status {
        let task = self.nodes[0].get(&TenantName::default_tenant(), id).await.unwrap();
        task.unwrap().status
    }

    /// Waits until a node has received a notification; another node sends them again and again, since
    /// some may get lost while nodes come up.
    pub(crate) async fn await_notification(&self, sender: usize, listener: usize) {
        for number in 1.. {
            assert!(number < 100, "no notification arrives");
            self.submit(sender, vec![self.task(number, Duration::ZERO)]).await;
            let hint =
                tokio::time::timeout(Duration::from_millis(200), self.nodes[listener].hint());
            if hint.await.is_ok() {
                return;
            }
        }
    }
}

/// Ends all of these well.
pub(crate) fn success(leases: &[Lease]) -> Vec<Finish> {
    let outcome = Outcome::Success { result: Some("1".into()) };
    leases.iter().map(|lease| Finish::new(lease.task, lease.epoch, outcome.clone())).collect()
}
