//! Room for connections: so many in all, and so many from one address.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use tokio::sync::OwnedSemaphorePermit;

use crate::peer::Peer;
use crate::shares::{Share, Shares};

/// Connections by address.
pub(super) struct Places {
    by_address: Arc<Shares<IpAddr>>,
    /// Proxies, whose connections are those of many.
    proxies: Vec<IpNet>,
}

/// The place of one connection, until it is dropped.
pub(super) struct Place {
    _share: Option<Share<IpAddr>>,
    _total: OwnedSemaphorePermit,
}

impl Places {
    pub(super) fn new(per_address: usize, proxies: Vec<IpNet>) -> Self {
        Self { by_address: Shares::new(per_address), proxies }
    }

    /// A place for a connection from this address, if it has not too many.
    pub(super) fn take(&self, address: IpAddr, total: OwnedSemaphorePermit) -> Option<Place> {
        let address = address.to_canonical();
        let is_proxy = self.proxies.iter().any(|net| net.contains(&address));
        let share = match is_proxy {
            true => None,
            false => Some(self.by_address.take(Peer::at(address).network())?),
        };
        Some(Place { _share: share, _total: total })
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
        assert_eq!(places.by_address.holders(), 0);
        assert_eq!(total.available_permits(), 100);
    }
}
