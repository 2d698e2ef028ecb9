//! Counts sign-ins that failed, by address, so that nobody may guess for long.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::peer::Peer;

/// The time over which failures are counted, and for which an address is then refused.
const WINDOW: Duration = Duration::from_secs(60);
/// Addresses that are remembered.
const ADDRESSES: usize = 10_000;

/// The failures of each address.
pub(crate) struct Attempts {
    /// Failures within [`WINDOW`] before an address is refused; 0 for any number.
    allowed: u32,
    by_address: Mutex<HashMap<IpAddr, Failures>>,
}

struct Failures {
    since: Instant,
    count: u32,
}

impl Attempts {
    pub(crate) fn new(allowed: u32) -> Self {
        Self { allowed, by_address: Mutex::default() }
    }

    /// How long an address has to wait, if it has failed too often.
    pub(crate) fn blocked(&self, peer: Peer) -> Option<Duration> {
        let by_address = self.by_address.lock();
        let failures = by_address.get(&peer.network())?;
        let left = (failures.since + WINDOW).checked_duration_since(Instant::now())?;
        let is_blocked = self.allowed > 0 && failures.count >= self.allowed && !left.is_zero();
        is_blocked.then_some(left)
    }

    /// Counts a failure.
    pub(crate) fn note_failure(&self, peer: Peer) {
        let now = Instant::now();
        let is_counted = |failures: &Failures| now < failures.since + WINDOW;
        let mut by_address = self.by_address.lock();
        if by_address.len() >= ADDRESSES {
            by_address.retain(|_, failures| is_counted(failures));
        }
        if by_address.len() >= ADDRESSES {
            // So many addresses fail at once only in an attack from all of them; memory comes first.
            by_address.clear();
        }
        let fresh = || Failures { since: now, count: 0 };
        let failures = by_address.entry(peer.network()).or_insert_with(fresh);
        if !is_counted(failures) {
            *failures = fresh();
        }
        failures.count = failures.count.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn s11_an_address_that_fails_often_is_refused_for_a_while() {
        let attempts = Attempts::new(3);
        let [guesser, other] = ["192.0.2.1", "192.0.2.2"].map(|ip| Peer::at(ip.parse().unwrap()));
        for _ in 0..3 {
            assert_eq!(attempts.blocked(guesser), None);
            attempts.note_failure(guesser);
        }
        assert!(attempts.blocked(guesser).is_some_and(|wait| wait <= WINDOW));
        assert_eq!(attempts.blocked(other), None);
        tokio::time::advance(WINDOW).await;
        assert_eq!(attempts.blocked(guesser), None);
        attempts.note_failure(guesser);
        assert_eq!(attempts.blocked(guesser), None, "the count begins anew");
    }

    #[tokio::test(start_paused = true)]
    async fn s20_memory_is_bounded_whatever_the_addresses() {
        let attempts = Attempts::new(3);
        for n in 0..ADDRESSES as u128 + 7 {
            // A network of its own each.
            let address = std::net::Ipv6Addr::from_bits(n << 64);
            attempts.note_failure(Peer::at(address.into()));
        }
        assert!(attempts.by_address.lock().len() <= ADDRESSES);
    }
}
