//! Which addresses a handler may dial. Tasks hold URLs from outside, and this machine can reach
//! hosts that their authors must not: itself, its neighbours, the cloud's metadata service.
//!
//! The guard checks the very address that is dialled: [`Resolver`] resolves names and returns only
//! permitted addresses, so a second look-up cannot give another answer.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Permits public addresses, and the networks that the operator allows.
#[derive(Clone, Debug)]
pub struct Guard {
    allow: Arc<[IpNet]>,
}

/// An address that may not be dialled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the address {address} is not public; `--allow-net` of `duly serve` and `duly worker run` \
     permits its network (`duly dev` calls public addresses and loopback only)"
)]
pub struct Refused {
    /// The refused address.
    pub address: IpAddr,
}

impl Guard {
    /// A guard that also permits these networks.
    pub fn new(allow: Vec<IpNet>) -> Self {
        Self { allow: allow.into() }
    }

    /// Checks one address and the IPv4 addresses embedded in it, which a translator or tunnel on
    /// the way would dial.
    pub fn check(&self, address: IpAddr) -> Result<(), Refused> {
        let inner = match address {
            IpAddr::V4(_) => [None, None],
            IpAddr::V6(address) => embedded(address),
        };
        let permitted = self.permits(address)
            && inner.into_iter().flatten().all(|inner| self.permits(IpAddr::V4(inner)));
        if permitted { Ok(()) } else { Err(Refused { address }) }
    }

    /// The permitted addresses of a look-up; an error if all were refused.
    pub fn permitted(
        &self,
        addresses: impl IntoIterator<Item = SocketAddr>,
    ) -> Result<Vec<SocketAddr>, Refused> {
        let mut refused = None;
        let mut permitted = Vec::new();
        for address in addresses {
            match self.check(address.ip()) {
                Ok(()) => permitted.push(address),
                Err(why) => refused = Some(why),
            }
        }
        match refused {
            Some(why) if permitted.is_empty() => Err(why),
            _ => Ok(permitted),
        }
    }

    fn permits(&self, address: IpAddr) -> bool {
        let private = match address {
            IpAddr::V4(address) => PRIVATE_V4.iter().any(|net| net.contains(&address)),
            IpAddr::V6(address) => PRIVATE_V6.iter().any(|net| net.contains(&address)),
        };
        !private || self.allow.iter().any(|net| net.contains(&address))
    }
}

/// Looks names up as the system does and returns the addresses that the guard permits.
#[derive(Clone, Debug)]
pub struct Resolver {
    guard: Guard,
}

impl Resolver {
    /// A resolver with this guard.
    pub fn new(guard: Guard) -> Self {
        Self { guard }
    }
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.guard.clone();
        Box::pin(async move {
            // Port 0 means the port of the URL.
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let permitted: Addrs = Box::new(guard.permitted(found)?.into_iter());
            Ok(permitted)
        })
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6(a: u16, b: u16, c: u16, prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0), prefix)
}

const PRIVATE_V4: [Ipv4Net; 11] = [
    v4(0, 0, 0, 0, 8),      // this host
    v4(10, 0, 0, 0, 8),     // private
    v4(100, 64, 0, 0, 10),  // carrier-grade NAT
    v4(127, 0, 0, 0, 8),    // loopback
    v4(169, 254, 0, 0, 16), // link-local, and the metadata services of clouds
    v4(172, 16, 0, 0, 12),  // private
    v4(192, 0, 0, 0, 24),   // protocol assignments
    v4(192, 168, 0, 0, 16), // private
    v4(198, 18, 0, 0, 15),  // benchmarks
    v4(224, 0, 0, 0, 4),    // multicast
    v4(240, 0, 0, 0, 4),    // reserved and broadcast
];

/// `::ffff:0:0/96`, IPv4-mapped: the form that IPv6 sockets use for IPv4.
const MAPPED: Ipv6Net = Ipv6Net::new_assert(Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96);
/// `::/96`: unspecified, loopback and the old IPv4-compatible form.
const COMPATIBLE: Ipv6Net = v6(0, 0, 0, 96);
/// Translated to IPv4 by a gateway.
const NAT64: Ipv6Net = v6(0x64, 0xff9b, 0, 96);
const SIX_TO_FOUR: Ipv6Net = v6(0x2002, 0, 0, 16);
const TEREDO: Ipv6Net = v6(0x2001, 0, 0, 32);

const PRIVATE_V6: [Ipv6Net; 10] = [
    MAPPED,
    COMPATIBLE,
    NAT64,
    SIX_TO_FOUR,
    TEREDO,
    v6(0x64, 0xff9b, 1, 48), // NAT64 of the local network
    v6(0xfc00, 0, 0, 7),     // unique local
    v6(0xfe80, 0, 0, 10),    // link-local
    v6(0xfec0, 0, 0, 10),    // site-local
    v6(0xff00, 0, 0, 8),     // multicast
];

fn embedded(address: Ipv6Addr) -> [Option<Ipv4Addr>; 2] {
    let bits = address.to_bits();
    // The 32 bits that end this many bits before the end of the address.
    let inner = |from_end: u32| {
        let four = u32::try_from((bits >> from_end) & 0xffff_ffff).expect("32 bits");
        Ipv4Addr::from_bits(four)
    };
    if address.is_unspecified() || address.is_loopback() {
        // They lie in the compatible range, but embed no IPv4 address.
        [None, None]
    } else if [MAPPED, COMPATIBLE, NAT64].iter().any(|net| net.contains(&address)) {
        [Some(inner(0)), None]
    } else if SIX_TO_FOUR.contains(&address) {
        [Some(inner(80)), None]
    } else if TEREDO.contains(&address) {
        // The tunnel's server, and the client behind it with every bit flipped.
        [Some(inner(64)), Some(Ipv4Addr::from_bits(!inner(0).to_bits()))]
    } else {
        [None, None]
    }
}

#[cfg(test)]
mod tests;
