//! Files in which the harness writes down what it sees from outside: one JSON object per line,
//! numbered, with the time of the monotonic clock that all processes of a machine share.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// One line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Line<T> {
    /// Counts the lines of one writer.
    pub seq: u64,
    /// Nanoseconds of the monotonic clock.
    pub mono_ns: u64,
    /// What happened.
    #[serde(flatten)]
    pub event: T,
}

impl<T> Line<T> {
    /// When it happened.
    pub fn at(&self) -> Duration {
        Duration::from_nanos(self.mono_ns)
    }
}

/// The monotonic clock.
pub fn mono_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).expect("it counts from the start of the machine");
    let nanos = u64::try_from(now.tv_nsec).expect("less than a second");
    seconds * 1_000_000_000 + nanos
}

/// The real-time clock, which servers judge due times by.
pub fn real_ns() -> u64 {
    let now = clock_gettime(ClockId::Realtime);
    let seconds = u64::try_from(now.tv_sec).expect("it counts from 1970");
    seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).expect("less than a second")
}

/// A file that is being written.
#[derive(Debug)]
pub struct Journal {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    file: File,
    seq: u64,
}

impl Journal {
    /// Goes on with a file, or makes it.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        let file = file.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { inner: Mutex::new(Inner { file, seq: 0 }) })
    }

    /// Writes a line. One write per line, so that a kill leaves whole lines.
    pub fn write<T: Serialize>(&self, event: T) -> anyhow::Result<u64> {
        self.write_at(mono_ns(), event)
    }

    /// Writes a line about something that happened then.
    pub fn write_at<T: Serialize>(&self, mono_ns: u64, event: T) -> anyhow::Result<u64> {
        let mut inner = self.inner.lock();
        inner.seq += 1;
        let line = Line { seq: inner.seq, mono_ns, event };
        let mut text = serde_json::to_vec(&line)?;
        text.push(b'\n');
        inner.file.write_all(&text)?;
        Ok(line.mono_ns)
    }

    /// Writes a line and waits until the disk has it.
    pub fn write_through<T: Serialize>(&self, event: T) -> anyhow::Result<u64> {
        let at = self.write(event)?;
        let file = self.inner.lock().file.try_clone()?;
        file.sync_data()?;
        Ok(at)
    }
}

/// Reads a file as far as it is written; the last line may be half of one.
pub fn read<T: DeserializeOwned>(path: &Path) -> anyhow::Result<Vec<Line<T>>> {
    read_from(path, 0)
}

/// Reads the whole lines that begin at this place or behind it. Who has asked for the size of a file
/// that others write to may have got one in the middle of a line.
pub fn read_from<T: DeserializeOwned>(path: &Path, place: u64) -> anyhow::Result<Vec<Line<T>>> {
    let mut file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    file.seek(SeekFrom::Start(place.saturating_sub(1)))?;
    let mut reader = BufReader::new(file);
    if place > 0 {
        reader.read_until(b'\n', &mut Vec::new())?;
    }
    let (mut lines, mut text) = (Vec::new(), String::new());
    while reader.read_line(&mut text)? > 0 {
        if !text.ends_with('\n') {
            break;
        }
        // Several processes may write one file: the next one goes on where a killed one stopped.
        let line =
            serde_json::from_str(&text).or_else(|bad| match second_opening(text.as_bytes()) {
                Some(start) => serde_json::from_str(&text[start..]),
                None => Err(bad),
            });
        lines.push(line.with_context(|| format!("not a line of a journal: {text}"))?);
        text.clear();
    }
    Ok(lines)
}

/// How every line begins.
const OPENING: &[u8] = b"{\"seq\":";

/// Where the last line within a line begins, after half of another.
pub(crate) fn second_opening(text: &[u8]) -> Option<usize> {
    let openings = text.windows(OPENING.len()).enumerate().skip(1);
    openings.filter(|(_, window)| *window == OPENING).map(|(place, _)| place).next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Event {
        name: String,
    }

    #[test]
    fn lines_come_back_in_order_and_half_a_line_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j.jsonl");
        let journal = Journal::open(&path).unwrap();
        for name in ["one", "two"] {
            journal.write_through(Event { name: name.to_owned() }).unwrap();
        }
        std::fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(b"{\"seq\":3")
            .unwrap();
        let seen = |lines: &[Line<Event>]| -> Vec<(u64, String)> {
            lines.iter().map(|line| (line.seq, line.event.name.clone())).collect()
        };
        let lines = read::<Event>(&path).unwrap();
        assert_eq!(seen(&lines), [(1, "one".to_owned()), (2, "two".to_owned())]);
        assert!(lines[0].mono_ns <= lines[1].mono_ns);
        let first = u64::try_from(std::fs::read_to_string(&path).unwrap().find('\n').unwrap());
        let end = first.unwrap() + 1;
        for (place, found) in [(0, 2), (1, 1), (end - 1, 1), (end, 1), (end + 1, 0)] {
            assert_eq!(read_from::<Event>(&path, place).unwrap().len(), found, "from {place}");
        }
        Journal::open(&path).unwrap().write(Event { name: "next".to_owned() }).unwrap();
        let lines = read::<Event>(&path).unwrap();
        assert_eq!(seen(&lines)[2..], [(1, "next".to_owned())], "after half a line of another");
    }
}
