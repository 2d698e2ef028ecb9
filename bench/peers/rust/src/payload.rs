//! What a task carries, about 100 bytes of JSON, and what its handler tells.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

/// Fills the payload up to about 100 bytes.
const TEXT: &str = "0123456789012345678901234567890123456789012";

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Payload {
    pub number: usize,
    /// When it is due, in microseconds of the Unix epoch.
    pub due_micros: u64,
    pub text: String,
}

impl Payload {
    pub(crate) fn now(number: usize) -> Self {
        Self::due_at(number, SystemTime::now())
    }

    /// Due at a whole millisecond: finer is not everybody's.
    pub(crate) fn due_at(number: usize, due: SystemTime) -> Self {
        Self { number, due_micros: micros(due) / 1000 * 1000, text: TEXT.to_owned() }
    }

    pub fn due(&self) -> SystemTime {
        UNIX_EPOCH + std::time::Duration::from_micros(self.due_micros)
    }
}

/// That a handler started.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    pub number: usize,
    pub at: Instant,
    /// Behind the due time; negative is early.
    pub late_millis: f64,
}

/// What handlers call.
#[derive(Clone, Debug)]
pub struct Recorder(mpsc::UnboundedSender<Start>);

impl Recorder {
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<Start>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), receiver)
    }

    /// The whole work of a task.
    pub fn start(&self, task: &Payload) {
        let late_millis = (micros(SystemTime::now()) as f64 - task.due_micros as f64) / 1000.0;
        self.0.send(Start { number: task.number, at: Instant::now(), late_millis }).ok();
    }
}

fn micros(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).expect("the clock is past 1970");
    u64::try_from(since.as_micros()).expect("a time of this age")
}
