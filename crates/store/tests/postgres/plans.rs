//! How the hot calls are carried out where the task table has many days: every statement of theirs,
//! also those inside of functions, looks into two days at the most and goes by an index.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use duly_core::event::{Event, Kinds, SinkName, Subscription};
use duly_core::id::{SessionId, TaskId};
use duly_core::lease::{Finish, Finished, Lease, Outcome};
use duly_core::name::{QueueName, TenantName};
use duly_core::ports::clock::Clock as _;
use duly_core::ports::store::{
    CancelTasks, Claim, Control as _, Events, Exchange, Extend, ExtendLeases, Heartbeat, Home,
    Leases as _, Outbox as _, PutSink, ReadEvents, Reap, Replay, ReplayTasks, Sessions as _,
    Submit, Submitted, Tasks as _,
};
use duly_core::task::{Failure, NewTask};
use parking_lot::Mutex;
use tokio_postgres::Client;

use crate::world::{World, success};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const DAYS: u32 = 40;
/// The server sends the plan of each statement to the connection that runs it.
const SETTINGS: &[(&str, &str)] = &[
    ("session_preload_libraries", "auto_explain"),
    ("auto_explain.log_min_duration", "0"),
    ("auto_explain.log_nested_statements", "on"),
    ("auto_explain.log_analyze", "on"),
    ("auto_explain.log_timing", "off"),
    ("auto_explain.log_level", "notice"),
    ("client_min_messages", "notice"),
];
/// Tables that grow with the tasks. Meanwhile a node may look around, also into catalogues.
const LARGE: [&str; 10] = [
    "task",
    "due",
    "grant_log",
    "attempt",
    "dlq",
    "idempotency",
    "outbox_0",
    "outbox_1",
    "outbox_2",
    "outbox_3",
];
/// Rows that a statement about a few events may come across.
const FEW_EVENTS: u64 = 500;
/// What makes a day and the due table large, long after the first statements were planned.
const FILL: &str = "
    INSERT INTO duly.task (id, run_at, created_at, finished_at, epoch, lane, run, charged, retries,
                           losses, status, rank, payload)
    SELECT (lpad(to_hex(duly.now() - n % 1000), 12, '0') || lpad(to_hex(16 * n + lane.id), 20, '0'))::uuid,
           duly.now(), duly.now(), duly.now(), 1, lane.id, 1, 1, 3, 0, 3, 4, '{}'
    FROM generate_series(1, 50000) n, duly.lane;
    INSERT INTO duly.due (lane, rank, run_at, task)
    SELECT lane.id, 4, duly.now() + 30 * 86400000::bigint + n, gen_random_uuid()
    FROM generate_series(1, 50000) n, duly.lane;
    INSERT INTO duly.outbox (at, segment, others) SELECT duly.now(), n % 4, NULL
    FROM generate_series(1, 50000) n;
    ANALYZE duly.task, duly.due, duly.outbox";

/// What the driver logs of the server's notices.
struct Notices(Mutex<Vec<String>>);

static NOTICES: Notices = Notices(Mutex::new(Vec::new()));

impl log::Log for Notices {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let text = record.args().to_string();
        if text.contains("Query Text:") {
            self.0.lock().push(text);
        }
    }

    fn flush(&self) {}
}

/// A node whose statements are watched, and how many tasks it was given.
struct Watched {
    world: World,
    session: SessionId,
    tasks: AtomicU32,
    claims: AtomicU64,
    /// By call: the most days that one of its statements looked into.
    days: Mutex<BTreeMap<&'static str, usize>>,
}

impl Watched {
    async fn new() -> Option<Self> {
        let world = World::with_settings(SETTINGS).await?;
        let _ = log::set_logger(&NOTICES);
        log::set_max_level(log::LevelFilter::Info);
        let session = world.open(0, 1, Home::Remote).await;
        let (tasks, claims, days) = (AtomicU32::new(0), AtomicU64::new(0), Mutex::default());
        Some(Self { world, session, tasks, claims, days })
    }

    /// New tasks, the first of which is due now, and each next one so much later.
    fn tasks(&self, count: u32, every: Duration) -> Vec<NewTask> {
        let first = self.tasks.fetch_add(count, Ordering::Relaxed);
        (0..count).map(|number| self.world.task(first + number, every * number)).collect()
    }

    fn claim(&self, max: usize) -> Option<Claim> {
        let sequence = self.claims.fetch_add(1, Ordering::Relaxed) + 1;
        Some(Claim::new(self.session, sequence, max))
    }

    /// Makes a call and judges its statements.
    async fn see<T>(&self, call: &'static str, future: impl Future<Output = T>) -> T {
        NOTICES.0.lock().clear();
        let answer = future.await;
        for plan in NOTICES.0.lock().drain(..) {
            let days = judge(call, &plan);
            if call == "events" {
                assert!(widest(&plan) < FEW_EVENTS, "{call} reads many rows: {}", short(&plan));
            }
            let mut by_call = self.days.lock();
            let most = by_call.entry(call).or_default();
            *most = days.max(*most);
        }
        answer
    }

    async fn submit(&self) {
        let tasks = self.tasks(40, Duration::ZERO);
        let submit = self.world.nodes[0].submit(Submit { tasks, offer: None });
        let stored = self.see("submit", submit).await.unwrap();
        assert!(stored.iter().all(|it| matches!(it, Submitted::Stored { .. })), "{stored:?}");
    }

    /// A task in a lane of its own is granted as it is stored, and ends.
    async fn hand_off(&self) {
        let mut tasks = self.tasks(1, Duration::ZERO);
        tasks[0].lane.queue = QueueName::new("drained").unwrap();
        let (id, offer) = (tasks[0].id, self.claim(1));
        let submit = self.world.nodes[0].submit(Submit { tasks, offer });
        let stored = self.see("hand-off", submit).await.unwrap();
        assert!(matches!(stored[..], [Submitted::HandedOff { epoch: 1, .. }]), "{stored:?}");
        let success = Outcome::Success { result: None };
        self.exchange("finish", vec![Finish::new(id, 1, success)], None).await;
    }

    /// Lets everything end that is due.
    async fn drain(&self) {
        self.world.clock.advance(Duration::from_secs(60 * 60));
        let mut ended = Vec::new();
        loop {
            let exchange =
                Exchange { session: self.session, finishes: ended, claim: self.claim(100) };
            let leases = self.world.nodes[0].exchange(exchange).await.unwrap().leases;
            if leases.is_empty() {
                return;
            }
            ended = success(&leases);
        }
    }

    async fn exchange(
        &self,
        call: &'static str,
        finishes: Vec<Finish>,
        claim: Option<Claim>,
    ) -> Vec<Lease> {
        let node = &self.world.nodes[0];
        let exchange = Exchange { session: self.session, finishes, claim };
        let exchanged = self.see(call, node.exchange(exchange)).await.unwrap();
        assert!(exchanged.finished.iter().all(|it| *it == Finished::Done), "{call}: {exchanged:?}");
        exchanged.leases
    }
}

/// How many days a statement has looked into, and that it went by an index.
fn judge(call: &str, plan: &str) -> usize {
    let is_scan = |line: &&str| line.contains("Scan") && !line.contains("never executed");
    let scans: Vec<_> = plan.lines().filter(is_scan).collect();
    let is_whole = |scan: &&str| {
        let table = scan.split_once("Seq Scan on ").map(|(_, table)| table);
        table.is_some_and(|table| LARGE.iter().any(|large| table.starts_with(large)))
    };
    assert!(!scans.iter().any(is_whole), "{call} reads a whole table: {}", short(plan));
    // A table and its index have the day in common.
    let day = |scan: &&str| scan.split_once(" on task_").map(|(_, rest)| rest[..8].to_owned());
    let days: BTreeSet<_> = scans.iter().filter_map(day).collect();
    assert!(days.len() <= 2, "{call} looks into {days:?}: {}", short(plan));
    days.len()
}

/// The most rows that a part of a statement has come across.
fn widest(plan: &str) -> u64 {
    let after = |line: &str, word: &str| {
        let digits = line.split_once(word)?.1.split(|it: char| !it.is_ascii_digit()).next()?;
        digits.parse().ok()
    };
    let words = ["actual rows=", "Rows Removed by Filter: ", "Rows Removed by Index Recheck: "];
    let found = |line| words.iter().filter_map(move |word| after(line, word));
    plan.lines().flat_map(found).max().unwrap_or_default()
}

/// Without the ends of long lines, which are lists of ids.
fn short(plan: &str) -> String {
    plan.lines().map(|line| format!("{}\n", &line[..line.floor_char_boundary(160)])).collect()
}

/// Failures of each kind, in turn.
fn failures(leases: &[Lease]) -> Vec<Finish> {
    let failed = || Failure::new("E", "no");
    let outcome = |number: usize| match number % 3 {
        0 => Outcome::Retry { error: failed(), entropy: 1, after: None },
        1 => Outcome::Fail { error: failed() },
        _ => Outcome::Release,
    };
    let finish = |(number, it): (usize, &Lease)| Finish::new(it.task, it.epoch, outcome(number));
    leases.iter().enumerate().map(finish).collect()
}

/// Everything that is done to tasks all the time, with tasks of yesterday and of today.
async fn every_call(it: &Watched) {
    it.hand_off().await;
    it.submit().await;
    it.world.clock.advance(DAY);
    it.submit().await;
    let claim = it.claim(60);
    let mut leases = it.exchange("claim", vec![], claim.clone()).await;
    assert_eq!(leases.len(), 60, "both days");
    assert_eq!(it.exchange("repeated claim", vec![], claim.clone()).await.len(), 60);
    let (node, session) = (&it.world.nodes[0], it.session);
    let extend = |it: &Lease| Extend { task: it.task, epoch: it.epoch, by: DAY };
    let order = ExtendLeases { session, leases: leases[35..45].iter().map(extend).collect() };
    it.see("extend", node.extend(order)).await.unwrap();
    let beat = Heartbeat {
        session,
        received: vec![claim.unwrap().sequence],
        unstarted: vec![leases[0].task],
    };
    assert!(it.see("beat", node.beat(beat)).await.unwrap());
    let (ended, rest) = (success(&leases[30..50]), [&leases[..30], &leases[50..]].concat());
    let claim = it.claim(20);
    leases = it.exchange("large exchange", ended.clone(), claim).await;
    it.exchange("repeated finish", ended, None).await;
    let claim = it.claim(1);
    it.exchange("small exchange", success(&leases[..5]), claim).await;
    it.exchange("failures", failures(&rest[25..35]), None).await;
    let of_both = [&rest[20..25], &rest[35..]].concat();
    let ids: Vec<TaskId> = of_both.iter().map(|lease| lease.task).collect();
    let tenant = TenantName::default_tenant();
    it.see("get", node.get(&tenant, ids[0])).await.unwrap();
    let reason = "over".to_owned();
    let order = CancelTasks { tenant: tenant.clone(), tasks: ids.clone(), reason };
    it.see("cancel", node.cancel(order)).await.unwrap();
    let replay = |task: &TaskId| Replay { task: *task, run: 1, run_at: None };
    let order = ReplayTasks { tenant, tasks: ids.iter().map(replay).collect(), payload: None };
    it.see("replay", node.replay(order)).await.unwrap();
    let reap = Reap { unacknowledged_before: it.world.clock.now(), entropy: 1 };
    it.see("reap", node.reap(reap)).await.unwrap();
    it.world.clock.advance(DAY / 2);
    let reap = Reap { unacknowledged_before: it.world.clock.now(), entropy: 1 };
    it.see("reap", node.reap(reap)).await.unwrap();
}

impl Watched {
    async fn subscribe(&self, name: &str) -> SinkName {
        let name = SinkName::new(name).unwrap();
        let subscriptions = vec![Subscription::to(Kinds::ALL)];
        let put = PutSink { name: name.clone(), subscriptions, window: None };
        self.world.nodes[0].put_sink(put).await.unwrap();
        name
    }

    /// Reads from the place of the sink to the end, and looks at the sinks.
    async fn read(&self, sink: &SinkName) -> Vec<Event> {
        let (mut after, mut all) = (None, Vec::new());
        loop {
            let read = ReadEvents { sink: sink.clone(), after, rows: 3 };
            let found = self.see("events", self.world.nodes[0].events(read)).await.unwrap();
            let Events::Page(page) = found else { panic!("{found:?}") };
            all.extend(page.events.into_iter().map(|it| it.event));
            if !page.more {
                return all;
            }
            after = Some(page.next);
        }
    }
}

/// A sink is told of little among many events: of a transaction from long before, and of new ones.
async fn few_of_many_events(it: &Watched, long: &Client) {
    let sink = it.subscribe("late").await;
    long.batch_execute("COMMIT").await.unwrap();
    for _ in 0..4 {
        let tasks = it.tasks(1, Duration::ZERO);
        it.world.nodes[0].submit(Submit { tasks, offer: None }).await.unwrap();
    }
    let events = it.read(&sink).await;
    assert_eq!(events.len(), 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hot_statements_look_into_two_days_of_forty_at_the_most() {
    let Some(it) = Watched::new().await else { return };
    it.world.submit(0, it.tasks(DAYS, DAY)).await;
    let (client, _driver) = it.world.scratch.connect().await;
    let count = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'duly.task'::regclass";
    let days: i64 = client.query_one(count, &[]).await.unwrap().get(0);
    assert!(days >= i64::from(DAYS), "{days} days");
    it.subscribe("early").await;
    every_call(&it).await;
    it.drain().await;
    let (long, _long_driver) = it.world.scratch.connect().await;
    let begin = format!("SET duly.now_ms = {}; BEGIN", it.world.clock.now().millis());
    long.batch_execute(&begin).await.unwrap();
    long.batch_execute("SELECT duly.submit('email', '{}')").await.unwrap();
    let now = it.world.clock.now().millis();
    client.batch_execute(&format!("SET duly.now_ms = {now}; {FILL}")).await.unwrap();
    every_call(&it).await;
    few_of_many_events(&it, &long).await;
    let seen = it.days.lock();
    for call in ["claim", "repeated claim", "large exchange", "cancel", "replay", "reap"] {
        assert_eq!(seen.get(call), Some(&2), "{call} is seen on both days: {seen:?}");
    }
    assert_eq!(seen.get("submit"), Some(&0), "a submit looks nowhere: {seen:?}");
}
