//! `duly worker run`: a remote worker with the built-in handlers.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use duly_client::RemoteSource;
use duly_worker::ExecutorReport;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::args::WorkerRunArgs;
use crate::exit::Ending;
use crate::output;
use crate::signals::Signals;
use crate::wiring::{RemoteWorker, default_name};

/// The first and the longest wait for a server that is away at the start.
const WAITS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

pub(super) async fn run(args: &WorkerRunArgs) -> anyhow::Result<Ending> {
    let mut signals = Signals::new().context("cannot listen for signals")?;
    let name = args.name.clone().unwrap_or_else(default_name);
    let worker = RemoteWorker::new(args, &name)?;
    let source = tokio::select! {
        source = connect(&worker) => source?,
        () = signals.next() => {
            output::say("stopped before the server could be reached");
            return Ok(Ending::Ok);
        }
    };
    print_banner(&worker, &source);
    let stop = CancellationToken::new();
    let mut executor = JoinSet::new();
    executor.spawn(worker.executor(Arc::clone(&source)).run(stop.clone(), args.grace));
    tokio::select! {
        () = signals.next() => {}
        // It ends by itself only on a failure; the process exits so that its leases go to others.
        report = join(&mut executor, &source) => {
            report?;
            bail!("the worker stopped unexpectedly; see the log above and start it again");
        }
    }
    output::say(&format!(
        "stopping: running tasks may finish within {:?}; a second Ctrl-C stops at once",
        args.grace
    ));
    stop.cancel();
    tokio::select! {
        report = join(&mut executor, &source) => {
            output::say(&summary(&report?));
            Ok(Ending::Ok)
        }
        () = signals.next() => {
            bail!("stopped at once; the server gives unfinished tasks to other workers within seconds")
        }
    }
}

/// Registers; retries until the server answers.
async fn connect(worker: &RemoteWorker) -> anyhow::Result<Arc<RemoteSource>> {
    let (mut wait, longest) = WAITS;
    let mut is_reported = false;
    loop {
        let error = match worker.connect().await {
            Ok(source) => return Ok(source),
            Err(error) if error.is_retryable() => error,
            Err(error) => return Err(error.into()),
        };
        if !is_reported {
            output::say(&format!("{error}\nretrying until it answers; Ctrl-C stops"));
            is_reported = true;
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(longest);
    }
}

async fn join(
    executor: &mut JoinSet<ExecutorReport>,
    source: &RemoteSource,
) -> anyhow::Result<ExecutorReport> {
    let report = executor.join_next().await.context("the worker was started")?;
    source.close().await;
    report.context("the worker failed")
}

fn print_banner(worker: &RemoteWorker, source: &RemoteSource) {
    let request = worker.request();
    let server = worker.server().trim_end_matches('/');
    let queues =
        if request.queues.is_empty() { "all".to_owned() } else { request.queues.join(", ") };
    output::say(&format!("  worker   {}", request.name.as_deref().unwrap_or_default()));
    output::say(&format!("  server   {server}"));
    output::say(&format!("  session  {}", source.session()));
    output::say(&format!("  types    {}", request.types.join(", ")));
    output::say(&format!("  queues   {queues}"));
    let first = request.types.first().map_or("echo", String::as_str);
    let queue = request.queues.first().map_or(String::new(), |queue| format!(" --queue {queue}"));
    output::say(&format!(
        "  next     duly task run {first}{queue} --wait --server {server}   (Ctrl-C stops)"
    ));
}

fn summary(report: &ExecutorReport) -> String {
    let ExecutorReport { done, lost, unanswered, stuck, .. } = *report;
    let committed = output::count(u32::try_from(done).unwrap_or(u32::MAX), "outcome");
    let mut text = format!("stopped: {committed} committed");
    for (count, what) in [
        (lost, "refused, since their leases were lost"),
        (unanswered as u64, "not answered; their tasks may run again"),
        (stuck as u64, "handlers did not stop"),
    ] {
        if count > 0 {
            text.push_str(&format!(", {count} {what}"));
        }
    }
    text
}
