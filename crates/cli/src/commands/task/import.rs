//! `duly task import`: the tasks of a file, in batches, and at most once each however often it is
//! started again.
//!
//! A thread reads and parses; a few batches are in flight; their answers are settled in the order
//! of the file. The checkpoint says up to where everything was answered. What was sent beyond it
//! when the process ended is sent again, and recognised by its idempotency keys.

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

use self::checkpoint::Keeper;
use self::ledger::Ledger;
use self::progress::Progress;
use self::reader::Batch;
use self::rejected::Rejected;
use self::sender::Sender;
use self::source::Source;
use super::connect;
use crate::args::{ImportArgs, Output};
use crate::exit::Ending;
use crate::output;
use crate::signals::Signals;

/// Batches that are on their way at once: enough to keep the server busy while answers travel.
const IN_FLIGHT: usize = 4;
/// How often to look whether there is something to show.
const LOOK: Duration = Duration::from_millis(200);

/// Why no more batches are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// All were.
    Complete,
    /// A line was rejected, and that was not to happen.
    Rejected,
    /// Somebody asked for it.
    Interrupted,
}

pub(super) async fn run(args: &ImportArgs) -> anyhow::Result<Ending> {
    let mut signals = Signals::new().context("cannot listen for signals")?;
    let client = connect(&args.client)?;
    let source = Source::open(args)?;
    let checkpoint = source.resume(args, client.base_url().as_str())?;
    let (from, size) = (checkpoint.at, source.size());
    let rejected = Rejected::open(source.rejected.clone(), checkpoint.rejected_bytes)?;
    let keeper = Keeper::new(source.checkpoint.clone());
    let progress = Progress::new(from, size);
    let import = checkpoint.import.clone();
    let mut ledger = Ledger::open(args, &progress, checkpoint, keeper, rejected)?;
    if from.line > 0 {
        output::say(&format!("going on after line {}", from.line));
    }
    let batches = reader::start(source.read_from(from)?, from, import, size.is_none())
        .context("cannot start to read")?;
    let stop = CancellationToken::new();
    let sender = Sender::new(&client, &progress, &stop);
    let end = import_all(&mut ledger, batches, &sender, &stop, &mut signals, &progress).await;
    progress.clear();
    // However it ended: what was answered need not be sent again.
    ledger.save()?;
    if end.is_err() {
        output::say(&stopped(&ledger, args));
    }
    let is_news = ledger.checkpoint.at != from;
    finish(&ledger, args, end?, is_news)
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
    let mut looks = tokio::time::interval(LOOK);
    let mut end = None;
    // A batch was given up: what follows was answered, but the checkpoint must not pass the gap.
    let mut is_broken = false;
    loop {
        if let Some(end) = end.filter(|_| flight.is_empty()) {
            return Ok(end);
        }
        tokio::select! {
            () = signals.next() => {
                if stop.is_cancelled() {
                    bail!("stopped at once; what was on its way may have been taken");
                }
                progress.say("stopping: what is on its way may finish; a second Ctrl-C stops at once");
                stop.cancel();
                end = Some(End::Interrupted);
            }
            Some(answered) = flight.next(), if !flight.is_empty() => match answered? {
                Some(answered) if !is_broken => {
                    if !ledger.settle(answered)? {
                        stop.cancel();
                        (is_broken, end) = (true, Some(End::Rejected));
                    }
                }
                _ => is_broken = true,
            },
            batch = batches.recv(), if end.is_none() && flight.len() < IN_FLIGHT => match batch {
                Some(batch) => flight.push_back(sender.send(batch.context("cannot read on")?)),
                None => end = Some(End::Complete),
            },
            _ = looks.tick() => progress.show(ledger.checkpoint.at),
        }
    }
}

/// What an import came to.
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

/// Prints the sum and says how to go on.
fn finish(
    ledger: &Ledger<'_>,
    args: &ImportArgs,
    end: End,
    is_news: bool,
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
        // They were printed as they came.
        Output::Id => {}
    }
    output::say(&match end {
        End::Interrupted => stopped(ledger, args),
        End::Rejected if !ledger.is_kept() => stopped(ledger, args),
        End::Rejected => mend(sum.at.line + 1, &sum.import, args),
        End::Complete if !is_news => "nothing was left to import; to import all of it again, \
            pass another --name and another --checkpoint"
            .to_owned(),
        End::Complete => match ledger.rejected.path().filter(|_| sum.rejected > 0) {
            Some(path) => format!(
                "next: {} says what is wrong with which line; import these lines from a file of \
                 their own",
                path.display()
            ),
            None => "next: duly task list".to_owned(),
        },
    });
    Ok(if complete && sum.rejected == 0 { Ending::Ok } else { Ending::Unwell })
}

/// How to go on with what was stopped. A stream is not kept unless it was asked for.
fn stopped(ledger: &Ledger<'_>, args: &ImportArgs) -> String {
    let line = ledger.checkpoint.at.line;
    if ledger.is_kept() {
        format!("stopped after line {line}; go on: {}", args.again())
    } else {
        format!(
            "stopped after line {line}, and some later lines may have been taken; with --name and \
             --checkpoint a stream can be gone on with"
        )
    }
}

/// How to go on with a file after a line of it was mended. It is another file then, so it has to
/// be told that the import is the same.
fn mend(line: u64, import: &str, args: &ImportArgs) -> String {
    let name = if args.name.is_some() { String::new() } else { format!(" --name {import}") };
    format!("stopped at line {line}; mend it and go on within 24 hours: {}{name}", args.again())
}
