//! What a node's settings say of a message: whom it is for, by which way it goes, whether it may.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::inbox::Inbox;
use super::{Arrived, Key, Outgoing, Retry, Settings, Stage, Which, reports};
use crate::messaging::message::{
    DEFAULT_VALIDITY, Delivery, MAX_HOPS, MAX_RECIPIENTS, MAX_VALIDITY_S, Message, Transfer, Wanted,
};
use crate::messaging::receipt::Receipt;
use crate::messaging::refusal::{Reason, Refusal, shown};
use crate::messaging::signing::Keys;

/// How far ahead of this node's clock a message's time may be: clocks differ, not by more.
pub(super) const MAX_AHEAD: Duration = Duration::from_secs(3600);
/// For each place in the inbox so many messages are known, with those that are there no more and
/// may come again: by default 1,100,000.
const KNOWN_PER_PLACE: usize = 11;
/// Most originators of one id that a refusal names.
const MAX_NAMED: usize = 8;
const DAY: Duration = Duration::from_secs(86_400);
/// Most names that a refusal lists.
const MAX_NAMES: usize = 12;

impl Settings {
    /// A node that reaches its neighbours itself, with the usual times and bounds: no groups, no
    /// keys, 4 requests at once to a node, 100,000 messages.
    #[must_use]
    pub fn new(node: &str, neighbours: &[&str]) -> Self {
        Self {
            node: node.into(),
            routes: neighbours.iter().map(|name| ((*name).into(), (*name).into())).collect(),
            groups: BTreeMap::new(),
            keys: Keys::default(),
            retry: Retry {
                first: Duration::from_secs(1),
                longest: Duration::from_secs(30),
                window: 4,
            },
            attempt_timeout: Duration::from_secs(30),
            resend: Duration::from_secs(600),
            retention: Duration::from_secs(86_400),
            validity: DEFAULT_VALIDITY,
            max_messages: 100_000,
            seed: 0,
        }
    }

    /// The nodes that addressees stand for.
    pub(super) fn recipients(&self, addressees: &[String]) -> Result<BTreeSet<Arc<str>>, Refusal> {
        let node = &self.node;
        let mut recipients = BTreeSet::new();
        for addressee in addressees {
            if **addressee == **node {
                recipients.insert(node.clone());
            } else if let Some((name, _)) = self.routes.get_key_value(&**addressee) {
                recipients.insert(name.clone());
            } else if let Some(members) = self.groups.get(addressee) {
                // Who writes to a group that he is in has the message.
                recipients.extend(members.iter().filter(|member| *member != node).cloned());
            } else {
                return Err(self.unknown(addressee));
            }
        }
        if recipients.is_empty() {
            let line = "the addressees are groups of nobody but this node; name another";
            return Err(Refusal::malformed(line));
        }
        if recipients.len() > MAX_RECIPIENTS {
            let count = recipients.len();
            let line = format!("{count} recipients are over the limit of {MAX_RECIPIENTS}");
            return Err(Refusal::new(Reason::TooLarge, line));
        }
        Ok(recipients)
    }

    pub(super) fn unknown(&self, addressee: &str) -> Refusal {
        let nodes = self.routes.keys().map(|name| &**name);
        let groups = self.groups.keys().map(String::as_str);
        let mut names: Vec<&str> = nodes.chain(groups).take(MAX_NAMES + 1).collect();
        if names.len() > MAX_NAMES {
            names.truncate(MAX_NAMES);
            names.push("…");
        }
        let line = format!(
            "addressee '{}' does not exist at node '{}'; it knows {}",
            shown(addressee),
            self.node,
            if names.is_empty() { "no other node".to_owned() } else { names.join(", ") }
        );
        Refusal::new(Reason::Unknown, line)
    }

    /// Refuses a message whose validity is over, or begins too late.
    pub(super) fn check_time(&self, now: Duration, message: &Message) -> Result<(), Refusal> {
        let (id, deadline) = (shown(&message.id), message.deadline());
        let text = crate::messaging::time::format;
        if message.validity > Duration::from_secs(MAX_VALIDITY_S) {
            let line = format!("message '{id}' is valid for over {MAX_VALIDITY_S} s; say less");
            return Err(Refusal::malformed(line));
        }
        if deadline <= now {
            let line = format!(
                "the validity of message '{id}' ended at {}, and it is {}; write it anew",
                text(deadline),
                text(now)
            );
            return Err(Refusal::new(Reason::Expired, line));
        }
        if message.time > now + MAX_AHEAD {
            let line = format!(
                "the time of message '{id}', {}, is over an hour ahead of {}; correct the clock",
                text(message.time),
                text(now)
            );
            return Err(Refusal::new(Reason::Early, line));
        }
        Ok(())
    }

    pub(super) fn full(&self, what: &str, remedy: &str) -> Refusal {
        let (node, max) = (&self.node, self.max_messages);
        let line = format!("the {what} of node '{node}' has all {max} messages; {remedy}");
        Refusal::new(Reason::Full, line)
    }

    /// Refuses a message where as many are known as may be: one that is forgotten could come again,
    /// and be delivered twice. An originator has half of them.
    pub(super) fn check_known(&self, inbox: &Inbox, originator: &str) -> Result<(), Refusal> {
        let max = self.max_messages.saturating_mul(KNOWN_PER_PLACE);
        let (all, of_one) = (inbox.known_count(), inbox.known_count_of(originator));
        if all < max && of_one < max / 2 {
            return Ok(());
        }
        let (node, originator) = (&self.node, shown(originator));
        let line = format!(
            "node '{node}' knows {all} messages that may come again, {of_one} of '{originator}', \
             of {max} at most; wait until the validity of some is over"
        );
        Err(Refusal::new(Reason::Full, line))
    }

    pub(super) fn was_at(&self, node: &str, first: &str, hops: &[String]) -> bool {
        node == first || hops.iter().any(|hop| hop == node)
    }

    /// Refuses what was here before, or has passed too many nodes.
    pub(super) fn check_way(
        &self,
        what: &str,
        id: &str,
        first: &str,
        hops: &[String],
    ) -> Result<(), Refusal> {
        let way = || {
            let nodes: Vec<String> =
                std::iter::once(first).chain(hops.iter().map(String::as_str)).map(shown).collect();
            nodes.join(" > ")
        };
        let node = &self.node;
        let id = shown(id);
        if self.was_at(node, first, hops) {
            let line = format!("{what} '{id}' was at '{node}' before: {}; correct via", way());
            return Err(Refusal::new(Reason::Loop, line));
        }
        if hops.len() >= MAX_HOPS {
            let line = format!("{what} '{id}' has passed the limit of {MAX_HOPS} nodes: {}", way());
            return Err(Refusal::new(Reason::Loop, line));
        }
        Ok(())
    }

    pub(super) fn not_here(&self, id: &str) -> Refusal {
        let line = format!("no message '{}' in the inbox of '{}'", shown(id), self.node);
        Refusal::new(Reason::Unknown, line)
    }

    /// Recipients of a message that wait and are reached by a node.
    pub(super) fn waiting_by(&self, entry: &Outgoing, peer: &Arc<str>) -> Vec<Arc<str>> {
        self.awaiting(entry, peer).cloned().collect()
    }

    /// Whether there are any.
    pub(super) fn is_awaited_by(&self, entry: &Outgoing, peer: &Arc<str>) -> bool {
        self.awaiting(entry, peer).next().is_some()
    }

    fn awaiting<'a>(
        &'a self,
        entry: &'a Outgoing,
        peer: &'a Arc<str>,
    ) -> impl Iterator<Item = &'a Arc<str>> {
        let recipients = entry.recipients.iter();
        let waiting = recipients.filter(|(_, progress)| progress.stage == Stage::Waiting);
        waiting.map(|(node, _)| node).filter(move |node| self.routes.get(*node) == Some(peer))
    }

    pub(super) fn transfer(
        &self,
        entry: &Outgoing,
        peer: &Arc<str>,
        recipients: &[Arc<str>],
    ) -> Transfer {
        let mut hops = entry.hops.clone();
        if !self.is_own(entry) {
            hops.push(self.node.to_string());
        }
        let is_for_peer_alone = matches!(recipients, [only] if only == peer);
        let recipients = match is_for_peer_alone {
            true => Vec::new(),
            false => recipients.iter().map(ToString::to_string).collect(),
        };
        Transfer { message: entry.message.clone(), hops, recipients }
    }

    pub(super) fn is_resent(&self, entry: &Outgoing) -> bool {
        let message = &entry.message;
        self.is_own(entry)
            && message.delivery == Delivery::Reliable
            && message.receipt != Wanted::Nothing
    }

    /// Whether a message that another node has taken, or has failed to pass on, is sent again to a
    /// recipient while its validity lasts. Only the recipient's node has the last word.
    pub(super) fn is_tried_again(&self, entry: &Outgoing, recipient: &str, stage: Stage) -> bool {
        match stage {
            Stage::Forwarded => self.is_resent(entry),
            Stage::Failed => self.is_resent(entry) && self.is_relayed(recipient),
            _ => false,
        }
    }

    /// Whether a node is reached by another.
    pub(super) fn is_relayed(&self, node: &str) -> bool {
        self.routes.get(node).is_some_and(|next| **next != *node)
    }

    /// With keys, refuses what is not for a recipient, by what its originator has signed: whom a
    /// message is given on for is not. An addressee that is neither node nor group here may be a
    /// group that others know; of whether this node is in it nothing is known.
    pub(super) fn check_addressed(
        &self,
        message: &Message,
        recipient: &str,
    ) -> Result<(), Refusal> {
        if !self.keys.is_needed() {
            return Ok(());
        }
        let is_of = |addressee: &String| -> bool {
            let members = self.groups.get(addressee);
            let is_member =
                members.is_some_and(|members| members.iter().any(|it| **it == *recipient));
            let is_unknown = members.is_none()
                && **addressee != *self.node
                && !self.routes.contains_key(&**addressee);
            *addressee == *recipient || is_member || is_unknown && *recipient != *self.node
        };
        if message.addressees.iter().any(is_of) {
            return Ok(());
        }
        let line = format!(
            "message '{}' is not for '{}', but for {}; if one of them is a group that it is in, \
             say so in [groups] of '{}'",
            shown(&message.id),
            shown(recipient),
            shown(&message.addressees.join(", ")),
            self.node
        );
        Err(Refusal::new(Reason::Forged, line))
    }

    /// A node that a message goes on to, as it is known here.
    pub(super) fn onward(
        &self,
        message: &Message,
        hops: &[String],
        recipient: &str,
    ) -> Result<Arc<str>, Refusal> {
        let known = self.routes.get_key_value(recipient);
        let (name, next) = known.ok_or_else(|| self.unknown(recipient))?;
        if self.was_at(next, &message.originator, hops) {
            let node = &self.node;
            let line = format!("node '{node}' would send it back to '{next}': a loop");
            return Err(Refusal::new(Reason::Loop, line));
        }
        self.check_addressed(message, name)?;
        Ok(name.clone())
    }

    /// Refuses a failure that another node reports of one which this node reaches itself.
    pub(super) fn check_failure(&self, receipt: &Receipt) -> Result<(), Refusal> {
        let Receipt { addressee, reporter, .. } = receipt;
        if reporter == addressee || self.is_relayed(addressee) {
            return Ok(());
        }
        let (addressee, reporter) = (shown(addressee), shown(reporter));
        let line = format!("'{reporter}' is on no way to '{addressee}', which is reached directly");
        Err(Refusal::new(Reason::Forged, line))
    }

    /// The message of the inbox that a client names.
    pub(super) fn find<'a>(&self, inbox: &'a Inbox, which: &Which) -> Result<&'a Arrived, Refusal> {
        let Which { id, originator } = which;
        let found: Vec<&'a Arrived> = match originator {
            Some(name) => inbox.here(&Key::new(name, id)).into_iter().collect(),
            None => inbox.all(id, MAX_NAMED),
        };
        match found[..] {
            [] => Err(self.not_here(id)),
            [entry] => Ok(entry),
            _ => {
                let names: Vec<&str> = found.iter().map(|it| &*it.message.originator).collect();
                let names = names.join(", ");
                let line = format!("'{}' is an id of {names}; name one as originator", shown(id));
                Err(Refusal::new(Reason::Conflict, line))
            }
        }
    }

    /// When a receipt is worth nothing any more. One of this node's that says that a message was
    /// read is kept while the message is valid, or a day.
    pub(super) fn end_of(&self, inbox: &Inbox, receipt: &Receipt) -> Duration {
        let end = reports::end(receipt);
        let entry = inbox.here(&Key::new(&receipt.originator, &receipt.message));
        match entry.filter(|_| receipt.reporter == self.node) {
            Some(entry) => end.min(entry.message.deadline().max(receipt.time + DAY)),
            None => end,
        }
    }

    pub(super) fn is_own(&self, entry: &Outgoing) -> bool {
        entry.message.originator == self.node
    }
}
