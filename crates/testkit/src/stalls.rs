//! Notices when this process did not get to run: a machine that is too busy makes workers fall
//! silent just as a nemesis does, and the judge has to know of it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::history::{Edge, Fault, FaultKind};
use crate::journal::{Journal, mono_ns};

const BEAT: Duration = Duration::from_millis(20);
/// A beat that is this late is written down: less than any TTL of the harness forgives.
const LATE: Duration = Duration::from_millis(250);

/// A thread that does nothing but notice; it ends when this is dropped.
#[derive(Debug)]
pub struct Watchman {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watchman {
    /// Notices stalls of this process, and writes them down as those of `target`.
    pub fn start(journal: &Path, target: &str) -> anyhow::Result<Self> {
        let journal = Journal::open(journal)?;
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, target) = (Arc::clone(&stop), target.to_owned());
        let thread = std::thread::spawn(move || {
            let mut last = mono_ns();
            while !stopped.load(Ordering::Relaxed) {
                std::thread::park_timeout(BEAT);
                let now = mono_ns();
                if now - last > u64::try_from(LATE.as_nanos()).expect("a quarter of a second") {
                    note(&journal, &target, last, now);
                }
                last = now;
            }
        });
        Ok(Self { stop, thread: Some(thread) })
    }
}

fn note(journal: &Journal, target: &str, begin: u64, end: u64) {
    for (at, phase) in [(begin, Edge::Begin), (end, Edge::End)] {
        let (fault, target) = (FaultKind::Stall, target.to_owned());
        let line = Fault { fault, target, phase, in_flight: 0 };
        // Without its file the run is void anyway, and the judge says so.
        journal.write_at(at, line).ok();
    }
}

impl Drop for Watchman {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            drop(thread.join());
        }
    }
}
