//! Where hosts are reached: the addresses of both kinds, and their text.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use super::host::Side;
use super::netlink::Mac;
use super::wire::MAX_LINKS;

/// Each pair of hosts has a block of four IPv4 addresses: the network's, a, b, and broadcast.
pub(super) const IPV4_PREFIX: u8 = 30;
/// Each pair has an IPv6 network of its own, and so has each interface for its link-local address
/// (RFC 4291 §2.5.1).
pub(super) const IPV6_PREFIX: u8 = 64;
/// The network of link-local addresses (RFC 4291 §2.5.6).
pub(super) const LINK_LOCAL: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0);
/// All labs' unique local prefix (RFC 4193 §3.1): "lwlab" in ASCII as its 40 bits, so that an
/// address is known again. Behind it stands the number of the pair.
const UNIQUE_LOCAL: [u16; 3] = [0xfd6c, 0x776c, 0x6162];

/// Where one host is reached over the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// Its IPv4 address.
    pub v4: Ipv4Addr,
    /// Its unique local IPv6 address; none where the machine or the link has no IPv6.
    pub v6: Option<Ipv6Addr>,
}

/// As programs pass it on: the IPv4 address, and behind a comma that of IPv6 where there is one.
impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.v6 {
            Some(v6) => write!(f, "{},{v6}", self.v4),
            None => write!(f, "{}", self.v4),
        }
    }
}

impl FromStr for Reach {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (v4, v6) = match text.split_once(',') {
            Some((v4, v6)) => (v4, Some(v6)),
            None => (text, None),
        };
        let bad = |_| format!("'{text}' is no address: give IPV4 or IPV4,IPV6");
        Ok(Self { v4: v4.parse().map_err(bad)?, v6: v6.map(str::parse).transpose().map_err(bad)? })
    }
}

/// All addresses of a host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addresses {
    pub(super) v4: Ipv4Addr,
    /// Unique local.
    pub(super) v6: Ipv6Addr,
    pub(super) link_local: Ipv6Addr,
}

impl Addresses {
    /// Of a host of the `index`th pair. They are used again after [`MAX_LINKS`] others.
    pub(super) fn new(index: usize, side: Side) -> Self {
        let pair = u16::try_from(index % MAX_LINKS).unwrap_or(u16::MAX);
        let host = 1 + side as u16;
        let base = u32::from(Ipv4Addr::new(10, 66, 0, 0));
        let v4 = base.saturating_add(u32::from(pair) * 4).saturating_add(host.into());
        let [first, second, third] = UNIQUE_LOCAL;
        Self {
            v4: v4.into(),
            v6: Ipv6Addr::new(first, second, third, pair, 0, 0, 0, host),
            link_local: Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, host),
        }
    }

    /// What is reached by everybody on the IPv4 network.
    pub(super) fn broadcast(&self) -> Ipv4Addr {
        let hosts = u32::MAX.checked_shr(IPV4_PREFIX.into()).unwrap_or_default();
        Ipv4Addr::from(u32::from(self.v4) | hosts)
    }

    /// The IPv6 network that both hosts are on.
    pub(super) fn network(&self) -> Ipv6Addr {
        let [first, second, third, pair, ..] = self.v6.segments();
        Ipv6Addr::new(first, second, third, pair, 0, 0, 0, 0)
    }

    /// A locally administered MAC address that follows from the IP address.
    pub(super) fn mac(&self) -> Mac {
        let [o0, o1, o2, o3] = self.v4.octets();
        [0x02, 0, o0, o1, o2, o3]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_has_addresses_of_its_own() {
        let all: Vec<Addresses> = (0..MAX_LINKS)
            .flat_map(|index| Side::BOTH.map(|side| Addresses::new(index, side)))
            .collect();
        assert_eq!(all[0].v4, Ipv4Addr::new(10, 66, 0, 1));
        assert_eq!(all[3].v4, Ipv4Addr::new(10, 66, 0, 6));
        assert_eq!(all[3].v6.to_string(), "fd6c:776c:6162:1::2");
        assert_eq!(all[3].network().to_string(), "fd6c:776c:6162:1::");
        assert_eq!(all[3].link_local.to_string(), "fe80::2");
        assert_eq!(all[3].broadcast(), Ipv4Addr::new(10, 66, 0, 7));
        assert_eq!(all[0].broadcast(), all[1].broadcast());
        assert!(all.iter().all(|one| one.v4.is_private() && one.v6.is_unique_local()));
        let mut distinct: Vec<_> = all.iter().map(|one| (one.v4, one.v6)).collect();
        distinct.sort();
        distinct.dedup_by(|one, other| one.0 == other.0 || one.1 == other.1);
        assert_eq!(distinct.len(), 2 * MAX_LINKS);
    }

    #[test]
    fn where_a_host_is_reached_comes_through_as_text() {
        for text in ["10.66.0.1", "10.66.0.1,fd6c:776c:6162::1"] {
            assert_eq!(text.parse::<Reach>().unwrap().to_string(), text);
        }
        for bad in ["", "x", "10.66.0.1,", "10.66.0.1,x", "fd6c::1", "10.66.0.1,::1,::2"] {
            assert!(bad.parse::<Reach>().unwrap_err().contains("give IPV4"), "{bad}");
        }
    }
}
