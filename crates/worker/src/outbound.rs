//! Which addresses a handler may dial. Tasks hold URLs from outside, and this machine can reach
//! hosts that their authors must not: itself, its neighbours, the cloud's metadata service.
//!
//! The guard checks the very address that is dialled: [`Resolver`] resolves names and returns only
//! permitted addresses, so a second look-up cannot give another answer.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// The ports of public addresses that may be dialled, unless the operator names others. Most other
/// services answer to what an HTTP client sends, and some obey.
pub const PORTS: [u16; 4] = [80, 443, 8080, 8443];

/// Permits public addresses on some ports, and the networks that the operator allows on all ports.
#[derive(Clone, Debug)]
pub struct Guard {
    allow: Arc<[IpNet]>,
    ports: Arc<[u16]>,
    /// Whether the port in question is one of `ports`.
    is_listed_port: bool,
}

/// An address that may not be dialled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is not public.
    #[error(
        "the address {0} is not public; `--allow-net` of `duly serve` and `duly worker run` \
         permits its network (`duly dev` calls public addresses and loopback only)"
    )]
    Address(IpAddr),
    /// It is public, but tasks may call it on other ports only.
    #[error(
        "the port is none of those that may be called at the public address {0}; `--allow-port` \
         of `duly serve` and `duly worker run` permits it"
    )]
    Port(IpAddr),
}

impl Guard {
    /// A guard that also permits these networks, and public addresses on [`PORTS`].
    pub fn new(allow: Vec<IpNet>) -> Self {
        Self { allow: allow.into(), ports: PORTS.into(), is_listed_port: true }
    }

    /// The same guard with these ports of public addresses.
    #[must_use]
    pub fn with_ports(self, ports: Vec<u16>) -> Self {
        Self { ports: ports.into(), ..self }
    }

    /// The guard for connections to this port.
    #[must_use]
    pub fn at_port(&self, port: u16) -> Self {
        self.at(self.lists(port))
    }

    pub(crate) fn lists(&self, port: u16) -> bool {
        self.ports.contains(&port)
    }

    /// The guard for all ports that are listed, or for all others.
    pub(crate) fn at(&self, is_listed_port: bool) -> Self {
        Self { is_listed_port, ..self.clone() }
    }

    /// Checks one address and the IPv4 addresses embedded in it, which a translator or tunnel on
    /// the way would dial.
    pub fn check(&self, address: IpAddr) -> Result<(), Refused> {
        let inner = match address {
            IpAddr::V4(_) => [None, None],
            IpAddr::V6(address) => embedded(address),
        };
        let inner = inner.into_iter().flatten().map(IpAddr::V4);
        let mut all = std::iter::once(address).chain(inner);
        if all.clone().any(|one| !is_public(one) && !self.allows(one)) {
            Err(Refused::Address(address))
        } else if self.is_listed_port || all.all(|one| self.allows(one)) {
            Ok(())
        } else {
            Err(Refused::Port(address))
        }
    }

    /// The addresses of a look-up, if all of them are permitted. An answer that mixes public and
    /// private addresses is no mistake of an honest name.
    pub fn permitted(
        &self,
        addresses: impl IntoIterator<Item = SocketAddr>,
    ) -> Result<Vec<SocketAddr>, Refused> {
        let check = |address: SocketAddr| self.check(address.ip()).map(|()| address);
        addresses.into_iter().map(check).collect()
    }

    fn allows(&self, address: IpAddr) -> bool {
        self.allow.iter().any(|net| net.contains(&address))
    }
}

/// Looks names up and returns their addresses if the guard permits them.
#[derive(Clone)]
pub struct Resolver {
    guard: Guard,
    names: Arc<dyn Resolve>,
}

impl Resolver {
    /// A resolver with this guard, on top of another one.
    pub fn new(guard: Guard, names: Arc<dyn Resolve>) -> Self {
        Self { guard, names }
    }
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (guard, looking) = (self.guard.clone(), self.names.resolve(name));
        Box::pin(async move {
            let permitted: Addrs = Box::new(guard.permitted(looking.await?)?.into_iter());
            Ok(permitted)
        })
    }
}

/// Looks names up as the system does.
#[derive(Clone, Copy, Debug)]
pub struct SystemNames;

impl Resolve for SystemNames {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            // Port 0 means the port of the URL.
            let found: Vec<_> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let found: Addrs = Box::new(found.into_iter());
            Ok(found)
        })
    }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !SPECIAL_V4.iter().any(|net| net.contains(&address)),
        IpAddr::V6(address) => {
            GLOBAL_V6.contains(&address) && !SPECIAL_V6.iter().any(|net| net.contains(&address))
        }
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6(a: u16, b: u16, c: u16, prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0), prefix)
}

/// IPv4 networks that are not of the public internet.
const SPECIAL_V4: [Ipv4Net; 15] = [
    v4(0, 0, 0, 0, 8),       // this host
    v4(10, 0, 0, 0, 8),      // private
    v4(100, 64, 0, 0, 10),   // carrier-grade NAT
    v4(127, 0, 0, 0, 8),     // loopback
    v4(169, 254, 0, 0, 16),  // link-local, and the metadata services of clouds
    v4(172, 16, 0, 0, 12),   // private
    v4(192, 0, 0, 0, 24),    // protocol assignments
    v4(192, 0, 2, 0, 24),    // documentation
    v4(192, 88, 99, 0, 24),  // relays of 6to4
    v4(192, 168, 0, 0, 16),  // private
    v4(198, 18, 0, 0, 15),   // benchmarks
    v4(198, 51, 100, 0, 24), // documentation
    v4(203, 0, 113, 0, 24),  // documentation
    v4(224, 0, 0, 0, 4),     // multicast
    v4(240, 0, 0, 0, 4),     // reserved and broadcast
];

/// `::ffff:0:0/96`, IPv4-mapped: the form that IPv6 sockets use for IPv4.
const MAPPED: Ipv6Net = Ipv6Net::new_assert(Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96);
/// `::/96`: unspecified, loopback and the old IPv4-compatible form.
const COMPATIBLE: Ipv6Net = v6(0, 0, 0, 96);
/// `::ffff:0:0:0/96`, IPv4-translated.
const TRANSLATED: Ipv6Net = Ipv6Net::new_assert(Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, 0, 0), 96);
/// Translated to IPv4 by a gateway.
const NAT64: Ipv6Net = v6(0x64, 0xff9b, 0, 96);
const SIX_TO_FOUR: Ipv6Net = v6(0x2002, 0, 0, 16);
const TEREDO: Ipv6Net = v6(0x2001, 0, 0, 32);

/// All that is assigned for the public internet. Outside of it lie loopback, link-local, unique local,
/// site-local, multicast, the forms above, and NAT64 of local networks.
const GLOBAL_V6: Ipv6Net = v6(0x2000, 0, 0, 3);

/// What lies within, but is not of the public internet.
const SPECIAL_V6: [Ipv6Net; 4] = [
    v6(0x2001, 0, 0, 23),     // protocol assignments, with Teredo
    v6(0x2001, 0xdb8, 0, 32), // documentation
    SIX_TO_FOUR,
    v6(0x3fff, 0, 0, 20), // documentation
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
    } else if [MAPPED, COMPATIBLE, TRANSLATED, NAT64].iter().any(|net| net.contains(&address)) {
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
