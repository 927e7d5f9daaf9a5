//! A profile that has been read and is sound.

mod canonical;
mod signing;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use broker::{Federation, FederationFlow};

use crate::key::Key;

pub(crate) use canonical::retain;
pub use signing::{Signer, Standing, sign};

/// Most partners of a profile.
pub const MAX_PARTNERS: usize = 64;
/// Most flows.
pub const MAX_FLOWS: usize = 500;
/// Most pairs of a flow and one who publishes it: each is a filter in every broker.
pub const MAX_STREAMS: usize = 1000;

/// What partners have agreed on. Partners and flows are in the order of their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// By which people know it.
    pub name: String,
    /// What it is about, for people.
    pub about: String,
    /// Which version: later ones are greater.
    pub version: u64,
    /// From when on it holds, in seconds since 1970.
    pub valid_from_s: u64,
    /// Until when.
    pub valid_until_s: u64,
    /// The nations.
    pub partners: Vec<Partner>,
    /// What goes from whom to whom.
    pub flows: Vec<FederationFlow>,
    /// What each flow is about, for people, by its name; of those that say it.
    pub flows_about: BTreeMap<Arc<str>, String>,
    /// Topic ids of MQTT-SN that all know (MQTT-SN 1.2 §5.3.11).
    pub topic_ids: BTreeMap<u16, String>,
    /// Keys that count no more.
    pub revoked: Vec<Revoked>,
    /// What stands below it. These are no part of what is signed.
    pub signatures: Vec<Signature>,
}

/// A nation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partner {
    /// Its name: the publisher's level in topics, and the user that its broker is to others.
    pub name: Arc<str>,
    /// What it is, for people.
    pub about: String,
    /// The key that it signs with.
    pub key: Key,
    /// Where others reach its broker: a URL of MQTT. Without it, it connects to the others.
    pub broker: Option<String>,
}

/// A key that counts no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revoked {
    /// Which.
    pub key: Key,
    /// Why, for people.
    pub reason: String,
}

/// A partner's signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Whose it is said to be.
    pub partner: String,
    /// By which key.
    pub key: Key,
    /// Its 64 bytes.
    pub value: Vec<u8>,
}

impl Profile {
    /// A partner by name.
    #[must_use]
    pub fn partner(&self, name: &str) -> Option<&Partner> {
        self.partners.iter().find(|partner| &*partner.name == name)
    }

    /// What the broker of a partner applies; `None`: it is no partner.
    #[must_use]
    pub fn federation(&self, own: &str) -> Option<Federation> {
        let own = self.partner(own)?.name.clone();
        let partners: BTreeSet<Arc<str>> =
            self.partners.iter().map(|partner| partner.name.clone()).collect();
        let times =
            (Duration::from_secs(self.valid_from_s), Duration::from_secs(self.valid_until_s));
        let profile = (Arc::from(self.name.as_str()), self.version);
        Some(Federation::new(profile, own, partners, times, self.flows.clone()))
    }

    /// Every filter with the flow and who publishes by it, in the order of flows and names.
    pub(crate) fn streams(&self) -> impl Iterator<Item = (&FederationFlow, &Arc<str>, String)> {
        self.flows.iter().flat_map(|flow| {
            flow.from.iter().map(move |publisher| (flow, publisher, flow.filter_of(publisher)))
        })
    }
}
