//! Reading a file or a stream in batches, on a thread of its own: reading standard input may wait
//! for ever, and parsing need not wait for the network. What is in memory does not grow with the
//! file.

use std::io::{self, BufRead as _, BufReader, Read};

use duly_client::wire::{Problem, SubmitRequest};
use duly_core::limits::{BODY_BYTES, STORE_BATCH, STORE_BATCH_BYTES};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::line;

/// Batches that wait for their turn to be sent.
const READ_AHEAD: usize = 2;
const BUFFER_BYTES: usize = 256 * 1024;
/// What a request takes beyond its line: the key, and numbers that are spelled longer.
const EXTRA_BYTES: usize = 128;
/// Some programs put it before the first line.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// How much of the input lies before a point between two lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Position {
    /// Bytes.
    pub(super) offset: u64,
    /// Lines.
    pub(super) line: u64,
}

/// A line that is no task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rejection {
    /// Where the line begins.
    pub(super) before: Position,
    /// Why.
    pub(super) problem: Problem,
}

/// Lines that are sent in one request, and those between them that cannot be sent. One batch is
/// one commit of the store.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) tasks: Vec<SubmitRequest>,
    /// Where the line of each task begins.
    pub(super) places: Vec<Position>,
    pub(super) bad: Vec<Rejection>,
    /// Where the batch ends.
    pub(super) end: Position,
    bytes: usize,
}

impl Batch {
    fn from(start: Position) -> Self {
        Self { end: start, ..Self::default() }
    }

    fn takes(&self, line: &Line<'_>) -> bool {
        let count = self.tasks.len() + self.bad.len();
        count == 0 || (count < STORE_BATCH && self.bytes + line.cost() <= STORE_BATCH_BYTES)
    }

    /// Takes a line in. A task without an idempotency key gets one of its line, so that sending it
    /// again is safe.
    fn add(&mut self, before: Position, line: &Line<'_>, import: &str) {
        let read = match line {
            Line::Text(b"") => return,
            Line::Text(text) => line::read(text),
            Line::TooLong => Err(line::too_long()),
        };
        match read {
            Ok(mut task) => {
                let key = || format!("import-{import}-{}", before.line + 1);
                task.idempotency_key.get_or_insert_with(key);
                self.bytes += line.cost();
                self.tasks.push(task);
                self.places.push(before);
            }
            Err(problem) => self.bad.push(Rejection { before, problem: *problem }),
        }
    }
}

/// Reads everything that follows `from`, where the input stands already. A stream is sent as it
/// comes; a file in full batches. Ends early when nobody listens.
pub(super) fn start(
    input: Box<dyn Read + Send>,
    from: Position,
    import: String,
    is_stream: bool,
) -> io::Result<mpsc::Receiver<io::Result<Batch>>> {
    let (sender, batches) = mpsc::channel(READ_AHEAD);
    let lines = Lines::new(input, from);
    let read = move || {
        if let Err(error) = read_all(lines, &import, is_stream, &sender) {
            sender.blocking_send(Err(error)).ok();
        }
    };
    // Nobody waits for it: it may be stuck in a read when the process ends.
    std::thread::Builder::new().name("import".to_owned()).spawn(read)?;
    Ok(batches)
}

fn read_all(
    mut lines: Lines<impl Read>,
    import: &str,
    is_stream: bool,
    sender: &mpsc::Sender<io::Result<Batch>>,
) -> io::Result<()> {
    let mut batch = Batch::from(lines.at);
    loop {
        let before = lines.at;
        let Some(line) = lines.next()? else { break };
        if !batch.takes(&line) {
            let full = std::mem::replace(&mut batch, Batch::from(before));
            if sender.blocking_send(Ok(full)).is_err() {
                return Ok(());
            }
        }
        batch.add(before, &line, import);
        batch.end = lines.at;
        // The next line may be long in coming.
        if is_stream && !lines.has_next() {
            let ready = std::mem::replace(&mut batch, Batch::from(lines.at));
            if sender.blocking_send(Ok(ready)).is_err() {
                return Ok(());
            }
        }
    }
    // It may hold no line, but it says where the input ends.
    sender.blocking_send(Ok(batch)).ok();
    Ok(())
}

/// A line without what surrounds it.
#[derive(Debug, PartialEq, Eq)]
enum Line<'a> {
    Text(&'a [u8]),
    /// Longer than any request may be; it is skipped, not kept.
    TooLong,
}

impl Line<'_> {
    fn cost(&self) -> usize {
        match self {
            Self::Text(text) => text.len() + EXTRA_BYTES,
            Self::TooLong => 0,
        }
    }
}

struct Lines<R> {
    input: BufReader<R>,
    at: Position,
    text: Vec<u8>,
}

impl<R: Read> Lines<R> {
    fn new(input: R, at: Position) -> Self {
        Self { input: BufReader::with_capacity(BUFFER_BYTES, input), at, text: Vec::new() }
    }

    /// The next line; nothing at the end.
    fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.text.clear();
        let most = BODY_BYTES + 1;
        let mut read = self.input.by_ref().take(most as u64).read_until(b'\n', &mut self.text)?;
        if read == 0 {
            return Ok(None);
        }
        let is_too_long = read == most && self.text.last() != Some(&b'\n');
        if is_too_long {
            read += self.input.skip_until(b'\n')?;
        }
        let is_first = self.at.line == 0;
        self.at.offset += read as u64;
        self.at.line += 1;
        if is_too_long {
            return Ok(Some(Line::TooLong));
        }
        let mark = if is_first { BYTE_ORDER_MARK } else { b"" };
        let text = self.text.strip_prefix(mark).unwrap_or(&self.text);
        Ok(Some(Line::Text(text.trim_ascii())))
    }

    /// Whether a whole line can be had without waiting.
    fn has_next(&self) -> bool {
        self.input.buffer().contains(&b'\n')
    }
}

#[cfg(test)]
mod tests;
