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
use std::time::Duration;

use coding::ExchangeId;
use record::event::Fact;

use crate::Relay;
use crate::api::{Cause, CauseKind};
use crate::carrier::Carrier;
use crate::config::{MIN_IDLE, MIN_STUCK};
use crate::exchange::{Exchange, Stage};
use crate::http::Traits;
use crate::http::privacy::Client;
use crate::ids::CarrierId;
use crate::timers::Key;

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
/// A clock that is looked at so late has leapt, or its machine has slept.
const MAX_LATE: Duration = Duration::from_secs(60);

/// What an exchange takes a place of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    /// A request and its answer.
    #[default]
    Passing,
    /// A tunnel or an event stream.
    Standing,
}

/// Who has places.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Holder {
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
    class: Class,
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

    fn is_of(&self, other: &Self) -> bool {
        self.holders.first() == other.holders.first()
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

    fn enter(&mut self, place: &ExchangePlace) {
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
    fn has(&self, place: &ExchangePlace) -> usize {
        place.holders.first().map_or(0, |holder| self.count(place.class, holder))
    }

    fn count(&self, class: Class, holder: &Holder) -> usize {
        self.of.get(&(class, holder.clone())).copied().unwrap_or(0)
    }

    /// Whether there is one more of `most`, for anybody and for these.
    fn check(&self, place: &ExchangePlace, most: usize) -> Result<(), Full> {
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
enum Full {
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

impl Relay {
    /// Gateway: the place that an edge's request wants.
    pub(crate) fn place_of_edge(
        &self,
        carrier: CarrierId,
        id: ExchangeId,
        traits: Traits,
    ) -> ExchangePlace {
        let peer = self.carriers.get(&carrier).map(|carrier| carrier.peer.clone());
        let holders = vec![Holder::Peer(peer.unwrap_or_default()), Holder::Edge(id.instance)];
        ExchangePlace::new(traits, holders)
    }

    /// The exchange has its place, and a clock.
    pub(crate) fn take_place(&mut self, now: Duration, id: ExchangeId, place: ExchangePlace) {
        self.shares.enter(&place);
        if let Some(exchange) = self.exchanges.get_mut(&id) {
            exchange.place = place;
        }
        self.look_at_still(now, id);
    }

    /// Makes room for one more where that can be; else why there is none, in one sentence.
    pub(crate) fn find_room(&mut self, now: Duration, place: &ExchangePlace) -> Result<(), String> {
        let (most, setting, what) = match place.class {
            Class::Passing => (self.config.max_exchanges, "max_exchanges", "exchanges"),
            Class::Standing => {
                (self.config.max_tunnels, "max_tunnels", "tunnels and event streams")
            }
        };
        let mut fits = self.shares.check(place, most);
        while fits.is_err() {
            let Some(goes) = self.dispensable(now, place) else { break };
            self.give_up_for_another(now, goes, setting);
            fits = self.shares.check(place, most);
        }
        let who = if self.config.role == proto::exchange::Role::Edge { "client" } else { "edge" };
        let reason = match fits {
            Ok(()) => return Ok(()),
            Err(Full::ForAll) => {
                format!("{most} {what} are open, as many as may be ({setting}); try later")
            }
            Err(Full::ForThese) => {
                let has = self.shares.has(place);
                let rest = "and the rest is for others; try later";
                format!("this {who} has {has} of {most} {what} ({setting}), {rest}")
            }
        };
        let (limit, consequence) = (setting.to_owned(), "a request gets 503".to_owned());
        self.event(now, Fact::LimitReached { limit, consequence });
        Err(reason)
    }

    /// What may go for one more: the oldest answer whose edge is gone, else what is longest still.
    /// It is the same holder's, or that of one who has more.
    fn dispensable(&self, now: Duration, place: &ExchangePlace) -> Option<ExchangeId> {
        let same_class = || self.exchanges.values().filter(|one| one.place.class == place.class);
        let of = |holder: &ExchangePlace| {
            let its = || same_class().filter(|one| one.place.is_of(holder));
            let detached = its().filter(|one| one.stage == Stage::Detached);
            let still = its().filter(|one| one.is_dispensable(now));
            let longest = || still.min_by_key(|one| one.took.max(one.moved));
            detached.min_by_key(|one| one.started).or_else(longest).map(|one| one.id)
        };
        let of_greediest = || {
            let may_go = |one: &&Exchange| one.stage == Stage::Detached || one.is_dispensable(now);
            let has = |one: &&Exchange| self.shares.has(&one.place);
            let one = same_class().filter(may_go).max_by_key(has)?;
            of(&one.place).filter(|_| has(&one) > self.shares.has(place) + 1)
        };
        of(place).or_else(of_greediest)
    }

    fn give_up_for_another(&mut self, now: Duration, id: ExchangeId, setting: &str) {
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let (kind, reason) = if exchange.stage == Stage::Detached {
            let reason = "the edge did not come back before others wanted the place".to_owned();
            (CauseKind::CarrierLost, format!("{reason} ({setting})"))
        } else {
            let still = now.saturating_sub(exchange.took).as_secs();
            let reason = format!("nobody took or gave for {still} s, and another wants the place");
            (CauseKind::Limit, format!("{reason} ({setting})"))
        };
        self.refuse(now, id, &Cause { kind, reason });
    }

    /// The head of an answer tells whether it has an end of its own. One that has none takes a
    /// place among its like, if there is one.
    pub(crate) fn note_answer_to_shares(&mut self, now: Duration, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get_mut(&id).filter(|one| one.endless) else { return };
        let standing = ExchangePlace { class: Class::Standing, ..exchange.place.clone() };
        if self.shares.check(&standing, self.config.max_tunnels).is_ok() {
            self.shares.leave(&exchange.place);
            self.shares.enter(&standing);
            exchange.place = standing;
        }
        self.look_at_still(now, id);
    }

    /// Ends an exchange through which nothing has passed for as long as that may be, else looks
    /// again when that could be.
    pub(crate) fn look_at_still(&mut self, now: Duration, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let tunnel = exchange.traits.tunnel || exchange.endless;
        let bound = if tunnel { self.config.tunnel_timeout } else { self.config.still_timeout };
        let due = exchange.took.max(exchange.moved) + bound;
        if now < due || now > due + MAX_LATE {
            // Who is woken so late has slept with its machine: the time begins anew.
            let due = if now < due { due } else { now + bound };
            return self.timers.set(Key::Still(id), Some(due));
        }
        let limit = if tunnel { "tunnel_timeout" } else { "still_timeout" };
        let (limit, consequence) = (limit.to_owned(), "exchange ended".to_owned());
        self.event(now, Fact::LimitReached { limit, consequence });
        let setting = if tunnel { " (tunnel_timeout)" } else { "" };
        let reason = format!("nothing passed for {} s{setting}", bound.as_secs_f64());
        self.refuse(now, id, &Cause { kind: CauseKind::OriginTimeout, reason });
    }

    /// Gateway: `new` has said HELLO. Where that makes more carriers than there may be, the peer
    /// with most of them gives one up: the oldest that carries nothing, else the newest.
    pub(crate) fn share_carriers(&mut self, now: Duration, new: CarrierId) {
        let most = self.config.max_carriers;
        let Some(ours) = self.carriers.get(&new).filter(|_| self.carriers.len() > most) else {
            return;
        };
        let mut of: BTreeMap<&str, usize> = BTreeMap::new();
        for carrier in self.carriers.values() {
            *of.entry(&carrier.peer).or_default() += 1;
        }
        let own = ours.peer.as_str();
        let greediest = of.iter().max_by_key(|(peer, count)| (**count, **peer == own));
        let Some(peer) = greediest.map(|(peer, _)| (*peer).to_owned()) else { return };
        let theirs = || self.carriers.iter().filter(|(_, carrier)| carrier.peer == peer);
        let carries =
            |carrier: &Carrier| !carrier.exchanges.is_empty() || !carrier.replays.is_empty();
        let idle = theirs().find(|(id, carrier)| **id != new && !carries(carrier));
        let Some(goes) = idle.or_else(|| theirs().next_back()).map(|(id, _)| *id) else { return };
        let limit = "max_carriers".to_owned();
        let consequence = "a carrier of the peer that has most was closed".to_owned();
        self.event(now, Fact::LimitReached { limit, consequence });
        let reason =
            format!("{most} carriers are open (max_carriers), and '{peer}' has most of them");
        self.close_carrier(now, goes, &reason);
    }
}

impl Exchange {
    /// Whether it has been still for so long that another may have its place: a tunnel that idles,
    /// an answer whose client does not read. Nothing whose answer has not begun: it was forwarded.
    fn is_dispensable(&self, now: Duration) -> bool {
        let since = |at: Duration| now.saturating_sub(at);
        self.status != 0
            && match self.place.class {
                Class::Standing => since(self.took.max(self.moved)) >= MIN_IDLE,
                Class::Passing => self.incoming.waits() && since(self.took) >= MIN_STUCK,
            }
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
