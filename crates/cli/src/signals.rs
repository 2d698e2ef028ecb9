//! SIGINT and SIGTERM: the first asks for a clean end, the second gets an immediate one.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The two signals that end a server.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Takes the signals over from now on.
    pub(crate) fn new() -> std::io::Result<Self> {
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Self { interrupt, terminate: signal(SignalKind::terminate())? })
    }

    /// Waits for one of them.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
