//! Clients that submit tasks and workflows without a pause, write down what they ask before they ask
//! it, and repeat what was not answered until it is. Some go away in the middle of a call, and some
//! cancel.

mod dag;
mod start;
mod workflows;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use duly_client::Error;
use duly_client::wire::{CancelRequest, DependencyOn, DependencyView, SubmitRequest, TaskView};
use duly_core::id::TaskId;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::start::Start;
use self::workflows::Quota;
use super::doors::Doors;
use super::{Config, callee};
use crate::history::{Call, Phase, Verb, file};
use crate::journal::Journal;
use crate::wait::observe_for;

const CLIENTS: u32 = 12;
/// The same of many nodes, which share a database that is away more often.
const CLIENTS_OF_MANY: u32 = 32;
/// Tasks that take seconds, out of a thousand. Few: one that loses two workers is granted alone,
/// and keeps a whole worker busy.
const LONG: u32 = 1;
/// Tasks whose first attempt fails, out of a thousand.
const FAILING: u32 = 100;
/// Tasks that are cancelled after their submit, out of a thousand.
const CANCELLED: u32 = 50;
/// Tasks that the nodes run themselves where they do, out of a thousand.
const HTTP: u32 = 500;
/// Tasks that depend on others, out of a thousand.
const DEPENDENT: u32 = 300;
/// Tasks that a client remembers to depend on.
const REMEMBERED: usize = 8;
/// Calls that their client gives up on the way, out of a thousand.
const GIVEN_UP: u32 = 20;
/// Milliseconds between two tasks of a client: the workers keep up, also with one of them paused.
const PACE: std::ops::Range<u64> = 20..150;
/// How long a client waits for an answer before it asks another node.
const PATIENCE: Duration = Duration::from_secs(3);
/// Pause between two tries of a call that was not answered.
const AGAIN: Duration = Duration::from_millis(50);
/// A client asks again this often after the end of the run before it leaves an answer open.
const LAST_TRIES: u32 = 200;

/// The running clients.
pub(super) struct Clients {
    running: JoinSet<anyhow::Result<()>>,
}

/// What clients have in front of them.
#[derive(Clone, Debug)]
pub(super) struct Scene {
    /// Where they ask; when one does not answer, they go to the next.
    pub(super) doors: Doors,
    /// Where `http` tasks go, if the servers run some of the tasks themselves.
    pub(super) callee: Option<String>,
}

struct Shared {
    scene: Scene,
    journal: Journal,
    quota: Quota,
    ops: AtomicU64,
    stop: CancellationToken,
}

impl Clients {
    pub(super) fn start(
        config: &Config,
        scene: Scene,
        stop: CancellationToken,
    ) -> anyhow::Result<Self> {
        let mut running = JoinSet::new();
        let journal = Journal::open(&config.folder.join(file::CLIENT))?;
        let quota = Quota::new(config.workflows, config.duration);
        let count = if scene.doors.count() > 1 { CLIENTS_OF_MANY } else { CLIENTS };
        let shared = Arc::new(Shared { scene, journal, quota, ops: AtomicU64::new(0), stop });
        for proc in 0..count {
            let random = StdRng::seed_from_u64(config.seed ^ (u64::from(proc) << 32));
            let (shared, door) = (Arc::clone(&shared), usize::try_from(proc)?);
            let recent = VecDeque::new();
            running.spawn(Client { shared, proc, door, random, submitted: 0, recent }.run());
        }
        Ok(Self { running })
    }

    /// Waits until every call was answered or given up.
    pub(super) async fn ended(mut self) -> anyhow::Result<()> {
        while let Some(client) = self.running.join_next().await {
            client??;
        }
        Ok(())
    }
}

struct Client {
    shared: Arc<Shared>,
    proc: u32,
    /// Where it asks at the moment.
    door: usize,
    random: StdRng,
    submitted: u64,
    /// Its last tasks.
    recent: VecDeque<TaskId>,
}

impl Client {
    async fn run(mut self) -> anyhow::Result<()> {
        let slowdown = self.shared.quota.slowdown();
        while !self.shared.stop.is_cancelled() {
            self.submitted += 1;
            let key = format!("c{}-{}", self.proc, self.submitted);
            if self.shared.quota.take() {
                self.workflow(&key).await?;
            } else {
                self.single(&key).await?;
            }
            let pause = Duration::from_millis(self.random.random_range(PACE));
            observe_for(pause.mul_f64(slowdown)).await;
        }
        // What the faults left no time for, unless the server stays away.
        let mut is_answered = true;
        while is_answered && self.shared.quota.take() {
            self.submitted += 1;
            is_answered = self.workflow(&format!("c{}-{}", self.proc, self.submitted)).await?;
        }
        Ok(())
    }

    /// Submits a task, and may cancel it.
    async fn single(&mut self, key: &str) -> anyhow::Result<()> {
        let start = Start::draw(&mut self.random);
        let task = self.task(key, start)?;
        let submitted = self.submit(key, task, start).await?;
        self.recent.extend(submitted);
        if self.recent.len() > REMEMBERED {
            self.recent.pop_front();
        }
        if let Some(task) = submitted
            && self.happens(CANCELLED)
        {
            self.cancel(task).await?;
        }
        Ok(())
    }

    fn happens(&mut self, per_mille: u32) -> bool {
        self.random.random_range(0..1000) < per_mille
    }

    fn task(&mut self, key: &str, start: Start) -> anyhow::Result<SubmitRequest> {
        let ms = if self.happens(LONG) {
            self.random.random_range(2_500..4_000)
        } else {
            self.random.random_range(0..60)
        };
        let failures = u32::from(self.happens(FAILING));
        let mut task = self.work(ms, failures)?;
        task.idempotency_key = Some(key.to_owned());
        task.labels.insert("key".to_owned(), key.to_owned());
        if self.happens(DEPENDENT) {
            task.dependencies = self.dependencies();
        }
        start.ask(&mut task);
        Ok(task)
    }

    /// A task that takes so many milliseconds and fails so often, for a worker or for a node.
    fn work(&mut self, ms: u64, failures: u32) -> anyhow::Result<SubmitRequest> {
        let callee = self.shared.scene.callee.clone().filter(|_| self.happens(HTTP));
        let (kind, payload) = match callee {
            Some(url) => ("http", callee::payload(&url, ms, failures)),
            None => ("work", serde_json::json!({"ms": ms, "failures": failures})),
        };
        let payload = Some(serde_json::value::to_raw_value(&payload)?);
        Ok(SubmitRequest { payload, ..SubmitRequest::new(kind) })
    }

    /// Some of the last tasks, which may have ended, and how each must end.
    fn dependencies(&mut self) -> Vec<DependencyView> {
        let count = self.random.random_range(1..=3);
        let parents: BTreeSet<_> = (0..count.min(self.recent.len()))
            .map(|_| self.recent[self.random.random_range(0..self.recent.len())])
            .collect();
        let mut depend = |parent| {
            let on = dag::condition(&mut self.random);
            DependencyView::On(DependencyOn { task_id: parent, on })
        };
        parents.into_iter().map(&mut depend).collect()
    }

    async fn submit(
        &mut self,
        key: &str,
        task: SubmitRequest,
        start: Start,
    ) -> anyhow::Result<Option<TaskId>> {
        let call = start.note(Call { key: Some(key.to_owned()), ..self.call(Verb::Submit) });
        let ask = move |client: duly_client::Client| {
            let task = task.clone();
            async move { client.submit(&task).await }
        };
        let note = |call, answer: &TaskView| Call { task: Some(answer.task_id), ..call };
        Ok(self.repeat(call, ask, note).await?.map(|task| task.task_id))
    }

    /// Asks until there is an answer, which `note` adds to the line; none at the end of the run, if
    /// the server stays away.
    async fn repeat<T, F>(
        &mut self,
        mut call: Call,
        ask: impl Fn(duly_client::Client) -> F,
        note: impl Fn(Call, &T) -> Call,
    ) -> anyhow::Result<Option<T>>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let mut last_tries = 0;
        loop {
            // Written before the request is: the time of the line is the send time.
            self.shared.journal.write(&call)?;
            let client = self.shared.scene.doors.door(self.door).clone();
            let answer = self.patiently(ask(client)).await;
            let (phase, http) = judge(answer.as_ref());
            self.door += usize::from(phase != Phase::Ok);
            let answer = answer.and_then(Result::ok);
            // What was asked is in the line before.
            let line = Call { phase, http, members: BTreeMap::new(), ..call.clone() };
            let line = answer.iter().fold(line, &note);
            self.shared.journal.write(line)?;
            last_tries += u32::from(self.shared.stop.is_cancelled());
            if phase == Phase::Ok || last_tries > LAST_TRIES {
                return Ok(answer);
            }
            anyhow::ensure!(phase != Phase::Fail, "a submit was refused with {http:?}");
            observe_for(AGAIN).await;
            call.op = self.shared.next_op();
        }
    }

    /// Cancels once; whatever comes of it is written down.
    async fn cancel(&mut self, task: TaskId) -> anyhow::Result<()> {
        let call = Call { task: Some(task), ..self.call(Verb::Cancel) };
        self.shared.journal.write(&call)?;
        let order = CancelRequest { reason: Some("chaos".to_owned()) };
        let client = self.shared.scene.doors.door(self.door).clone();
        let answer = self.patiently(client.cancel_task(task, &order)).await;
        let (phase, http) = judge(answer.as_ref());
        self.shared.journal.write(Call { phase, http, ..call })?;
        Ok(())
    }

    /// The answer, unless the client gives up on the way.
    async fn patiently<T>(
        &mut self,
        call: impl Future<Output = Result<T, Error>>,
    ) -> Option<Result<T, Error>> {
        let patience = if self.happens(GIVEN_UP) {
            Duration::from_micros(self.random.random_range(0..3_000))
        } else {
            PATIENCE
        };
        tokio::time::timeout(patience, call).await.ok()
    }

    fn call(&self, f: Verb) -> Call {
        Call::invoke(self.proc, self.shared.next_op(), f)
    }
}

impl Shared {
    fn next_op(&self) -> u64 {
        self.ops.fetch_add(1, Ordering::SeqCst) + 1
    }
}

/// What an answer means. Only a refusal of the request itself is certain to have done nothing.
fn judge<T>(answer: Option<&Result<T, Error>>) -> (Phase, Option<u16>) {
    match answer {
        Some(Ok(_)) => (Phase::Ok, Some(200)),
        Some(Err(Error::Problem { problem, .. })) if (400..500).contains(&problem.status) => {
            (Phase::Fail, Some(problem.status))
        }
        Some(Err(Error::Problem { problem, .. })) => (Phase::Info, Some(problem.status)),
        Some(Err(_)) | None => (Phase::Info, None),
    }
}
