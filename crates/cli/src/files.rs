//! File descriptors: every connection takes one, and the store and outgoing requests need some too.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that are kept for everything but connections.
const KEPT: u64 = 256;
/// Connections at once, at the most.
const CONNECTIONS: u64 = 10_000;

/// Raises the soft limit to the hard one, as far as that goes, and returns how many connections
/// the server can take without running out.
pub(crate) fn connections() -> usize {
    let limit = getrlimit(Resource::Nofile);
    // Who may not raise it goes on with what there is.
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).ok();
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let connections = files.saturating_sub(KEPT).clamp(16, CONNECTIONS);
    usize::try_from(connections).expect("ten thousand fits")
}
