//! Reads a file or a stream in batches, on its own thread: reading standard input may block forever,
//! and parsing need not wait for the network. Memory does not grow with the file.

use std::io::{self, BufRead as _, BufReader, Read};

use duly_client::wire::{Problem, SubmitRequest};
use duly_core::limits::{BODY_BYTES, STORE_BATCH, STORE_BATCH_BYTES};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::line;

/// Batches that wait to be sent.
const READ_AHEAD: usize = 2;
const BUFFER_BYTES: usize = 256 * 1024;
/// What a request adds to its line: the key, and longer spellings of numbers.
const EXTRA_BYTES: usize = 128;
/// Some programs write it before the first line.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A position between two lines of the input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Position {
    /// Bytes before it.
    pub(super) offset: u64,
    /// Lines before it.
    pub(super) line: u64,
}

/// A line that did not become a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rejection {
    /// The start of the line.
    pub(super) before: Position,
    /// The reason.
    pub(super) problem: Problem,
}

/// Lines that are sent in one request, and invalid lines between them. One batch is one commit of
/// the store.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) tasks: Vec<SubmitRequest>,
    /// The start of the line of each task.
    pub(super) positions: Vec<Position>,
    pub(super) bad: Vec<Rejection>,
    /// The end of the batch.
    pub(super) end: Position,
    bytes: usize,
}

impl Batch {
    fn from(start: Position) -> Self {
        Self { end: start, ..Self::default() }
    }

    fn has_room_for(&self, line: &Line<'_>) -> bool {
        let count = self.tasks.len() + self.bad.len();
        count == 0 || (count < STORE_BATCH && self.bytes + line.cost() <= STORE_BATCH_BYTES)
    }

    /// Adds a line. A task without an idempotency key gets one from its line number, so that a repeated
    /// send is safe.
    fn add(&mut self, before: Position, line: &Line<'_>, import: &str) {
        let parsed = match line {
            Line::Text(b"") => return,
            Line::Text(text) => line::parse(text),
            Line::TooLong => Err(line::too_long()),
        };
        match parsed {
            Ok(mut task) => {
                let key = || format!("import-{import}-{}", before.line + 1);
                task.idempotency_key.get_or_insert_with(key);
                self.bytes += line.cost();
                self.tasks.push(task);
                self.positions.push(before);
            }
            Err(problem) => self.bad.push(Rejection { before, problem: *problem }),
        }
    }
}

/// Reads everything after `from`, which is the current position of the input. A stream is sent as it
/// arrives, a file in full batches. Ends early when the receiver is dropped.
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
    // The thread is detached: it may be blocked in a read when the process ends.
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
        if !batch.has_room_for(&line) {
            let full = std::mem::replace(&mut batch, Batch::from(before));
            if sender.blocking_send(Ok(full)).is_err() {
                return Ok(());
            }
        }
        batch.add(before, &line, import);
        batch.end = lines.at;
        // The next line may arrive much later.
        if is_stream && !lines.has_next() {
            let ready = std::mem::replace(&mut batch, Batch::from(lines.at));
            if sender.blocking_send(Ok(ready)).is_err() {
                return Ok(());
            }
        }
    }
    // It may be empty, but it marks the end of the input.
    sender.blocking_send(Ok(batch)).ok();
    Ok(())
}

/// A line without surrounding blanks.
#[derive(Debug, PartialEq, Eq)]
enum Line<'a> {
    Text(&'a [u8]),
    /// Longer than any request may be; it is skipped.
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

    /// The next line; none at the end.
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

    /// Whether a complete line is buffered.
    fn has_next(&self) -> bool {
        self.input.buffer().contains(&b'\n')
    }
}

#[cfg(test)]
mod tests;
