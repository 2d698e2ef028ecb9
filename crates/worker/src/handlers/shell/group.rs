//! The processes that one attempt has started.

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;

/// A process group. Dropping it kills what is left of it, so that nothing outlives its attempt,
/// however that ends; only a process that has left the group by itself is out of reach.
#[derive(Debug)]
pub(super) struct Group(Pid);

impl Group {
    /// The group that this child leads.
    pub(super) fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Self(id.expect("a child that was just started has an id"))
    }

    /// Sends a signal to all of its processes.
    pub(super) fn send(&self, signal: Signal) {
        // An error says that none is left, or that they changed their user: nothing can be done.
        let _ = kill_process_group(self.0, signal);
    }
}

impl Drop for Group {
    /// Its leader may have been waited for by now, which frees the id once the group is empty. The
    /// kernel gives out all other ids before it comes back to this one.
    fn drop(&mut self) {
        self.send(Signal::KILL);
    }
}
