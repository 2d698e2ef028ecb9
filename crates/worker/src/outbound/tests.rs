use super::*;

/// One or more addresses of every network that must not be reached.
const REFUSED: [&str; 62] = [
    "127.0.0.1",
    "127.255.255.255",
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "192.168.255.255",
    "100.64.0.1",
    "100.127.255.255",
    "169.254.0.1",
    "169.254.169.254",
    "192.0.0.1",
    "192.0.0.192",
    "198.18.0.1",
    "198.19.255.255",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fc00::1",
    "fd00:ec2::254",
    "fdff:ffff::1",
    "fe80::1",
    "febf::1",
    "fec0::1",
    "feff::1",
    "ff02::1",
    "ffff::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:8.8.8.8",
    "::127.0.0.1",
    "::8.8.8.8",
    "64:ff9b::7f00:1",
    "64:ff9b::10.0.0.1",
    "64:ff9b::8.8.8.8",
    "64:ff9b:1::1",
    "64:ff9b:1:ffff::10.0.0.1",
    "2002:7f00:1::1",
    "2002:a00:1::",
    "2002:808:808::1",
    "2001::1",
    "2001:0:808:808:0:0:80ff:fffe",
    "2001:0:7f00:1::",
    "2001:0:808:808:0:0:f5ff:fffe",
    "192.0.2.1",
    "192.88.99.1",
    "198.51.100.1",
    "203.0.113.1",
    "::ffff:0:127.0.0.1",
    "::ffff:0:8.8.8.8",
    "100::1",
    "2001:2::1",
    "2001:10::1",
    "2001:db8::1",
    "3fff::1",
    "5f00::1",
];

const PUBLIC: [&str; 13] = [
    "1.0.0.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.1",
    "100.128.0.1",
    "126.255.255.255",
    "172.32.0.1",
    "192.0.1.1",
    "198.20.0.1",
    "223.255.255.255",
    "2001:4860:4860::8888",
    "2606:4700::1111",
    "2a00::1",
];

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn allowing(nets: &[&str]) -> Guard {
    Guard::new(nets.iter().map(|net| net.parse().unwrap()).collect())
}

#[test]
fn s12_public_addresses_pass_and_others_do_not() {
    let guard = allowing(&[]);
    for address in REFUSED.map(ip) {
        assert_eq!(guard.check(address), Err(Refused::Address(address)));
    }
    for address in PUBLIC.map(ip) {
        assert_eq!(guard.check(address), Ok(()));
    }
}

#[test]
fn s12_the_operator_can_permit_a_network() {
    let guard = allowing(&["127.0.0.0/8", "::1/128", "10.1.0.0/16"]);
    for permitted in ["127.0.0.1", "127.9.9.9", "::1", "10.1.255.255"] {
        assert_eq!(guard.check(ip(permitted)), Ok(()), "{permitted}");
    }
    for other in ["10.2.0.1", "::2", "192.168.0.1", "::ffff:127.0.0.1", "::127.0.0.1"] {
        assert!(guard.check(ip(other)).is_err(), "{other}");
    }
    let all = allowing(&["0.0.0.0/0", "::/0"]);
    for address in REFUSED.map(ip) {
        assert_eq!(all.check(address), Ok(()));
    }
}

#[test]
fn s12_a_permitted_translator_does_not_lead_to_a_private_address() {
    let guard = allowing(&["64:ff9b::/96", "2002::/16", "2001::/32", "::ffff:0:0/96", "::/96"]);
    for outside in [
        "64:ff9b::8.8.8.8",
        "2002:808:808::1",
        "2001:0:808:808:0:0:f7f7:f7f7",
        "::ffff:8.8.8.8",
        "::8.8.8.8",
    ] {
        assert_eq!(guard.check(ip(outside)), Ok(()), "{outside}");
    }
    for inside in [
        "64:ff9b::10.0.0.1",
        "2002:a00:1::1",
        "2001:0:a00:1:0:0:f7f7:f7f7",
        "2001:0:808:808:0:0:f5ff:fffe",
        "::ffff:10.0.0.1",
        "::10.0.0.1",
    ] {
        assert!(guard.check(ip(inside)).is_err(), "{inside}");
    }
}

#[test]
fn s13_a_mixed_answer_is_refused_whole() {
    let guard = allowing(&[]);
    let socket = |text: &str| SocketAddr::new(ip(text), 0);
    let (public, private, mapped) = (socket("8.8.8.8"), socket("10.0.0.1"), socket("::ffff:a00:1"));
    let refused = |address: SocketAddr| Err(Refused::Address(address.ip()));
    assert_eq!(guard.permitted([public, public]), Ok(vec![public, public]));
    assert_eq!(guard.permitted([public, private]), refused(private));
    assert_eq!(guard.permitted([private, public, mapped]), refused(private));
    assert_eq!(guard.permitted([public, mapped]), refused(mapped));
    assert_eq!(guard.permitted([]), Ok(vec![]));
}

#[test]
fn s14_public_addresses_are_dialled_on_listed_ports_alone() {
    let guard = allowing(&["10.1.0.0/16"]);
    let at = |port, address| guard.at_port(port).check(ip(address));
    for port in PORTS {
        assert_eq!(at(port, "8.8.8.8"), Ok(()), "{port}");
    }
    for port in [0, 21, 22, 25, 110, 3306, 5432, 6379, 8081, 9200, 11211] {
        for address in ["8.8.8.8", "2606:4700::1111"] {
            assert_eq!(at(port, address), Err(Refused::Port(ip(address))), "{port}");
        }
        assert_eq!(at(port, "10.1.2.3"), Ok(()), "an allowed network has all ports");
        assert_eq!(at(port, "10.2.0.1"), Err(Refused::Address(ip("10.2.0.1"))), "{port}");
    }
    let other = allowing(&[]).with_ports(vec![9000]);
    assert_eq!(other.at_port(9000).check(ip("8.8.8.8")), Ok(()));
    assert!(other.at_port(443).check(ip("8.8.8.8")).is_err());
}

#[test]
fn s14_an_allowed_gateway_does_not_open_the_ports_behind_it() {
    let guard = allowing(&["64:ff9b::/96"]);
    let behind = ip("64:ff9b::8.8.8.8");
    assert_eq!(guard.at_port(443).check(behind), Ok(()));
    assert_eq!(guard.at_port(25).check(behind), Err(Refused::Port(behind)));
}
