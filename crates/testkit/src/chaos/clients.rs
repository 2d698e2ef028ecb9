//! Clients that submit without a pause, write down what they ask before they ask it, and repeat
//! what was not answered until it is. Some go away in the middle of a call, and some cancel.

mod start;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use duly_client::Error;
use duly_client::wire::{CancelRequest, SubmitRequest};
use duly_core::id::TaskId;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::start::Start;
use super::callee;
use super::doors::Doors;
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
    ops: AtomicU64,
    stop: CancellationToken,
}

impl Clients {
    pub(super) fn start(
        folder: &Path,
        scene: Scene,
        seed: u64,
        stop: CancellationToken,
    ) -> anyhow::Result<Self> {
        let mut running = JoinSet::new();
        let journal = Journal::open(&folder.join(file::CLIENT))?;
        let count = if scene.doors.count() > 1 { CLIENTS_OF_MANY } else { CLIENTS };
        let shared = Arc::new(Shared { scene, journal, ops: AtomicU64::new(0), stop });
        for proc in 0..count {
            let random = StdRng::seed_from_u64(seed ^ (u64::from(proc) << 32));
            let (shared, door) = (Arc::clone(&shared), usize::try_from(proc)?);
            running.spawn(Client { shared, proc, door, random, submitted: 0 }.run());
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
}

impl Client {
    async fn run(mut self) -> anyhow::Result<()> {
        while !self.shared.stop.is_cancelled() {
            self.submitted += 1;
            let key = format!("c{}-{}", self.proc, self.submitted);
            let start = Start::draw(&mut self.random);
            let task = self.task(&key, start)?;
            let submitted = self.submit(&key, &task, start).await?;
            if let Some(task) = submitted
                && self.happens(CANCELLED)
            {
                self.cancel(task).await?;
            }
            observe_for(Duration::from_millis(self.random.random_range(PACE))).await;
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
        let callee = self.shared.scene.callee.clone().filter(|_| self.happens(HTTP));
        let (kind, payload) = match callee {
            Some(url) => ("http", callee::payload(&url, ms, failures)),
            None => ("work", serde_json::json!({"ms": ms, "failures": failures})),
        };
        let mut task = SubmitRequest {
            payload: Some(serde_json::value::to_raw_value(&payload)?),
            idempotency_key: Some(key.to_owned()),
            ..SubmitRequest::new(kind)
        };
        task.labels.insert("key".to_owned(), key.to_owned());
        start.ask(&mut task);
        Ok(task)
    }

    /// Submits until there is an answer; none at the end of the run, if the server stays away.
    async fn submit(
        &mut self,
        key: &str,
        task: &SubmitRequest,
        start: Start,
    ) -> anyhow::Result<Option<TaskId>> {
        let mut last_tries = 0;
        loop {
            // Written before the request is: the time of the line is the send time.
            let call = start.note(self.call(Verb::Submit, Some(key.to_owned()), None));
            self.shared.journal.write(&call)?;
            let client = self.shared.scene.doors.door(self.door).clone();
            let answer = self.patiently(client.submit(task)).await;
            let (phase, http) = judge(answer.as_ref());
            self.door += usize::from(phase != Phase::Ok);
            let id = answer.and_then(Result::ok).map(|task| task.task_id);
            self.shared.journal.write(Call { phase, http, task: id, ..call })?;
            last_tries += u32::from(self.shared.stop.is_cancelled());
            if phase == Phase::Ok || last_tries > LAST_TRIES {
                return Ok(id);
            }
            anyhow::ensure!(phase != Phase::Fail, "a submit was refused with {http:?}");
            observe_for(AGAIN).await;
        }
    }

    /// Cancels once; whatever comes of it is written down.
    async fn cancel(&mut self, task: TaskId) -> anyhow::Result<()> {
        let call = self.call(Verb::Cancel, None, Some(task));
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

    fn call(&self, f: Verb, key: Option<String>, task: Option<TaskId>) -> Call {
        let op = self.shared.ops.fetch_add(1, Ordering::SeqCst) + 1;
        Call {
            proc: self.proc,
            op,
            phase: Phase::Invoke,
            f,
            key,
            task,
            run_at: None,
            delay_seconds: None,
            jitter_seconds: None,
            http: None,
        }
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
