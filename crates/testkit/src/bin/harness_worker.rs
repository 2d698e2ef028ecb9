//! A worker process of the harness: the protocol of any remote worker, and handlers that write
//! down what they do before anybody else can know of it.
//!
//! `harness_worker SERVER EFFECTS NAME CONCURRENCY`; it ends with its standard input.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use async_trait::async_trait;
use duly_client::wire::RegisterRequest;
use duly_client::{Client, RemoteSource};
use duly_core::id::TaskId;
use duly_core::lease::{Finish, Finished, Lease, Outcome};
use duly_core::ports::store::{ReportItem, Reported};
use duly_core::ports::work_source::{Closed, ReportFailed, TakenBack, UnstartedReply, WorkSource};
use duly_engine::random::OsRandom;
use duly_testkit::effects::{Effect, Ev, Kind};
use duly_testkit::history::file;
use duly_testkit::journal::Journal;
use duly_testkit::stalls::Watchman;
use duly_worker::handler::{Context, Handler, HandlerError, Output};
use duly_worker::{Config, Executor, Registry};
use serde::Deserialize;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [server, effects, name, concurrency, token @ ..] = &arguments[..] else {
        anyhow::bail!("usage: harness_worker SERVER EFFECTS NAME CONCURRENCY [TOKEN]");
    };
    let concurrency: usize = concurrency.parse().context("CONCURRENCY must be a number")?;
    let journal = Journal::open(Path::new(effects))?;
    let _watchman = Watchman::start(&Path::new(effects).with_file_name(file::NEMESIS), name)?;
    let log = Arc::new(Log { journal, worker: name.clone() });
    let registry = Registry::new()
        .with("work", Work(Arc::clone(&log)))
        .with("poison", Poison(Arc::clone(&log)));
    let worker = RegisterRequest {
        name: Some(name.clone()),
        types: registry.types().into_iter().map(String::from).collect(),
        queues: Vec::new(),
        capacity: None,
    };
    let random = Arc::new(OsRandom::new());
    let client = Client::new(server, token.first().map(String::as_str))?;
    let source = RemoteSource::connect(client, worker, random.clone()).await?;
    std::io::stdout().write_all(format!("{}\n", source.session()).as_bytes())?;
    let recording = Arc::new(Recording { source: Arc::clone(&source), log });
    let config = Config { concurrency, prefetch: concurrency };
    let executor = Executor::new(config, registry, recording, random);
    executor.run(end_of_input(), Duration::from_secs(10)).await;
    source.close().await;
    Ok(())
}

/// Cancelled when whoever started this process closes its standard input, or dies.
fn end_of_input() -> CancellationToken {
    let token = CancellationToken::new();
    let ended = token.clone();
    // A thread, since a read of standard input cannot be given up when the process ends.
    std::thread::spawn(move || {
        std::io::stdin().read_to_end(&mut Vec::new()).ok();
        ended.cancel();
    });
    token
}

struct Log {
    journal: Journal,
    worker: String,
}

impl Log {
    /// Writes an effect down; a worker that cannot must not go on.
    async fn write(self: &Arc<Self>, lease: &Lease, ev: Ev) {
        let effect = self.effect(lease.task, lease.epoch, ev);
        let effect = Effect { run: lease.run, attempt: lease.attempt, ..effect };
        let log = Arc::clone(self);
        let written = tokio::task::spawn_blocking(move || log.journal.write_through(effect)).await;
        written.expect("the writer runs").expect("the journal can be written");
    }

    fn effect(&self, task: TaskId, epoch: u32, ev: Ev) -> Effect {
        let (worker, pid) = (self.worker.clone(), std::process::id());
        Effect { worker, pid, task, epoch, run: 0, attempt: 0, ev, outcome: None }
    }
}

/// Takes its time and succeeds, or fails as often as it is told to.
struct Work(Arc<Log>);

#[derive(Deserialize)]
struct WorkPayload {
    #[serde(default)]
    ms: u64,
    #[serde(default)]
    failures: u32,
}

#[async_trait]
impl Handler for Work {
    async fn run(&self, context: Context) -> Result<Output, HandlerError> {
        let payload: WorkPayload = context.payload()?;
        // Counted from here, so that a pause between the two lines does not prolong it.
        let end = Instant::now() + Duration::from_millis(payload.ms);
        self.0.write(context.lease(), Ev::Start).await;
        tokio::time::sleep_until(end).await;
        self.0.write(context.lease(), Ev::End).await;
        if context.attempt() <= payload.failures {
            return Err(HandlerError::retry("TOLD_TO", "the payload says so"));
        }
        Ok(Output::none())
    }
}

/// Ends its worker.
struct Poison(Arc<Log>);

#[async_trait]
impl Handler for Poison {
    async fn run(&self, context: Context) -> Result<Output, HandlerError> {
        self.0.write(context.lease(), Ev::Start).await;
        std::process::abort();
    }
}

/// Writes down what became of outcomes.
struct Recording {
    source: Arc<RemoteSource>,
    log: Arc<Log>,
}

#[async_trait]
impl WorkSource for Recording {
    async fn claim(&self, max: usize) -> Result<Vec<Lease>, Closed> {
        self.source.claim(max).await
    }

    async fn taken_back(&self) -> Vec<TakenBack> {
        self.source.taken_back().await
    }

    async fn unstarted_request(&self) -> UnstartedReply {
        self.source.unstarted_request().await
    }

    async fn report(&self, batch: Vec<ReportItem>) -> Result<Vec<Reported>, ReportFailed> {
        self.source.report(batch).await
    }

    async fn finish(&self, batch: Vec<Finish>) -> Result<Vec<Finished>, Closed> {
        let sent = batch.iter().map(|it| (it.task, it.epoch, kind(&it.outcome)));
        let sent: Vec<_> = sent.collect();
        let answers = self.source.finish(batch).await;
        let known = answers.as_deref().unwrap_or_default();
        for (place, (task, epoch, outcome)) in sent.into_iter().enumerate() {
            let ev = match known.get(place) {
                Some(Finished::Done) => Ev::CommitOk,
                Some(Finished::LeaseLost | Finished::Unknown) => Ev::CommitRefused,
                None => Ev::CommitUnknown,
            };
            // A lease that is handed back is no execution that ended.
            if outcome.is_some() {
                let effect = Effect { outcome, ..self.log.effect(task, epoch, ev) };
                self.log.journal.write(effect).expect("the journal can be written");
            }
        }
        answers
    }
}

fn kind(outcome: &Outcome) -> Option<Kind> {
    match outcome {
        Outcome::Success { .. } => Some(Kind::Success),
        Outcome::Retry { .. } => Some(Kind::Retry),
        Outcome::Fail { .. } => Some(Kind::Fail),
        Outcome::Release => None,
    }
}
