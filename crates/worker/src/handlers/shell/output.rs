//! The output of a program. It may be endless, so only the end, and the beginning of each line, is
//! kept.

use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::handler::Context;

/// Bytes of the end that become part of the result.
const TAIL_BYTES: usize = 4 * 1024;
/// Bytes of a line that are logged.
const LINE_BYTES: usize = 2 * 1024;
/// Bytes that are read at once.
const CHUNK_BYTES: usize = 8 * 1024;

/// One of the two output streams of a program. Lines are logged as they arrive. A line without an
/// end is logged when the attempt ends: it may be a prompt at which the program waits.
#[derive(Debug)]
pub(super) struct Output<'a> {
    context: &'a Context,
    /// The beginning of the current line.
    line: Vec<u8>,
    is_cut: bool,
    last_line: String,
    /// The end of the output, and some of what precedes it.
    tail: Vec<u8>,
}

impl<'a> Output<'a> {
    pub(super) fn new(context: &'a Context) -> Self {
        let (line, tail) = (Vec::new(), Vec::new());
        Self { context, line, is_cut: false, last_line: String::new(), tail }
    }

    /// Reads until the pipe ends.
    pub(super) async fn read(&mut self, pipe: Option<impl AsyncRead + Unpin>) {
        let Some(mut pipe) = pipe else { return };
        let mut chunk = vec![0; CHUNK_BYTES];
        while let Ok(count @ 1..) = pipe.read(&mut chunk).await {
            self.add(&chunk[..count]);
            // A pipe that is never empty would starve the timers.
            tokio::task::yield_now().await;
        }
    }

    /// Adds output.
    fn add(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let text = part.strip_suffix(b"\n").unwrap_or(part);
            let room = LINE_BYTES - self.line.len();
            self.is_cut |= text.len() > room;
            self.line.extend_from_slice(&text[..text.len().min(room)]);
            if text.len() < part.len() {
                self.end_line();
            }
        }
        self.tail.extend_from_slice(bytes);
        if self.tail.len() > 4 * TAIL_BYTES {
            // The extra byte shows that the tail was cut.
            self.tail.drain(..self.tail.len() - TAIL_BYTES - 1);
        }
    }

    fn end_line(&mut self) {
        let text = String::from_utf8_lossy(&self.line);
        let text = text.trim_end();
        let mark = if self.is_cut { "…" } else { "" };
        self.context.log(format_args!("{text}{mark}"));
        if !text.is_empty() {
            self.last_line.clear();
            self.last_line.push_str(text);
        }
        self.line.clear();
        self.is_cut = false;
    }

    /// Logs the last line, if it has no end.
    pub(super) fn end(&mut self) {
        if !self.line.is_empty() {
            self.end_line();
        }
    }

    /// The last line that is not blank.
    pub(super) fn last_line(&self) -> &str {
        &self.last_line
    }

    /// The end of the output as text.
    pub(super) fn tail(&self) -> String {
        let surplus = self.tail.len().saturating_sub(TAIL_BYTES);
        let mut bytes = &self.tail[surplus..];
        if surplus > 0 {
            // The cut may have split a character.
            let rest = bytes.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
            bytes = &bytes[rest..];
        }
        // Databases refuse U+0000. Replacing it and invalid UTF-8 makes the text longer.
        let text = String::from_utf8_lossy(bytes).replace('\0', "\u{fffd}");
        text[text.ceil_char_boundary(text.len().saturating_sub(TAIL_BYTES))..].to_owned()
    }
}

impl Drop for Output<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests;
