//! The process group of one attempt.

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;

/// A process group. Dropping it kills its processes, so that none outlives the attempt, however it
/// ends. Only a process that has left the group escapes.
#[derive(Debug)]
pub(super) struct ProcessGroup(Pid);

impl ProcessGroup {
    /// The group that this child leads.
    pub(super) fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Self(id.expect("a child that was just started has an id"))
    }

    /// Sends a signal to all of its processes.
    pub(super) fn send(&self, signal: Signal) {
        // An error means that no process is left or that they changed their user.
        let _ = kill_process_group(self.0, signal);
    }
}

impl Drop for ProcessGroup {
    /// The leader may have been waited for, which frees the id once the group is empty. That is
    /// safe: the kernel uses all other ids before it uses this one again.
    fn drop(&mut self) {
        self.send(Signal::KILL);
    }
}
