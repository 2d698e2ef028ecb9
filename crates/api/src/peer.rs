//! Where a request comes from: the address of the connection, or what a configured proxy says.

use std::net::{IpAddr, Ipv6Addr};

use axum::extract::Request;
use axum::http::HeaderMap;
use ipnet::IpNet;

use crate::config::Config;

/// What a proxy appends the address of its client to.
const FORWARDED_FOR: &str = "x-forwarded-for";
/// What a proxy says of the protocol that its client used.
const FORWARDED_PROTO: &str = "x-forwarded-proto";
/// Bits of an IPv6 address that one subscriber has to itself.
const SUBSCRIBER_BITS: u32 = 64;

/// The address of a connection, which the server notes with each of its requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectedFrom(pub(crate) IpAddr);

/// Who is at the other end, as far as an address tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer(IpAddr);

impl Peer {
    /// The peer of a request that came over a connection.
    pub(crate) fn of(config: &Config, request: &Request) -> Option<Self> {
        let ConnectedFrom(address) = request.extensions().get()?;
        Some(Self::at(client(*address, request.headers(), &config.limits.proxies)))
    }

    /// The peer at an address.
    pub(crate) fn at(address: IpAddr) -> Self {
        Self(address.to_canonical())
    }

    /// The address, or of IPv6 the network of one subscriber, who could use a new address each time.
    pub(crate) fn network(self) -> IpAddr {
        match self.0 {
            IpAddr::V4(_) => self.0,
            IpAddr::V6(address) => {
                let mask = u128::MAX << SUBSCRIBER_BITS;
                Ipv6Addr::from_bits(address.to_bits() & mask).into()
            }
        }
    }
}

/// Whether a request came encrypted: over this server's own TLS, or by the word of a configured proxy.
pub(crate) fn is_encrypted(
    config: &Config,
    connected: Option<IpAddr>,
    headers: &HeaderMap,
) -> bool {
    let is_proxy = |address: IpAddr| config.limits.proxies.iter().any(|net| net.contains(&address));
    let is_https = headers.get(FORWARDED_PROTO).is_some_and(|proto| proto.as_bytes() == b"https");
    config.tls.is_some()
        || (is_https && connected.is_some_and(|address| is_proxy(address.to_canonical())))
}

/// The last address that was not written by one of the proxies. What a client wrote itself stands
/// before it, and is not believed.
fn client(connected: IpAddr, headers: &HeaderMap, proxies: &[IpNet]) -> IpAddr {
    let is_proxy = |address: &IpAddr| proxies.iter().any(|net| net.contains(address));
    let mut client = connected.to_canonical();
    if !is_proxy(&client) {
        return client;
    }
    let written: Vec<&str> = headers
        .get_all(FORWARDED_FOR)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .collect();
    for text in written.into_iter().rev() {
        let Ok(address) = text.trim().parse::<IpAddr>() else { return client };
        client = address.to_canonical();
        if !is_proxy(&client) {
            return client;
        }
    }
    client
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(connected: &str, forwarded: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append(FORWARDED_FOR, value.parse().unwrap());
        }
        let proxies = ["10.0.0.0/8".parse().unwrap()];
        client(connected.parse().unwrap(), &headers, &proxies).to_string()
    }

    #[test]
    fn s20_only_configured_proxies_say_where_a_request_comes_from() {
        assert_eq!(found("192.0.2.1", &["198.51.100.9"]), "192.0.2.1", "spoofed");
        assert_eq!(found("10.0.0.1", &["198.51.100.9"]), "198.51.100.9");
        assert_eq!(found("10.0.0.1", &["1.2.3.4, 198.51.100.9, 10.0.0.2"]), "198.51.100.9");
        assert_eq!(found("10.0.0.1", &["1.2.3.4", "198.51.100.9"]), "198.51.100.9");
        assert_eq!(found("10.0.0.1", &["nonsense"]), "10.0.0.1");
        assert_eq!(found("10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(found("::ffff:10.0.0.1", &["198.51.100.9"]), "198.51.100.9");
    }

    #[test]
    fn an_ipv6_subscriber_is_one_peer() {
        let network = |text: &str| Peer::at(text.parse().unwrap()).network().to_string();
        assert_eq!(network("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(network("192.0.2.1"), "192.0.2.1");
    }
}
