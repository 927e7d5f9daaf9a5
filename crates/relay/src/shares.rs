//! What others need is given out in shares: nobody can have all of it while others want some.

use std::collections::BTreeMap;
use std::time::Duration;

use record::event::Fact;

use crate::Relay;
use crate::api::CarrierId;
use crate::carrier::Carrier;

impl Relay {
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
        let limit = "carriers".to_owned();
        let consequence = "a carrier of the peer that has most was closed".to_owned();
        self.event(now, Fact::LimitReached { limit, consequence });
        let reason =
            format!("{most} carriers are open (max_carriers), and '{peer}' has most of them");
        self.close_carrier(now, goes, &reason);
    }
}
