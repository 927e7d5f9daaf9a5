//! Messages of this node's clients.

use std::sync::Arc;
use std::time::Duration;

use super::{Change, Deferred, Event, Key, Machine, Outgoing, Progress, Reply, Stage};
use crate::messaging::message::{Delivery, Draft, FREE_TEXT, Message, Wanted};
use crate::messaging::refusal::{Reason, Refusal, shown};
use crate::messaging::signing::digest;

impl Machine {
    pub(super) fn submit(&mut self, now: Duration, draft: Draft) -> Result<Reply, Refusal> {
        let node = self.settings.node.clone();
        if let Some(originator) = draft.originator.as_deref().filter(|name| *name != &*node) {
            let line = format!(
                "originator '{}' is not this node, '{node}'; leave it out, or give the message to \
                 its own node",
                shown(originator)
            );
            return Err(Refusal::new(Reason::Forged, line));
        }
        if let Some(known) = draft.id.as_deref().and_then(|id| self.find_outgoing(id)) {
            return again(&draft, known);
        }
        let recipients = self.settings.recipients(&draft.addressees)?;
        let message = self.complete(now, draft)?;
        self.settings.check_time(now, &message)?;
        if self.inbox.known(&Key::from(&message)).is_some() {
            return Err(other_message(&message.id));
        }
        self.make_room_in_outbox()?;
        let is_for_self = recipients.contains(&node);
        if is_for_self {
            self.make_room_in_inbox(now, &node)?;
        }
        let message = Arc::new(message);
        let number = self.number();
        self.insert_outgoing(now, number, &message, Vec::new());
        for recipient in &recipients {
            let stage = if *recipient == node { Stage::Delivered } else { Stage::Waiting };
            self.put_progress(number, recipient, Progress::new(stage, now));
        }
        if is_for_self {
            self.keep(now, &message);
        }
        self.journal.after(Deferred::Send(number));
        Ok(Reply::Accepted { id: message.id.clone(), is_new: true })
    }

    /// Adds to a draft what it leaves out.
    fn complete(&mut self, now: Duration, draft: Draft) -> Result<Message, Refusal> {
        let id = match draft.id {
            Some(id) => id.into(),
            None => self.name(now),
        };
        let ms = |time: Duration| {
            Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
        };
        let mut message = Message {
            id,
            precedence: draft.precedence,
            originator: self.settings.node.clone(),
            addressees: draft.addressees,
            time: draft.time.unwrap_or_else(|| ms(now)),
            validity: draft.validity.unwrap_or(self.settings.validity),
            references: draft.references,
            kind: draft.kind.unwrap_or_else(|| FREE_TEXT.to_owned()),
            delivery: draft.delivery,
            receipt: draft.receipt.unwrap_or_else(|| usual(draft.delivery)),
            text: draft.text,
            extensions: draft.extensions,
            code: None,
        };
        if self.settings.keys.is_needed() {
            message.code = self.settings.keys.sign_message(&message);
        }
        Ok(message)
    }

    /// A new id: the node and a number in 36 digits that grows with the time.
    fn name(&mut self, now: Duration) -> Arc<str> {
        let ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        loop {
            self.last_name = ms.max(self.last_name.saturating_add(1));
            let id = format!("{}-{}", short(&self.settings.node), digits(self.last_name));
            let key = Key::new(&self.settings.node, &id);
            if self.outbox.find(&key).is_none() && self.inbox.known(&key).is_none() {
                return key.id;
            }
        }
    }

    /// Makes sure that one more message may go from here.
    pub(super) fn make_room_in_outbox(&mut self) -> Result<(), Refusal> {
        if self.outbox.len() < self.settings.max_messages {
            return Ok(());
        }
        match self.outbox.oldest_settled() {
            Some(number) => {
                self.remove_outgoing(number);
                Ok(())
            }
            None => Err(self.settings.full("outbox", "wait until some are delivered or expire")),
        }
    }

    /// Makes sure that one more message of an originator may come.
    pub(super) fn make_room_in_inbox(
        &mut self,
        now: Duration,
        originator: &str,
    ) -> Result<(), Refusal> {
        self.settings.check_known(&self.inbox, originator)?;
        if self.inbox.len() < self.settings.max_messages {
            return Ok(());
        }
        match self.inbox.oldest_done(now) {
            Some(number) => {
                self.remove_arrived(now, number);
                Ok(())
            }
            None => Err(self.settings.full("inbox", "messages must be read or taken out there")),
        }
    }

    pub(super) fn insert_outgoing(
        &mut self,
        now: Duration,
        number: u64,
        message: &Arc<Message>,
        hops: Vec<String>,
    ) {
        let resend = self.settings.resend;
        let entry = Outgoing::new(number, now, message.clone(), hops.clone(), resend);
        self.outbox.insert(entry);
        self.outbox.alarm(number, message.deadline());
        let message = message.clone();
        self.journal.change(Change::Outgoing { number, accepted: now, message, hops });
    }

    /// Keeps a message in the inbox.
    pub(super) fn keep(&mut self, now: Duration, message: &Arc<Message>) {
        let number = self.number();
        let arrived = super::Arrived { number, message: message.clone(), at: now, read: None };
        self.inbox.insert(arrived.clone());
        self.journal.change(Change::Inbox(arrived.clone()));
        self.journal.after(Deferred::Event(Event::Arrived(arrived)));
    }

    /// Takes a message out of the inbox; while its validity lasts it may come again.
    pub(super) fn remove_arrived(&mut self, now: Duration, number: u64) {
        let Some(entry) = self.inbox.remove(number) else { return };
        self.journal.change(Change::InboxRemoved { number });
        let (key, until) = (Key::from(&*entry.message), entry.message.deadline());
        if until <= now {
            return;
        }
        let digest = digest(&entry.message);
        self.journal.change(Change::Seen { key: key.clone(), digest, until });
        self.inbox.remember(key, digest, until);
    }
}

/// The receipt of a message that does not say which it wants.
fn usual(delivery: Delivery) -> Wanted {
    match delivery {
        Delivery::Reliable => Wanted::Delivered,
        Delivery::BestEffort => Wanted::Nothing,
    }
}

/// A message with an id that is known: the same once more, or another.
fn again(draft: &Draft, known: &Outgoing) -> Result<Reply, Refusal> {
    let message = &known.message;
    let is_same = message.text == draft.text
        && message.addressees == draft.addressees
        && message.precedence == draft.precedence
        && message.references == draft.references
        && message.extensions == draft.extensions
        && message.kind == draft.kind.as_deref().unwrap_or(FREE_TEXT)
        && message.delivery == draft.delivery
        && message.receipt == draft.receipt.unwrap_or_else(|| usual(draft.delivery))
        // What the node has added may be otherwise by now.
        && draft.validity.is_none_or(|validity| validity == message.validity)
        && draft.time.is_none_or(|time| time == message.time);
    match is_same {
        true => Ok(Reply::Accepted { id: message.id.clone(), is_new: false }),
        false => Err(other_message(&message.id)),
    }
}

/// The refusal of a message whose id another has.
pub(super) fn other_message(id: &str) -> Refusal {
    let line = format!("another message has the id '{}'; give this one another id", shown(id));
    Refusal::new(Reason::Conflict, line)
}

/// A name of a node, cut so that an id of it is no longer than ids may be.
fn short(node: &str) -> &str {
    node.get(..node.len().min(48)).unwrap_or(node)
}

/// A number in the digits 0 to 9 and a to z.
fn digits(mut number: u64) -> String {
    let mut digits = Vec::new();
    loop {
        let digit = u32::try_from(number % 36).unwrap_or(0);
        digits.push(char::from_digit(digit, 36).unwrap_or('0'));
        number /= 36;
        if number == 0 {
            return digits.iter().rev().collect();
        }
    }
}
