//! A sink that appends events to a file: one CloudEvent a line. What it has taken is on disk.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use duly_client::wire::CloudEvent;
use duly_core::event::{Kinds, SinkName};
use duly_core::ports::event_sink::{Delivery, EventSink, NotTaken};

/// Where events are appended, and which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventFile {
    pub(crate) path: PathBuf,
    pub(crate) kinds: Kinds,
}

impl EventFile {
    /// The sink of all nodes that have such a file: one of them appends at a time.
    pub(super) fn name() -> SinkName {
        SinkName::new("duly.file").expect("a valid name")
    }
}

#[async_trait]
impl EventSink for EventFile {
    async fn take(&self, events: &[Delivery]) -> Result<(), NotTaken> {
        let mut lines = Vec::with_capacity(events.len() * 1024);
        for event in events {
            serde_json::to_writer(&mut lines, &CloudEvent::of(event))
                .expect("an event can always be written as JSON");
            lines.push(b'\n');
        }
        let path = self.path.clone();
        let appended = tokio::task::spawn_blocking(move || append(&path, &lines)).await;
        let appended = appended.unwrap_or_else(|ended| Err(io::Error::other(ended)));
        appended.map_err(|error| NotTaken(format!("cannot write {}: {error}", self.path.display())))
    }
}

/// Opens the file each time, so that a program that rotates logs may move it away.
fn append(path: &Path, lines: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).read(true).append(true).open(path)?;
    if !ends_with_line(&mut file)? {
        // The process died within a line. Its events are delivered again.
        file.write_all(b"\n")?;
    }
    file.write_all(lines)?;
    file.sync_data()
}

fn ends_with_line(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_line_spoils_no_other() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events.ndjson");
        append(&path, b"{\"a\":1}\n").unwrap();
        std::fs::write(&path, "{\"a\":1}\n{\"b\":").unwrap();
        append(&path, b"{\"c\":3}\n").unwrap();
        append(&path, b"{\"d\":4}\n").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "{\"a\":1}\n{\"b\":\n{\"c\":3}\n{\"d\":4}\n");
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error_that_names_the_file() {
        let missing = Path::new("nowhere/at/all/events.ndjson");
        assert!(append(missing, b"{}\n").is_err());
    }
}
