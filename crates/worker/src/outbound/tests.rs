use super::*;

/// One or more addresses of every network that must not be reached.
const REFUSED: [&str; 50] = [
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
fn public_addresses_pass_and_others_do_not() {
    let guard = allowing(&[]);
    for address in REFUSED.map(ip) {
        assert_eq!(guard.check(address), Err(Refused { address }));
    }
    for address in PUBLIC.map(ip) {
        assert_eq!(guard.check(address), Ok(()));
    }
}

#[test]
fn the_operator_can_permit_a_network() {
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
fn a_permitted_translator_does_not_lead_to_a_private_address() {
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
fn a_mixed_answer_keeps_what_is_permitted() {
    let guard = allowing(&[]);
    let socket = |text: &str| SocketAddr::new(ip(text), 0);
    let (public, private, mapped) = (socket("8.8.8.8"), socket("10.0.0.1"), socket("::ffff:a00:1"));
    assert_eq!(guard.permitted([private, public, mapped]), Ok(vec![public]));
    assert_eq!(guard.permitted([private]), Err(Refused { address: private.ip() }));
    assert_eq!(guard.permitted([private, mapped]), Err(Refused { address: mapped.ip() }));
    assert_eq!(guard.permitted([]), Ok(vec![]));
}
