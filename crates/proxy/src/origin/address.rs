//! Which addresses belong to the public Internet, and which to this machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is reachable for everyone (the registries of RFC 6890): not private,
/// loopback, link-local or otherwise special. An address of IPv4 inside one of IPv6 counts as what
/// is inside.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        || a == 0
        || a >= 240
        // Shared with a carrier (RFC 6598), for protocols (RFC 6890), for benchmarks (RFC 2544).
        || (a == 100 && (64..128).contains(&b))
        || (a, b, c) == (192, 0, 0)
        || (a == 198 && (18..20).contains(&b));
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.segments();
    let octets = address.octets();
    let inside =
        |at: usize| Ipv4Addr::new(octets[at], octets[at + 1], octets[at + 2], octets[at + 3]);
    match (first, second) {
        // IPv4-compatible, unspecified, loopback (RFC 4291), IPv4-translated (RFC 6052).
        (0, _) => false,
        // NAT64 (RFC 6052) and 6to4 (RFC 3056).
        (0x64, 0xff9b) => octets[4..12] == [0; 8] && is_public_v4(inside(12)),
        (0x2002, _) => is_public_v4(inside(2)),
        // Teredo, documentation, and the rest of 2001::/23 that is no unicast.
        (0x2001, 0x0db8) => false,
        (0x2001, second) if second < 0x0200 => false,
        // Global unicast is 2000::/3.
        _ => first & 0xe000 == 0x2000,
    }
}

/// Whether an address means this machine, or another to each that uses it: loopback, unspecified,
/// link-local, multicast. An address of IPv4 inside one of IPv6 counts as what is inside.
pub(crate) fn is_near(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_near_v4(address),
        IpAddr::V6(address) => is_near_v6(address),
    }
}

fn is_near_v4(address: Ipv4Addr) -> bool {
    // The system connects to itself where 0.0.0.0 is asked for; its whole net has no other use
    // (RFC 6890 §2.2.2).
    address.octets()[0] == 0
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_broadcast()
}

fn is_near_v6(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.segments();
    let octets = address.octets();
    let inside =
        |at: usize| Ipv4Addr::new(octets[at], octets[at + 1], octets[at + 2], octets[at + 3]);
    match (first, second) {
        // Loopback, unspecified, IPv4-compatible (RFC 4291), IPv4-translated (RFC 6052).
        (0, _) => true,
        // NAT64 (RFC 6052) and 6to4 (RFC 3056).
        (0x64, 0xff9b) => is_near_v4(inside(12)),
        (0x2002, _) => is_near_v4(inside(2)),
        // Teredo hides another address (RFC 4380), and no service has one.
        (0x2001, 0) => true,
        // Link-local and multicast.
        _ => first & 0xffc0 == 0xfe80 || first & 0xff00 == 0xff00,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_near_in_any_disguise_and_neighbours_are_not() {
        for text in [
            "127.0.0.1",
            "127.255.255.254",
            "0.0.0.0",
            "0.1.2.3",
            "169.254.169.254",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:0.0.0.0",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "fe80::1",
            "febf::1",
            "ff02::1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::7f00:1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::",
            "2001::1",
        ] {
            assert!(is_near(text.parse().unwrap()), "{text}");
        }
        for text in [
            "10.1.2.3",
            "192.168.0.1",
            "100.64.0.1",
            "8.8.8.8",
            "::ffff:10.0.0.1",
            "fd12::1",
            "2606:4700::1111",
            "64:ff9b::808:808",
            "2002:808:808::1",
            "2001:db8::1",
        ] {
            assert!(!is_near(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn special_addresses_are_not_public_in_any_disguise() {
        for text in [
            "127.0.0.1",
            "10.1.2.3",
            "172.31.255.255",
            "192.168.0.1",
            "169.254.169.254",
            "0.0.0.0",
            "100.64.0.1",
            "198.19.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "192.0.0.8",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "64:ff9b::7f00:1",
            "64:ff9b::a00:1",
            "2002:7f00:1::",
            "2001:db8::1",
            "2001::1",
            "64:ff9b:1::1",
        ] {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
        for text in
            ["8.8.8.8", "100.128.0.1", "2606:4700::1111", "64:ff9b::808:808", "2002:808:808::1"]
        {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
    }
}
