//! The limit: how fast a bare store writes the rows that a task's life needs, in our batch sizes,
//! with the leanest statements and nothing else. Benchmarks are judged as ratios to it, so that a
//! figure means the same on every machine.

use std::time::Duration;

/// What was measured: the time of each part of all tasks' lives.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// How many tasks.
    pub tasks: usize,
    /// Storing them as waiting.
    pub submit: Duration,
    /// Granting them.
    pub claim: Duration,
    /// Ending them.
    pub finish: Duration,
    /// Bytes written to the log, per task.
    pub log_bytes_per_task: u64,
}

impl Limit {
    /// Granting and ending them.
    pub fn drain(&self) -> Duration {
        self.claim + self.finish
    }

    /// Their whole lives.
    pub fn cycle(&self) -> Duration {
        self.submit + self.drain()
    }
}

/// What was measured of tasks that are granted as they are stored.
#[derive(Clone, Copy, Debug)]
pub struct HandOff {
    /// How many tasks.
    pub tasks: usize,
    /// Storing and ending them.
    pub cycle: Duration,
    /// Bytes written to the log, per task.
    pub log_bytes_per_task: u64,
}

/// About 100 bytes, as the benchmarks submit.
pub const PAYLOAD: &str = concat!(
    r#"{"to":"somebody@example.com","subject":"hello","template":"welcome","#,
    r#""customer":1234567,"locale":"en"}"#
);
