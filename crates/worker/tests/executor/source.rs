//! A work source in memory, and a worker that uses it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use duly_core::id::TaskId;
use duly_core::lease::{Finish, Finished, Lease, Outcome};
use duly_core::name::{Lane, QueueName, TenantName, TypeName};
use duly_core::ports::random::Random;
use duly_core::ports::store::{ReportItem, Reported};
use duly_core::ports::work_source::{Closed, ReportFailed, TakenBack, UnstartedReply, WorkSource};
use duly_core::time::Timestamp;
use duly_worker::{Concurrency, Config, Executor, ExecutorReport, Registry};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What the source has seen.
#[derive(Clone, Default)]
pub(crate) struct Seen {
    pub(crate) queue: VecDeque<Lease>,
    /// The limit of every claim.
    pub(crate) asked: Vec<usize>,
    /// Claims that wait now.
    pub(crate) pending: usize,
    /// How many leases were given out.
    pub(crate) granted: usize,
    /// The calls of `finish`, when they were made.
    pub(crate) batches: Vec<Vec<Finish>>,
    /// How many of them were answered.
    pub(crate) answered: usize,
    /// Calls of `finish` are not answered.
    pub(crate) hanging: bool,
    /// Outcomes are answered with this.
    pub(crate) answer: Option<Finished>,
    pub(crate) closed: bool,
    /// The calls of `report`, and when they were made.
    pub(crate) reports: Vec<(Instant, Vec<ReportItem>)>,
    /// Reports are answered with this; with `None`, they fail.
    pub(crate) reported: Option<Reported>,
    /// Reports are not answered.
    pub(crate) reports_hang: bool,
    /// Another worker is ready to run tasks that this one cannot start.
    pub(crate) wanted: bool,
    /// Leases that are gone and that the worker was not told about.
    pub(crate) taken_back: Vec<TakenBack>,
    /// The source asks which leases have not started.
    pub(crate) unstarted_request: bool,
    /// The worker's answers.
    pub(crate) unstarted: Option<Vec<TaskId>>,
}

impl Seen {
    pub(crate) fn finishes(&self) -> impl Iterator<Item = &Finish> {
        self.batches.iter().flatten()
    }
}

pub(crate) struct Source(Arc<watch::Sender<Seen>>);

impl Source {
    pub(crate) fn change(&self, change: impl FnOnce(&mut Seen)) {
        self.0.send_modify(change);
    }

    pub(crate) fn seen(&self) -> Seen {
        self.0.borrow().clone()
    }

    pub(crate) fn submit(&self, leases: impl IntoIterator<Item = Lease>) {
        self.change(|seen| seen.queue.extend(leases));
    }

    /// Waits until the condition holds.
    pub(crate) async fn until(&self, condition: impl FnMut(&Seen) -> bool) {
        let mut seen = self.0.subscribe();
        // Paused time runs out at once when nothing else happens.
        let waited = tokio::time::timeout(Duration::from_secs(100_000), seen.wait_for(condition));
        drop(waited.await.expect("it never came to pass").unwrap());
    }

    /// The worker's answer to which leases have not started.
    pub(crate) async fn call_roll(&self) -> Vec<TaskId> {
        self.change(|seen| (seen.unstarted_request, seen.unstarted) = (true, None));
        self.until(|seen| seen.unstarted.is_some()).await;
        self.seen().unstarted.unwrap()
    }

    /// Waits for this many outcomes.
    pub(crate) async fn finished(&self, count: usize) -> Vec<Finish> {
        self.until(|seen| seen.finishes().count() >= count).await;
        self.seen().finishes().cloned().collect()
    }
}

/// Counts a pending claim until it is answered or dropped.
struct Pending<'a>(&'a Source);

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.0.change(|seen| seen.pending -= 1);
    }
}

#[async_trait]
impl WorkSource for Source {
    async fn claim(&self, max: usize) -> Result<Vec<Lease>, Closed> {
        self.change(|seen| {
            seen.asked.push(max);
            seen.pending += 1;
        });
        let _pending = Pending(self);
        let ready = |seen: &Seen| seen.closed || !seen.queue.is_empty();
        drop(self.0.subscribe().wait_for(|seen| ready(seen)).await.unwrap());
        let mut leases = Vec::new();
        self.change(|seen| {
            let count = max.min(seen.queue.len());
            leases.extend(seen.queue.drain(..count));
            seen.granted += count;
        });
        if leases.is_empty() { Err(Closed) } else { Ok(leases) }
    }

    fn is_wanted(&self, _lane: &Lane) -> bool {
        self.seen().wanted
    }

    async fn taken_back(&self) -> Vec<TakenBack> {
        drop(self.0.subscribe().wait_for(|seen| !seen.taken_back.is_empty()).await.unwrap());
        let mut leases = Vec::new();
        self.change(|seen| leases = std::mem::take(&mut seen.taken_back));
        leases
    }

    async fn unstarted_request(&self) -> UnstartedReply {
        drop(self.0.subscribe().wait_for(|seen| seen.unstarted_request).await.unwrap());
        self.change(|seen| seen.unstarted_request = false);
        let seen = Arc::clone(&self.0);
        Box::new(move |tasks| seen.send_modify(|seen| seen.unstarted = Some(tasks)))
    }

    async fn report(&self, batch: Vec<ReportItem>) -> Result<Vec<Reported>, ReportFailed> {
        let count = batch.len();
        self.change(|seen| seen.reports.push((Instant::now(), batch)));
        drop(self.0.subscribe().wait_for(|seen| !seen.reports_hang).await.unwrap());
        self.seen().reported.map(|answer| vec![answer; count]).ok_or(ReportFailed)
    }

    async fn finish(&self, batch: Vec<Finish>) -> Result<Vec<Finished>, Closed> {
        let count = batch.len();
        self.change(|seen| seen.batches.push(batch));
        let ready = |seen: &Seen| seen.closed || !seen.hanging;
        drop(self.0.subscribe().wait_for(|seen| ready(seen)).await.unwrap());
        self.change(|seen| seen.answered += 1);
        let seen = self.seen();
        if seen.closed {
            Err(Closed)
        } else {
            Ok(vec![seen.answer.unwrap_or(Finished::Done); count])
        }
    }
}

/// Counts up, so that every draw differs.
struct Counting(Mutex<u64>);

impl Random for Counting {
    fn fill(&self, numbers: &mut [u64]) {
        let mut last = self.0.lock().unwrap();
        for number in numbers {
            *last += 1;
            *number = *last;
        }
    }
}

/// A running worker.
pub(crate) struct Rig {
    pub(crate) source: Arc<Source>,
    pub(crate) shutdown: CancellationToken,
    pub(crate) concurrency: Concurrency,
    pub(crate) worker: JoinSet<ExecutorReport>,
}

impl Rig {
    pub(crate) fn start(concurrency: usize, prefetch: usize, registry: Registry) -> Self {
        Self::with_grace(concurrency, prefetch, registry, Duration::from_secs(30))
    }

    pub(crate) fn with_grace(
        concurrency: usize,
        prefetch: usize,
        registry: Registry,
        grace: Duration,
    ) -> Self {
        Self::prepare(Config { concurrency, prefetch }, registry, grace, |_| {})
    }

    /// A worker without prefetch, and a step before it starts.
    pub(crate) fn start_with(
        concurrency: usize,
        registry: Registry,
        before: impl FnOnce(&Concurrency),
    ) -> Self {
        let config = Config { concurrency, prefetch: 0 };
        Self::prepare(config, registry, Duration::from_secs(30), before)
    }

    fn prepare(
        config: Config,
        registry: Registry,
        grace: Duration,
        before: impl FnOnce(&Concurrency),
    ) -> Self {
        let source = Arc::new(Source(Arc::new(watch::Sender::new(Seen::default()))));
        let random = Arc::new(Counting(Mutex::new(0)));
        let work_source: Arc<dyn WorkSource> = source.clone();
        let executor = Executor::new(config, registry, work_source, random);
        let concurrency = executor.concurrency();
        before(&concurrency);
        let shutdown = CancellationToken::new();
        let mut worker = JoinSet::new();
        worker.spawn(executor.run(shutdown.clone(), grace));
        Self { source, shutdown, concurrency, worker }
    }

    /// Runs short tasks, as many as may be prefetched, so that the worker prefetches. Clears what
    /// the source has seen so far.
    pub(crate) async fn warmed_up(self, prefetch: u32) -> Self {
        self.source.submit((0..prefetch).map(|n| echo(WARM_UP + n)));
        self.source.finished(usize::try_from(prefetch).unwrap()).await;
        rest().await;
        self.source.change(|seen| {
            let Seen { asked, pending, .. } = std::mem::take(seen);
            let asked = asked.last().copied().into_iter().collect();
            *seen = Seen { asked, pending, ..Seen::default() };
        });
        self
    }

    /// Waits until the worker has ended.
    pub(crate) async fn report(&mut self) -> ExecutorReport {
        self.worker.join_next().await.unwrap().unwrap()
    }

    pub(crate) async fn stop(mut self) -> ExecutorReport {
        self.shutdown.cancel();
        self.report().await
    }
}

/// Returns when everything is idle: paused time advances only then.
pub(crate) async fn rest() {
    let moment = Duration::from_millis(1);
    let _ = tokio::time::timeout(moment, std::future::pending::<()>()).await;
}

/// The first number of the tasks that only warm a worker up.
const WARM_UP: u32 = 1_000_000;

pub(crate) fn id(number: u32) -> TaskId {
    TaskId::mint(Timestamp::from_millis(1_900_000_000_000), number, 0)
}

pub(crate) fn lease(number: u32, task_type: &str, payload: &str) -> Lease {
    let now = Timestamp::from_millis(1_900_000_000_000);
    Lease {
        task: id(number),
        epoch: 1,
        run: 1,
        attempt: 1,
        retries: 3,
        lane: Lane {
            tenant: TenantName::default_tenant(),
            queue: QueueName::default_queue(),
            task_type: TypeName::new(task_type).unwrap(),
        },
        timeout: None,
        granted_at: now,
        run_at: now,
        payload: payload.into(),
        has_parents: false,
        has_children: false,
        renders: false,
        parents: None,
    }
}

pub(crate) fn echo(number: u32) -> Lease {
    lease(number, "echo", "1")
}

pub(crate) fn sleep(number: u32, seconds: u32) -> Lease {
    lease(number, "sleep", &format!("{{\"seconds\":{seconds}}}"))
}

/// The outcome of the task, which must have exactly one.
pub(crate) fn outcome(finishes: &[Finish], number: u32) -> Outcome {
    let mut of_task = finishes.iter().filter(|finish| finish.task == id(number));
    let first = of_task.next().expect("the task ended").outcome.clone();
    assert!(of_task.next().is_none(), "the task ended twice");
    first
}
