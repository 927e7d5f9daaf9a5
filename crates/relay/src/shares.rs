//! What others need is given out in shares: alone somebody may have nearly all of it, but nobody
//! has so much that others get none.
//!
//! A holder (a client at the edge; a peer, and each edge of it, at the gateway) gets another
//! exchange while it has fewer than some times what is free. So one alone gets 7 of 8 places, the
//! next 7 of 8 of what that left, and so on, and whoever has none gets one to the last. Tunnels and
//! event streams, which may stay for hours, have places of their own. Where a holder gets no more,
//! what it has and does not use makes room: answers whose edge is gone, what is long still.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

use crate::http::Traits;
use crate::http::privacy::Client;

/// A client may have so many times what is free: alone 7 of 8.
const CLIENT_TIMES: usize = 7;
/// An edge, alone 15 of 16: more than one of its clients, so that this leaves something for the
/// others at the gateway too.
const EDGE_TIMES: usize = 15;
/// A peer, which may be several edges with one key: all of them together 31 of 32.
const PEER_TIMES: usize = 31;
/// Of so many or more, the last that is free is for whoever has none.
const FEW: usize = 8;
/// Leading bits of an IPv6 address that a host's owner is given at least (RFC 6177 §2).
const OWNED_BITS: u32 = 64;

/// What an exchange takes a place of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// A request and its answer.
    #[default]
    Passing,
    /// A tunnel or an event stream.
    Standing,
}

/// Who has places.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Holder {
    Client(String),
    Peer(String),
    Edge(u64),
}

impl Holder {
    fn times(&self) -> usize {
        match self {
            Self::Client(_) => CLIENT_TIMES,
            Self::Edge(_) => EDGE_TIMES,
            Self::Peer(_) => PEER_TIMES,
        }
    }
}

/// A place that an exchange has.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExchangePlace {
    pub(crate) class: Class,
    holders: Vec<Holder>,
}

impl ExchangePlace {
    fn new(traits: Traits, holders: Vec<Holder>) -> Self {
        let class = if traits.tunnel { Class::Standing } else { Class::Passing };
        Self { class, holders }
    }

    /// Edge: the place that a client's request wants.
    pub(crate) fn of_client(client: Option<&Client>, traits: Traits) -> Self {
        let client = client.map(|client| owner(&client.name)).unwrap_or_default();
        Self::new(traits, vec![Holder::Client(client)])
    }

    /// Gateway: the place that a request wants of this edge of a peer.
    pub(crate) fn of_edge(peer: String, instance: u64, traits: Traits) -> Self {
        Self::new(traits, vec![Holder::Peer(peer), Holder::Edge(instance)])
    }

    /// The place of the same holders among tunnels and event streams.
    pub(crate) fn standing(&self) -> Self {
        Self { class: Class::Standing, ..self.clone() }
    }

    /// Whether the first of the holders is the same.
    pub(crate) fn is_of(&self, other: &Self) -> bool {
        self.owner() == other.owner()
    }

    /// Whose it is first of all.
    pub(crate) fn owner(&self) -> Option<&Holder> {
        self.holders.first()
    }
}

/// Who has how many places. Bounded as open exchanges are.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    taken: BTreeMap<Class, usize>,
    of: BTreeMap<(Class, Holder), usize>,
}

impl Shares {
    /// Exchanges that are neither tunnels nor event streams.
    pub(crate) fn passing(&self) -> usize {
        self.taken(Class::Passing)
    }

    fn taken(&self, class: Class) -> usize {
        self.taken.get(&class).copied().unwrap_or(0)
    }

    pub(crate) fn enter(&mut self, place: &ExchangePlace) {
        *self.taken.entry(place.class).or_default() += 1;
        for holder in &place.holders {
            *self.of.entry((place.class, holder.clone())).or_default() += 1;
        }
    }

    pub(crate) fn leave(&mut self, place: &ExchangePlace) {
        if let Some(taken) = self.taken.get_mut(&place.class) {
            *taken = taken.saturating_sub(1);
        }
        for holder in &place.holders {
            let key = (place.class, holder.clone());
            if let Some(of) = self.of.get_mut(&key) {
                *of -= 1;
                if *of == 0 {
                    self.of.remove(&key);
                }
            }
        }
    }

    /// How many the first of the holders has.
    pub(crate) fn has(&self, place: &ExchangePlace) -> usize {
        place.holders.first().map_or(0, |holder| self.count(place.class, holder))
    }

    fn count(&self, class: Class, holder: &Holder) -> usize {
        self.of.get(&(class, holder.clone())).copied().unwrap_or(0)
    }

    /// Whether there is one more of `most`, for anybody and for these.
    pub(crate) fn check(&self, place: &ExchangePlace, most: usize) -> Result<(), Full> {
        let free = most.saturating_sub(self.taken(place.class));
        if free == 0 {
            return Err(Full::ForAll);
        }
        let may = |holder: &Holder| {
            let has = self.count(place.class, holder);
            let last = free == 1 && most >= FEW;
            has < holder.times() * free && !(last && has > 0)
        };
        if place.holders.iter().all(may) { Ok(()) } else { Err(Full::ForThese) }
    }
}

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// None is free.
    ForAll,
    /// What is free is for others.
    ForThese,
}

/// A client's address as far as one owner can make addresses up; other names as they are.
fn owner(client: &str) -> String {
    match client.parse() {
        Ok(IpAddr::V6(address)) if address.to_ipv4_mapped().is_none() => {
            Ipv6Addr::from(u128::from(address) >> OWNED_BITS << OWNED_BITS).to_string()
        }
        _ => client.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(client: &str) -> ExchangePlace {
        ExchangePlace::new(Traits::default(), vec![Holder::Client(client.to_owned())])
    }

    /// As many as `client` gets.
    fn takes(shares: &mut Shares, client: &str, most: usize) -> usize {
        let mut count = 0;
        while shares.check(&place(client), most).is_ok() {
            shares.enter(&place(client));
            count += 1;
        }
        count
    }

    #[test]
    fn one_alone_gets_nearly_all_and_others_get_some() {
        let mut shares = Shares::default();
        let got = ["a", "b", "c", "d", "e"].map(|client| takes(&mut shares, client, 256));
        assert_eq!(got, [224, 28, 3, 1, 0]);
        // What one gives back, others may have.
        (0..100).for_each(|_| shares.leave(&place("a")));
        assert_eq!(takes(&mut shares, "e", 256), 88);
        assert_eq!(shares.check(&place("a"), 256), Err(Full::ForThese));
        for (client, count) in [("a", 124), ("b", 28), ("c", 3), ("d", 1), ("e", 88)] {
            (0..count).for_each(|_| shares.leave(&place(client)));
        }
        assert!(shares.of.is_empty() && shares.passing() == 0);
    }

    #[test]
    fn small_bounds_leave_something_for_all() {
        for most in 1..20 {
            let mut shares = Shares::default();
            let first = takes(&mut shares, "a", most);
            assert!(first >= (most * 7 / 8).max(1), "{first} of {most}");
            assert!(most < FEW || takes(&mut shares, "b", most) >= 1, "none of {most}");
        }
    }

    #[test]
    fn an_owner_of_many_addresses_is_one_client() {
        assert_eq!(owner("2001:db8:1:2::1"), owner("2001:db8:1:2:9::8"));
        assert_ne!(owner("2001:db8:1:2::1"), owner("2001:db8:1:3::1"));
        assert_ne!(owner("::ffff:192.0.2.1"), owner("::ffff:192.0.2.2"));
        assert_eq!(owner("192.0.2.1"), "192.0.2.1");
    }
}
