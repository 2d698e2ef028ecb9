//! Fills the file for the queries: a month of tasks in many lanes, most of them ended, some failed,
//! some still waiting; and tasks that are due next month.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use anyhow::ensure;
use duly_core::back_off::BackOff;
use duly_core::id::{SessionId, TaskId, WorkflowId};
use duly_core::lease::{Finish, Finished, Lease, Outcome};
use duly_core::limits::DEFAULT_PRIORITY;
use duly_core::name::{Lane, QueueName, TenantName, TypeName};
use duly_core::ports::clock::Clock;
use duly_core::ports::store::{
    CancelTasks, Claim, Ending, Exchange, Home, OpenSession, PutSettings, Store, Submit,
};
use duly_core::settings::{Retention, Settings};
use duly_core::task::{Failure, NewTask, Priority};
use duly_core::time::Timestamp;
use duly_store::clock::SystemClock;
use duly_store::limit::PAYLOAD;

use crate::commands::bench::BATCH;
use crate::commands::bench::progress::Progress;
use crate::wiring;

const MONTH: Duration = Duration::from_secs(30 * 24 * 60 * 60);
const QUEUES: [&str; 5] = ["default", "mail", "reports", "billing", "slow"];
const TYPES: [&str; 7] = ["email", "http", "render", "charge", "sync", "export", "clean"];
/// A type that no worker serves: its tasks wait.
pub(super) const UNSERVED: &str = "unserved";
/// Errors; the numbers differ from task to task.
const ERRORS: [(&str, &str); 6] = [
    ("CONNECTION", "connection to 10.0.0.# refused"),
    ("TIMEOUT", "no answer within # ms"),
    ("HTTP_STATUS", "the server answered 503 after # bytes"),
    ("SMTP_ERROR", "mailbox # is full"),
    ("BAD_DATA", "row # has no amount"),
    ("DECLINED", "card ending in # was declined"),
];

/// Fills a file: ten times `tasks` have ended, and twice as many wait. Returns samples without
/// workflows.
pub(super) async fn fill(
    folder: &Path,
    tasks: usize,
    progress: &Progress,
) -> anyhow::Result<Samples> {
    let clock = Arc::new(ManualClock::from(SystemClock::default().now().minus(MONTH)));
    let store: Arc<dyn Store> = wiring::open_file(folder, Arc::clone(&clock) as _)?;
    keep_all(&*store).await?;
    let mut filler = Filler::open(store, clock).await?;
    let (past, future) = (11 * tasks, tasks);
    filler.past(past, progress).await?;
    filler.future(past, future).await?;
    Ok(filler.samples)
}

/// Samples of the tasks.
#[derive(Default)]
pub(super) struct Samples {
    /// In any state.
    pub(super) any: Vec<TaskId>,
    /// Waiting for a worker.
    pub(super) waiting: Vec<TaskId>,
    /// Large workflows.
    pub(super) workflows: Vec<WorkflowId>,
}

impl Samples {
    /// The path of a request for the sample with this number.
    pub(super) fn fill_in(&self, path: &str, number: usize) -> String {
        fn one<T: ToString>(of: &[T], number: usize) -> String {
            of[number % of.len()].to_string()
        }
        path.replace("{id}", &one(&self.any, number))
            .replace("{waiting}", &one(&self.waiting, number))
            .replace("{workflow}", &one(&self.workflows, number))
            .replace("{first workflow}", &one(&self.workflows, 0))
    }
}

/// Turns retention off, so that no task is deleted.
async fn keep_all(store: &dyn Store) -> anyhow::Result<()> {
    let retention = Retention { success: None, failed: None, cancelled: None };
    let settings = Settings { retention, ..Settings::default() };
    let put = PutSettings { expected: 0, settings, comment: None };
    store.put_settings(put).await?;
    Ok(())
}

/// A clock that is moved by hand.
struct ManualClock(AtomicI64);

impl ManualClock {
    fn from(start: Timestamp) -> Self {
        Self(AtomicI64::new(start.millis()))
    }

    fn advance(&self, by: Duration) {
        let millis = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.0.fetch_add(millis, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed))
    }
}

/// The fate of the task with this number: of 110, ten wait, four are cancelled, and the rest run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Waits,
    IsCancelled,
    Runs,
}

impl Fate {
    fn of(number: usize) -> Self {
        match number % 110 {
            0..10 => Self::Waits,
            10..14 => Self::IsCancelled,
            _ => Self::Runs,
        }
    }
}

/// One of this many running tasks fails.
const FAILS: usize = 16;

struct Filler {
    store: Arc<dyn Store>,
    clock: Arc<ManualClock>,
    session: SessionId,
    sequence: u64,
    ended: usize,
    samples: Samples,
}

impl Filler {
    async fn open(store: Arc<dyn Store>, clock: Arc<ManualClock>) -> anyhow::Result<Self> {
        let session = SessionId::mint(clock.now(), 1);
        let opened = OpenSession {
            id: session,
            name: "fill".to_owned(),
            tenant: None,
            types: TYPES.map(|name| TypeName::new(name).expect("a name")).to_vec(),
            queues: Vec::new(),
            home: Home::Local,
            owner: None,
        };
        store.open_session(opened).await?;
        Ok(Self { store, clock, session, sequence: 0, ended: 0, samples: Samples::default() })
    }

    /// Submits, runs and ends tasks batch by batch over a month.
    async fn past(&mut self, count: usize, progress: &Progress) -> anyhow::Result<()> {
        let batches = count / BATCH;
        let step = MONTH / u32::try_from(batches)?;
        let mut leases = Vec::new();
        for batch in 0..batches {
            self.clock.advance(step);
            let first = batch * BATCH;
            let tasks: Vec<_> = (first..first + BATCH).map(|number| self.task(number)).collect();
            self.samples.any.push(tasks[batch % BATCH].id);
            let waits = tasks.iter().zip(first..).find(|(_, n)| Fate::of(*n) == Fate::Waits);
            self.samples.waiting.extend(waits.map(|(task, _)| task.id));
            let cancel =
                tasks.iter().zip(first..).filter(|(_, n)| Fate::of(*n) == Fate::IsCancelled);
            let cancel = cancel.map(|(task, _)| task.id).collect();
            let submit = Submit { tasks, offer: None };
            // Both in one commit: the previous leases end while the next tasks are stored.
            let store = Arc::clone(&self.store);
            let (submitted, next) = tokio::join!(store.submit(submit), self.exchange(leases));
            submitted?;
            leases = next?;
            self.cancel(cancel).await?;
            if batch % 100 == 99 || batch + 1 == batches {
                progress.detail(&format!("queries: {} of {count} tasks", first + BATCH));
            }
        }
        while !leases.is_empty() {
            leases = self.exchange(leases).await?;
        }
        self.store.end_session(self.session, Ending::Closed).await?;
        Ok(())
    }

    /// Submits tasks that are due over the next month.
    async fn future(&mut self, from: usize, count: usize) -> anyhow::Result<()> {
        let batches = count / BATCH;
        let step = MONTH / u32::try_from(batches)?;
        let mut due = self.clock.now();
        for first in (from..from + count).step_by(BATCH) {
            due = due.plus(step);
            let tasks = (first..first + BATCH).map(|number| NewTask {
                id: mint(due, number),
                run_at: due,
                ..self.task(number)
            });
            let submit = Submit { tasks: tasks.collect(), offer: None };
            self.store.submit(submit).await?;
        }
        Ok(())
    }

    /// Finishes the leases and claims the next ones.
    async fn exchange(&mut self, leases: Vec<Lease>) -> anyhow::Result<Vec<Lease>> {
        let finishes: Vec<_> = leases.iter().map(|lease| self.end(lease)).collect();
        self.sequence += 1;
        let (session, sequence) = (self.session, self.sequence);
        let claim = Some(Claim::new(session, sequence, BATCH));
        let answer = self.store.exchange(Exchange { session, finishes, claim }).await?;
        ensure!(answer.finished.iter().all(|it| *it == Finished::Done), "an outcome was refused");
        Ok(answer.leases)
    }

    fn end(&mut self, lease: &Lease) -> Finish {
        self.ended += 1;
        let outcome = if self.ended.is_multiple_of(FAILS) {
            let (code, text) = ERRORS[self.ended / FAILS % ERRORS.len()];
            let message = text.replace('#', &self.ended.to_string());
            Outcome::Fail { error: Failure::new(code, message) }
        } else {
            Outcome::Success { result: Some("{\"ok\":true}".into()) }
        };
        Finish::new(lease.task, lease.epoch, outcome)
    }

    async fn cancel(&self, tasks: Vec<TaskId>) -> anyhow::Result<()> {
        let (tenant, reason) = (TenantName::default_tenant(), "not needed".to_owned());
        self.store.cancel(CancelTasks { tenant, tasks, reason }).await?;
        Ok(())
    }

    fn task(&self, number: usize) -> NewTask {
        let now = self.clock.now();
        let (run_at, task_type) = match Fate::of(number) {
            Fate::Waits => (now, UNSERVED),
            // Not due before it is cancelled.
            Fate::IsCancelled => (now.plus(MONTH), TYPES[number % TYPES.len()]),
            Fate::Runs => (now, TYPES[number % TYPES.len()]),
        };
        let labels = [("customer", number % 5000), ("shard", number % 7)];
        NewTask {
            id: mint(now, number),
            lane: Lane {
                tenant: TenantName::default_tenant(),
                queue: QueueName::new(QUEUES[number / 7 % QUEUES.len()]).expect("a name"),
                task_type: TypeName::new(task_type).expect("a name"),
            },
            priority: Priority::new(DEFAULT_PRIORITY).expect("within the limit"),
            run_at,
            delay: None,
            retries: 0,
            back_off: BackOff::default(),
            timeout: None,
            labels: labels.map(|(key, n)| (key.to_owned(), n.to_string())).into(),
            payload: PAYLOAD.into(),
            idempotency: None,
            links: None,
        }
    }
}

fn mint(due: Timestamp, number: usize) -> TaskId {
    let ordinal = u32::try_from(number).expect("a benchmark is smaller");
    TaskId::mint(due, ordinal, number as u64)
}
