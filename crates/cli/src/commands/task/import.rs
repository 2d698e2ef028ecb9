//! `duly task import`: submits the tasks of a file in batches, each at most once however often the
//! import is restarted.
//!
//! A thread reads and parses; a few batches are in flight; their answers are recorded in the order of
//! the file. The checkpoint is the position up to which everything was answered. Lines that were sent
//! beyond it when the process ended are sent again, and recognised by their idempotency keys.

mod checkpoint;
mod ledger;
mod line;
mod progress;
mod reader;
mod rejected;
mod sender;
mod source;

use std::time::Duration;

use anyhow::{Context as _, bail};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesOrdered;
use serde::Serialize;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::checkpoint::CheckpointFile;
use self::ledger::Ledger;
use self::progress::Progress;
use self::reader::Batch;
use self::rejected::RejectedFile;
use self::sender::Sender;
use self::source::Source;
use super::connect;
use crate::args::{ImportArgs, Output};
use crate::exit::Ending;
use crate::output;
use crate::signals::Signals;

/// Batches in flight at once: enough to keep the server busy while answers travel.
const IN_FLIGHT: usize = 4;
/// How often progress is refreshed.
const REFRESH: Duration = Duration::from_millis(200);

/// Why no more batches are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// All were sent.
    Complete,
    /// A line was rejected under `--strict`.
    Rejected,
    /// A signal arrived.
    Interrupted,
}

pub(super) async fn run(args: &ImportArgs) -> anyhow::Result<Ending> {
    let mut signals = Signals::new().context("cannot listen for signals")?;
    let client = connect(&args.client)?;
    let source = Source::open(args)?;
    let checkpoint = source.resume(args, client.base_url().as_str())?;
    let (from, size) = (checkpoint.at, source.size());
    let rejected = RejectedFile::open(source.rejected.clone(), checkpoint.rejected_bytes)?;
    let checkpoint_file = CheckpointFile::new(source.checkpoint.clone());
    let progress = Progress::new(from, size);
    let import = checkpoint.import.clone();
    let mut ledger = Ledger::open(args, &progress, checkpoint, checkpoint_file, rejected)?;
    if from.line > 0 {
        output::say(&format!("continuing after line {}", from.line));
    }
    let batches = reader::start(source.read_from(from)?, from, import, size.is_none())
        .context("cannot start the reader")?;
    let stop = CancellationToken::new();
    let sender = Sender::new(&client, &progress, &stop);
    let end = import_all(&mut ledger, batches, &sender, &stop, &mut signals, &progress).await;
    progress.clear();
    // Save in any case: answered lines need not be sent again.
    ledger.save()?;
    if end.is_err() {
        output::say(&resume_advice(&ledger, args));
    }
    let has_progress = ledger.checkpoint.at != from;
    finish(&ledger, args, end?, has_progress)
}

async fn import_all(
    ledger: &mut Ledger<'_>,
    mut batches: mpsc::Receiver<std::io::Result<Batch>>,
    sender: &Sender<'_>,
    stop: &CancellationToken,
    signals: &mut Signals,
    progress: &Progress,
) -> anyhow::Result<End> {
    let mut flight = FuturesOrdered::new();
    let mut ticks = tokio::time::interval(REFRESH);
    let mut end = None;
    // A batch was abandoned: later ones may be answered, but the checkpoint must not pass the gap.
    let mut has_gap = false;
    loop {
        if let Some(end) = end.filter(|_| flight.is_empty()) {
            return Ok(end);
        }
        tokio::select! {
            () = signals.next() => {
                if stop.is_cancelled() {
                    bail!("stopped at once; requests under way may have been accepted; next: run it again");
                }
                progress.say("stopping: requests under way may finish; a second Ctrl-C stops at once");
                stop.cancel();
                end = Some(End::Interrupted);
            }
            Some(answered) = flight.next(), if !flight.is_empty() => match answered? {
                Some(answered) if !has_gap => {
                    if !ledger.record(answered)? {
                        stop.cancel();
                        (has_gap, end) = (true, Some(End::Rejected));
                    }
                }
                _ => has_gap = true,
            },
            batch = batches.recv(), if end.is_none() && flight.len() < IN_FLIGHT => match batch {
                Some(batch) => flight.push_back(sender.send(batch.context("cannot read the input")?)),
                None => end = Some(End::Complete),
            },
            _ = ticks.tick() => progress.show(ledger.checkpoint.at),
        }
    }
}

/// The result of an import.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary<'a> {
    import: &'a str,
    complete: bool,
    lines: u64,
    submitted: u64,
    existing: u64,
    rejected: u64,
}

/// Prints the summary and how to continue.
fn finish(
    ledger: &Ledger<'_>,
    args: &ImportArgs,
    end: End,
    has_progress: bool,
) -> anyhow::Result<Ending> {
    let sum = &ledger.checkpoint;
    let complete = end == End::Complete;
    match args.client.output {
        Output::Json => output::json(&Summary {
            import: &sum.import,
            complete,
            lines: sum.at.line,
            submitted: sum.submitted,
            existing: sum.existing,
            rejected: sum.rejected,
        })?,
        Output::Table => {
            let existing = match sum.existing {
                0 => String::new(),
                1 => " 1 was already there,".to_owned(),
                many => format!(" {many} were already there,"),
            };
            output::data(&format!(
                "imported {},{existing} rejected {}",
                output::count(sum.submitted, "task"),
                output::count(sum.rejected, "line")
            ))?;
        }
        // They were printed on arrival.
        Output::Id => {}
    }
    output::say(&match end {
        End::Interrupted => resume_advice(ledger, args),
        End::Rejected if !ledger.is_resumable() => resume_advice(ledger, args),
        End::Rejected => strict_advice(sum.at.line + 1, &sum.import, args),
        End::Complete if !has_progress => "nothing left to import; to import everything again, \
            pass another --name and another --checkpoint"
            .to_owned(),
        End::Complete => match ledger.rejected.path().filter(|_| sum.rejected > 0) {
            Some(path) => format!(
                "next: fix the lines listed in {} and import them from a separate file",
                path.display()
            ),
            None => "next: duly task list".to_owned(),
        },
    });
    Ok(if complete && sum.rejected == 0 { Ending::Ok } else { Ending::Unsuccessful })
}

/// How to continue a stopped import. A stream has a checkpoint only on request.
fn resume_advice(ledger: &Ledger<'_>, args: &ImportArgs) -> String {
    let line = ledger.checkpoint.at.line;
    if ledger.is_resumable() {
        format!("stopped after line {line}; next: {}", args.resume_command())
    } else {
        format!(
            "stopped after line {line}; some later lines may have been accepted; to continue a stream, \
             start it with --name and --checkpoint"
        )
    }
}

/// How to continue with a file after a line was fixed. The file has changed then, so `--name` must
/// identify the import.
fn strict_advice(line: u64, import: &str, args: &ImportArgs) -> String {
    let name = if args.name.is_some() { String::new() } else { format!(" --name {import}") };
    format!(
        "stopped at line {line}; fix it and continue within 24 hours: {}{name}",
        args.resume_command()
    )
}
