//! What nations have agreed on that their brokers exchange, and what a broker refuses by it.
//!
//! A [`Federation`] is a profile as one partner's broker applies it. Whose a publication is, is
//! known by its session: a partner's broker is a user of that name, or a bridge of that name; all
//! others are clients of the broker's own nation. What is in no flow is a nation's own affair: its
//! clients have it among themselves, and no partner sees it.

mod breach;
mod meter;
#[cfg(test)]
mod tests;
mod tree;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use proto::urgency::Urgency;

use crate::filter::{covers, overlap};
use crate::ids::{ClientKey, Protocol};
use crate::publication::{Details, Grade, Publication};

pub use breach::{Breach, Kind as BreachKind};
pub(crate) use meter::Meters;
pub use meter::Refused;
use tree::Tree;

/// What stands for the publishing partner's name in the filter of a flow.
pub const PUBLISHER: &str = "%p";

/// Publications of one kind, from some partners to others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// By which it is known; of no other flow.
    pub name: Arc<str>,
    /// Its topics: a filter of MQTT in which [`PUBLISHER`] stands for who publishes.
    pub topic: String,
    /// The partners that publish it.
    pub from: BTreeSet<Arc<str>>,
    /// Those that see it.
    pub to: BTreeSet<Arc<str>>,
    /// The partner whose broker passes it on, which alone shows it to nobody there; without one it
    /// goes directly.
    pub via: Option<Arc<str>>,
    /// What a publisher may send, and how it leaves.
    pub terms: Terms,
}

/// What holds for the publications of a flow, for each of its publishers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// How urgent they are, whatever their publisher says.
    pub urgency: Urgency,
    /// Highest grade.
    pub max_grade: Grade,
    /// Whether they are retained, whatever their publisher says; `None`: as it says.
    pub retain: Option<bool>,
    /// How long one is of use at most.
    pub expiry: Option<Duration>,
    /// The media type of their payloads; `None`: any.
    pub media_type: Option<String>,
    /// Longest payload with the properties beside it, in bytes.
    pub max_bytes: u64,
    /// Thousandths of a message that one publisher may send a second.
    pub messages_per_1000_s: u64,
    /// Messages that may come at once, if none came before.
    pub burst: u32,
    /// Bytes of payloads, properties and topics a second; `None`: what the messages have.
    pub bytes_per_s: Option<u64>,
    /// A newer one takes the place of an older one of its topic that still waits.
    pub conflate: bool,
}

impl Flow {
    /// The filter of what one partner publishes.
    #[must_use]
    pub fn filter_of(&self, publisher: &str) -> String {
        self.topic.replace(PUBLISHER, publisher)
    }

    /// Whether a partner's clients see it: it is for them, or theirs.
    #[must_use]
    pub fn is_seen_by(&self, publisher: &str, partner: &str) -> bool {
        publisher == partner || self.to.contains(partner)
    }

    /// Whether the broker of `sender` gives what `publisher` says to that of `receiver`.
    #[must_use]
    pub fn crosses(&self, publisher: &str, sender: &str, receiver: &str) -> bool {
        if sender == receiver || receiver == publisher {
            return false;
        }
        match self.via.as_deref() {
            None => sender == publisher && self.to.contains(receiver),
            Some(via) if sender == publisher => receiver == via,
            Some(via) => sender == via && self.to.contains(receiver),
        }
    }
}

/// A profile, as one partner's broker applies it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Federation {
    /// The profile's name.
    pub profile: Arc<str>,
    /// Its version.
    pub version: u64,
    /// The partner that this broker is of.
    pub own: Arc<str>,
    /// All partners.
    pub partners: BTreeSet<Arc<str>>,
    /// Those that were partners and are none any more: nothing comes from them or goes to them.
    /// Without it their users would be clients of the own nation.
    pub former: BTreeSet<Arc<str>>,
    /// From when on it holds, since 1970.
    pub valid_from: Duration,
    /// Until when.
    pub valid_until: Duration,
    flows: Vec<Flow>,
    streams: Vec<Stream>,
    tree: Tree,
}

/// A flow of one publisher.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stream {
    flow: usize,
    publisher: Arc<str>,
    filter: String,
}

/// Who publishes or receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Party {
    /// A client of the broker's own nation.
    Own,
    /// A partner's broker.
    Partner(Arc<str>),
    /// Another member of a mesh, which has measured what came in there.
    Mesh,
}

impl Federation {
    /// What the broker of `own` applies from `valid_from` to `valid_until`, both since 1970.
    #[must_use]
    pub fn new(
        (profile, version): (Arc<str>, u64),
        own: Arc<str>,
        partners: BTreeSet<Arc<str>>,
        (valid_from, valid_until): (Duration, Duration),
        flows: Vec<Flow>,
    ) -> Self {
        let (mut streams, mut tree) = (Vec::new(), Tree::default());
        for (at, flow) in flows.iter().enumerate() {
            for publisher in &flow.from {
                let filter = flow.filter_of(publisher);
                tree.insert(&filter, streams.len());
                streams.push(Stream { flow: at, publisher: publisher.clone(), filter });
            }
        }
        let former = BTreeSet::new();
        Self {
            profile,
            version,
            own,
            partners,
            former,
            valid_from,
            valid_until,
            flows,
            streams,
            tree,
        }
    }

    /// Its flows.
    #[must_use]
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// The same, where partners of before are none any more.
    #[must_use]
    pub fn with_former(mut self, former: impl IntoIterator<Item = Arc<str>>) -> Self {
        self.former.extend(former);
        self.former.retain(|name| !self.partners.contains(name));
        self
    }

    /// Whether a user is another partner's broker, or was.
    #[must_use]
    pub fn is_partner(&self, user: &str) -> bool {
        user != &*self.own && (self.partners.contains(user) || self.former.contains(user))
    }

    /// Who has a session.
    pub(crate) fn party(&self, client: &ClientKey, user: Option<&str>) -> Party {
        let name = match client.protocol {
            Protocol::Bridge => Some(&*client.name),
            _ => user,
        };
        self.party_of_user(name)
    }

    /// Who a user is.
    pub(crate) fn party_of_user(&self, user: Option<&str>) -> Party {
        user.and_then(|user| self.partners.get(user).or_else(|| self.former.get(user)))
            .filter(|partner| **partner != self.own)
            .map_or(Party::Own, |partner| Party::Partner(partner.clone()))
    }

    fn name_of<'a>(&'a self, party: &'a Party) -> &'a Arc<str> {
        match party {
            Party::Own | Party::Mesh => &self.own,
            Party::Partner(partner) => partner,
        }
    }

    fn found(&self, topic: &str) -> Vec<(usize, &Flow, &Arc<str>)> {
        let stream = |at: usize| {
            let stream = self.streams.get(at)?;
            Some((at, self.flows.get(stream.flow)?, &stream.publisher))
        };
        self.tree.find(topic).into_iter().filter_map(stream).collect()
    }

    /// Takes a publication of somebody's, which gets the flow's urgency and the other terms, or is
    /// refused. Whether a newer one takes its place.
    ///
    /// # Errors
    /// What the profile does not allow of it.
    pub(crate) fn admit(
        &self,
        now: Duration,
        party: &Party,
        meters: &mut Meters,
        publication: &mut Publication,
    ) -> Result<bool, Box<Breach>> {
        let topic = publication.topic.clone();
        let found = self.found(&topic);
        let is_ours = !matches!(party, Party::Partner(_));
        if is_ours && (found.is_empty() || topic.starts_with('$')) {
            return Ok(false);
        }
        let who = self.name_of(party);
        let breach = |flow: Option<&Flow>, kind, what: String| {
            Err(Box::new(Breach::new(self, who, flow, kind, &what)))
        };
        if !(self.valid_from..self.valid_until).contains(&now) {
            return breach(None, BreachKind::NotValid, breach::not_valid(self, now));
        }
        let goes = |&&(_, flow, publisher): &&(usize, &Flow, &Arc<str>)| match party {
            Party::Own => *publisher == self.own,
            Party::Partner(partner) => flow.crosses(publisher, partner, &self.own),
            Party::Mesh => *publisher == self.own || self.comes(flow, publisher),
        };
        let Some((at, flow, _)) = found.iter().find(goes) else {
            let flow = found.first().map(|(_, flow, _)| *flow);
            let what = match found.first() {
                None => format!("may publish to '{topic}' by no flow"),
                Some((_, flow, publisher)) => format!(
                    "may not publish to '{topic}' here: it goes from {publisher} to {}",
                    breach::list(&flow.to)
                ),
            };
            return breach(flow, BreachKind::Direction, what);
        };
        let terms = &flow.terms;
        let said = publication.details.as_deref().map_or(0, Details::said_bytes);
        let bytes = (publication.payload.len() + said) as u64;
        if bytes > terms.max_bytes {
            let what = format!("sent {bytes} bytes to '{topic}', over {}", terms.max_bytes);
            return breach(Some(flow), BreachKind::Size, what);
        }
        if let Some(wanted) = &terms.media_type {
            let said =
                publication.details.as_deref().and_then(|details| details.content_type.as_deref());
            if let Some(said) = said.filter(|said| !is_of_type(said, wanted)) {
                let what = format!("sent {} to '{topic}', not {wanted}", breach::short(said));
                return breach(Some(flow), BreachKind::MediaType, what);
            }
        }
        if *party != Party::Mesh
            && let Err(what) = meters.pass(now, *at, terms, bytes + topic.len() as u64)
        {
            return breach(Some(flow), BreachKind::Rate, what);
        }
        terms.apply(now, publication);
        Ok(terms.conflate)
    }

    /// Whether some partner's broker gives what `publisher` says to this nation.
    fn comes(&self, flow: &Flow, publisher: &str) -> bool {
        let mut senders = [Some(publisher), flow.via.as_deref()].into_iter().flatten();
        senders.any(|sender| flow.crosses(publisher, sender, &self.own))
    }

    /// Whether somebody may get what is published to a topic.
    pub(crate) fn may_receive(&self, party: &Party, topic: &str) -> bool {
        let found = self.found(topic);
        match party {
            Party::Own | Party::Mesh => {
                found.is_empty()
                    || found.iter().any(|(_, flow, from)| flow.is_seen_by(from, &self.own))
            }
            Party::Partner(partner) => {
                found.iter().any(|(_, flow, from)| flow.crosses(from, &self.own, partner))
            }
        }
    }

    /// Whether it may leave for somebody now: to partners only while the profile holds.
    pub(crate) fn may_leave(&self, now: Duration, party: &Party, topic: &str) -> bool {
        let holds = || (self.valid_from..self.valid_until).contains(&now);
        (!matches!(party, Party::Partner(_)) || holds()) && self.may_receive(party, topic)
    }

    /// Whether somebody may subscribe to a filter: some of its topics may come to him.
    ///
    /// # Errors
    /// None may, by the profile.
    pub(crate) fn may_subscribe(&self, party: &Party, filter: &str) -> Result<(), Box<Breach>> {
        let flow_of = |stream: &Stream| self.flows.get(stream.flow);
        let gets = |stream: &&Stream| {
            flow_of(stream).is_some_and(|flow| match party {
                Party::Own | Party::Mesh => flow.is_seen_by(&stream.publisher, &self.own),
                Party::Partner(partner) => flow.crosses(&stream.publisher, &self.own, partner),
            })
        };
        if self.streams.iter().filter(gets).any(|stream| overlap(&stream.filter, filter)) {
            return Ok(());
        }
        let whole = self.streams.iter().find(|stream| covers(&stream.filter, filter));
        if *party == Party::Own && whole.is_none() {
            return Ok(());
        }
        let flow = whole.and_then(flow_of);
        let shown = breach::short(filter);
        let what = match (flow, whole) {
            (Some(flow), Some(stream)) => format!(
                "may not see '{shown}': it goes from {} to {}",
                stream.publisher,
                breach::list(&flow.to)
            ),
            _ => format!("may see nothing of '{shown}' by any flow"),
        };
        Err(Box::new(Breach::new(self, self.name_of(party), flow, BreachKind::Direction, &what)))
    }
}

impl Terms {
    fn apply(&self, now: Duration, publication: &mut Publication) {
        publication.urgency = self.urgency;
        publication.grade = publication.grade.min(self.max_grade);
        publication.retain = self.retain.unwrap_or(publication.retain);
        if let Some(expiry) = self.expiry {
            let latest = now.saturating_add(expiry);
            publication.deadline = Some(publication.deadline.map_or(latest, |at| at.min(latest)));
        }
        if let Some(media_type) = &self.media_type {
            publication.details_mut().content_type.get_or_insert_with(|| media_type.clone());
        }
    }
}

/// Whether a media type is one, whatever its parameters (RFC 9110 §8.3.1).
fn is_of_type(said: &str, wanted: &str) -> bool {
    let essence = |text: &str| text.split(';').next().unwrap_or_default().trim().to_owned();
    essence(said).eq_ignore_ascii_case(&essence(wanted))
}
