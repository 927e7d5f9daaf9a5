//! In which form payloads leave: the operator's rules, and what they make of a publication.
//!
//! A payload is put into another form where nothing of it is lost ([`codec::notation`]), once for
//! all who get it so; where something would be, or it is none of what can be translated, it leaves
//! as it came. What is stored and what waits is always what came.

mod converting;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::filter::matches;
use crate::ids::{ClientKey, Protocol};
use crate::publication::{PayloadForm, Publication};

use converting::convert;

/// Publications in another form that are remembered for those who get them next, and their
/// memory, in bytes.
const MAX_MADE: usize = 64;
const MAX_MADE_BYTES: usize = 4 << 20;
/// What putting a payload into another form is counted as: so much each, and so much a byte, which
/// is about what EXI takes of one processor; and what may be used ahead of the time. Of a second
/// half goes to it at most, as the broker does nothing else meanwhile.
const COST_EACH: Duration = Duration::from_micros(20);
const COST_NS_A_BYTE: u64 = 500;
const MAX_AHEAD: Duration = Duration::from_millis(500);

/// In which form the payloads of some topics leave for some receivers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormRule {
    /// Which topics, by their names here: a filter of MQTT.
    pub filter: String,
    /// Receivers of this protocol only; [`Protocol::Bridge`]: bridges of this broker.
    pub protocol: Option<Protocol>,
    /// Receivers of this user only.
    pub user: Option<String>,
    /// This receiver only: a client identifier, a bridge's name, or what the protocol has.
    pub client: Option<String>,
    /// The form.
    pub form: PayloadForm,
}

/// Who gets something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct For<'a> {
    /// By which protocol.
    pub(crate) protocol: Protocol,
    /// Under which name.
    pub(crate) name: &'a str,
    /// As which user.
    pub(crate) user: Option<&'a str>,
}

impl<'a> For<'a> {
    /// Who has a session.
    pub(crate) fn client(key: &'a ClientKey, user: Option<&'a str>) -> Self {
        Self { protocol: key.protocol, name: &key.name, user }
    }
}

/// A payload's form for a receiver.
#[derive(Clone, Debug)]
pub(crate) struct Converted {
    /// The publication, in another form or as it came.
    pub(crate) publication: Arc<Publication>,
    /// Why it is as it came though another form was asked for.
    pub(crate) unchanged: Option<Arc<str>>,
}

/// What was made of a publication.
#[derive(Debug)]
struct Made {
    id: u64,
    form: PayloadForm,
    converted: Converted,
}

impl Made {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.converted.publication.size_bytes()
    }
}

/// What was made lately, for those who get the same next.
#[derive(Debug, Default)]
pub(crate) struct FormCache {
    made: VecDeque<Made>,
    bytes: usize,
    now: Duration,
    /// Until when what was made has used its share of the time.
    used_until: Duration,
}

impl FormCache {
    /// The time of what follows.
    pub(crate) fn set_now(&mut self, now: Duration) {
        self.now = now;
    }

    /// A publication in the form that the first rule asks for that fits it and the receiver;
    /// `None` where none does, or it is to leave as it came.
    pub(crate) fn convert(
        &mut self,
        rules: &[FormRule],
        receiver: For<'_>,
        publication: &Arc<Publication>,
    ) -> Option<Converted> {
        let form = rules.iter().find(|rule| rule.fits(receiver, &publication.topic))?.form;
        // An empty payload says that a topic has no value any more.
        if form == PayloadForm::Identity || publication.payload.is_empty() {
            return None;
        }
        let known = |made: &&Made| made.id == publication.id && made.form == form;
        if let Some(made) = self.made.iter().rev().find(known) {
            return Some(made.converted.clone());
        }
        if !self.may_make(publication.payload.len()) {
            let why = "too much is put into another form; fewer receivers at once, or fewer rules";
            return Some(Converted {
                publication: publication.clone(),
                unchanged: Some(why.into()),
            });
        }
        let converted = match convert(publication, form) {
            Ok(converted) => Converted { publication: Arc::new(converted), unchanged: None },
            Err(why) => Converted { publication: publication.clone(), unchanged: Some(why.into()) },
        };
        self.keep(Made { id: publication.id, form, converted: converted.clone() });
        Some(converted)
    }

    /// Whether there is time for a payload of so many bytes, which is counted then.
    fn may_make(&mut self, bytes: usize) -> bool {
        let begins = self.used_until.max(self.now);
        if begins.saturating_sub(self.now) > MAX_AHEAD {
            return false;
        }
        let bytes = u64::try_from(bytes.min(converting::MAX_BYTES)).unwrap_or(u64::MAX);
        let cost = COST_EACH + Duration::from_nanos(bytes.saturating_mul(COST_NS_A_BYTE));
        self.used_until = begins + 2 * cost;
        true
    }

    /// Forgets what rules made that hold no more.
    pub(crate) fn clear(&mut self) {
        (self.made, self.bytes) = (VecDeque::new(), 0);
    }

    fn keep(&mut self, made: Made) {
        if made.bytes() > MAX_MADE_BYTES / 8 {
            return;
        }
        self.bytes += made.bytes();
        self.made.push_back(made);
        while self.made.len() > MAX_MADE || self.bytes > MAX_MADE_BYTES {
            let Some(oldest) = self.made.pop_front() else { return };
            self.bytes = self.bytes.saturating_sub(oldest.bytes());
        }
    }
}

impl FormRule {
    fn fits(&self, receiver: For<'_>, topic: &str) -> bool {
        self.protocol.is_none_or(|protocol| protocol == receiver.protocol)
            && self.user.as_deref().is_none_or(|user| receiver.user == Some(user))
            && self.client.as_deref().is_none_or(|client| receiver.name == client)
            && matches(&self.filter, topic)
    }
}

#[cfg(test)]
mod tests;
