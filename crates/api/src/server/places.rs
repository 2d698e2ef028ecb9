//! Room for connections: so many in all, and so many from one address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;

use crate::peer::Peer;

/// Connections by address.
pub(super) struct Places {
    per_address: usize,
    /// Proxies, whose connections are those of many.
    proxies: Vec<IpNet>,
    taken: Mutex<HashMap<IpAddr, usize>>,
}

/// The place of one connection, until it is dropped.
pub(super) struct Place {
    places: Arc<Places>,
    network: Option<IpAddr>,
    _total: OwnedSemaphorePermit,
}

impl Places {
    pub(super) fn new(per_address: usize, proxies: Vec<IpNet>) -> Arc<Self> {
        Arc::new(Self { per_address, proxies, taken: Mutex::default() })
    }

    /// A place for a connection from this address, if it has not too many.
    pub(super) fn take(
        self: &Arc<Self>,
        address: IpAddr,
        total: OwnedSemaphorePermit,
    ) -> Option<Place> {
        let address = address.to_canonical();
        let is_counted =
            self.per_address > 0 && !self.proxies.iter().any(|net| net.contains(&address));
        let network = is_counted.then(|| Peer::at(address).network());
        if let Some(network) = network {
            let mut taken = self.taken.lock();
            let count = taken.entry(network).or_default();
            if *count >= self.per_address {
                return None;
            }
            *count += 1;
        }
        Some(Place { places: Arc::clone(self), network, _total: total })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(network) = self.network else { return };
        let mut taken = self.places.taken.lock();
        if let Some(count) = taken.get_mut(&network) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test]
    async fn s19_one_address_takes_only_its_share() {
        let total = Arc::new(Semaphore::new(100));
        let places = Places::new(2, vec!["10.0.0.0/8".parse().unwrap()]);
        let take = |address: &str| {
            let permit = Arc::clone(&total).try_acquire_owned().unwrap();
            places.take(address.parse().unwrap(), permit)
        };
        let (first, second) = (take("192.0.2.1"), take("192.0.2.1"));
        assert!(first.is_some() && second.is_some() && take("192.0.2.1").is_none());
        assert!(take("192.0.2.2").is_some(), "another address has its own share");
        let proxied: Vec<_> = (0..5).map(|_| take("10.0.0.1")).collect();
        assert!(proxied.iter().all(Option::is_some), "a proxy brings the connections of many");
        drop(first);
        assert!(take("192.0.2.1").is_some());
        drop((second, proxied));
        assert!(places.taken.lock().is_empty());
        assert_eq!(total.available_permits(), 100);
    }
}
