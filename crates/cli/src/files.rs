//! File descriptors: every connection needs one, and so do the store and outgoing requests.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors reserved for everything but connections.
const RESERVED: u64 = 256;
/// The most connections at once.
const CONNECTIONS: u64 = 10_000;

/// Raises the soft limit to the hard one if allowed, and returns how many connections the server can
/// accept.
pub(crate) fn raise_limit() -> usize {
    let limit = getrlimit(Resource::Nofile);
    // A process that may not raise it continues with the current limit.
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).ok();
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let connections = files.saturating_sub(RESERVED).clamp(16, CONNECTIONS);
    usize::try_from(connections).expect("ten thousand fits")
}
