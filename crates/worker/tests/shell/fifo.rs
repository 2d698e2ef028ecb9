//! A named pipe through which scripts send lines to a test. It ends when the last process that has
//! it open has ended.

use std::path::PathBuf;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::unix::pipe::{OpenOptions, Receiver, Sender};

/// The time limit for steps that take milliseconds on an idle machine.
const TIME_LIMIT: Duration = Duration::from_secs(60);

pub(crate) struct Fifo {
    path: PathBuf,
    receiver: BufReader<Receiver>,
    /// Held until the scripts have it open, since a pipe without writers has ended.
    sender: Option<Sender>,
    _folder: TempDir,
}

impl Fifo {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fifo");
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let receiver = BufReader::new(OpenOptions::new().open_receiver(&path).unwrap());
        let sender = Some(OpenOptions::new().open_sender(&path).unwrap());
        Self { path, receiver, sender, _folder: folder }
    }

    pub(crate) fn path(&self) -> &str {
        self.path.to_str().unwrap()
    }

    /// The next line of a script.
    pub(crate) async fn line(&mut self) -> String {
        let mut line = String::new();
        let read = tokio::time::timeout(TIME_LIMIT, self.receiver.read_line(&mut line)).await;
        read.expect("nothing was said").unwrap();
        line.trim_end().to_owned()
    }

    /// Waits until every process that has the pipe open has ended; returns their lines.
    pub(crate) async fn all_gone(mut self) -> String {
        self.sender = None;
        let mut rest = String::new();
        let read = tokio::time::timeout(TIME_LIMIT, self.receiver.read_to_string(&mut rest)).await;
        read.expect("a process is left").unwrap();
        rest
    }
}
